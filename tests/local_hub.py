"""A Hub on this machine, in memory, for the client of huggingface_hub, with faults on request.

Two servers on the loopback device, as the real Hub has two hosts: the Hub itself, which wants tokens, and the storage,
to which it sends clients for the bytes of large files by addresses that are secret, and which must never see a token.

    hub.add_user("ann", token="hf_ann")
    hub.fault("POST", r"/commit/", status=500, times=1)
    environment = hub.environment(home, token="hf_ann")

Clients find it by `HF_ENDPOINT`, or by `HfApi(endpoint=hub.endpoint)`. Xet, which speaks to servers of another kind, is
to be switched off by `HF_HUB_DISABLE_XET`.
"""

import base64
import hashlib
import json
import re
import secrets
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

LARGE_NAMES = re.compile(r".*\.(safetensors|bin|pt|pth|pkl|png|jpg|jpeg|h5|onnx)")
LARGE_SIZE = 10_000_000
DATE = "2026-01-01T00:00:00.000Z"
EVERY_FILE_FIRST = {".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"}


@dataclass(frozen=True)
class Blob:
    """A file's content; a large one stands in the tree as a pointer to the sha256 that it was announced with."""

    content: bytes
    sha256: str | None = None

    @property
    def large(self):
        return self.sha256 is not None

    @property
    def pointer(self):
        lines = ("version https://git-lfs.github.com/spec/v1", f"oid sha256:{self.sha256}", f"size {len(self.content)}")
        return "".join(f"{line}\n" for line in lines).encode()

    @property
    def oid(self):
        """The object id that git uses."""
        stored = self.pointer if self.large else self.content
        return hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest()


@dataclass(frozen=True)
class Commit:
    sha: str
    parent: str | None
    title: str
    files: dict[str, Blob]


@dataclass
class Repository:
    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, branch, title, files):
        parent = self.branches.get(branch)
        sha = hashlib.sha1(repr((parent, title, sorted(files), secrets.token_hex(8))).encode()).hexdigest()
        self.commits[sha] = Commit(sha, parent, title, files)
        self.branches[branch] = sha
        return sha

    def at(self, revision):
        sha = self.branches.get(revision) or self.tags.get(revision) or revision
        if len(sha) < 40:
            sha = next((full for full in self.commits if len(sha) >= 7 and full.startswith(sha)), sha)
        if sha not in self.commits:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return self.commits[sha]


class Refusal(Exception):
    def __init__(self, status, code=None, message=None, **about):
        self.status, self.code, self.message, self.about = status, code, message, about


@dataclass
class Fault:
    """A fault of the next requests of a kind.

    Attributes:
        method, path: The kind: a method, and what is found in the path.
        times: How many of them.
        skip: How many go well before.
        status: Answer so, and do nothing.
        headers: Of that answer.
        cut_after: Break the connection after so many bytes of the body.
        hang: Never answer.
        damage: Store (or send) other bytes than those that came.
        deaf: Do all that is asked, and break the connection in place of an answer.
    """

    method: str
    path: str
    times: float = float("inf")
    skip: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    hang: bool = False
    damage: bool = False
    deaf: bool = False


class Cut(Exception):
    """The connection is to be broken."""


def damaged(content):
    return content[:-1] + bytes([content[-1] ^ 1])


class LocalHub:
    """The Hub: users, repositories, and what it was asked.

    Attributes:
        requests: Method, path and token (or None) of every request to the Hub, in order.
        storage_requests: The same of the storage.
        part_size: Where given, larger files are to be uploaded in parts of this size.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.users, self.repositories, self.storage, self.parts = {}, {}, {}, {}
        self.requests, self.storage_requests, self.faults = [], [], []
        self.part_size = None
        self.closing = threading.Event()
        self.secret = secrets.token_hex(8)
        self.servers = [self._serve(HubHandler), self._serve(StorageHandler)]
        self.endpoint, self.storage_endpoint = (f"http://127.0.0.1:{one.server_port}" for one in self.servers)

    def _serve(self, handler):
        server = ThreadingHTTPServer(("127.0.0.1", 0), type(handler.__name__, (handler,), {"hub": self}))
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def close(self):
        self.closing.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add_user(self, name, token, role="write", organizations=()):
        """Let a token act for a user; `role` is what it may do: "read" or "write"."""
        self.users[token] = (name, role, tuple(organizations))

    def fault(self, method, path, **what):
        self.faults.append(Fault(method, path, **what))

    def environment(self, home, token=None):
        """The variables that point a process to this Hub, with a home of its own for caches and tokens."""
        values = {"HF_ENDPOINT": self.endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        values |= {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return values | ({"HF_TOKEN": token} if token else {})

    def files(self, name, revision="main"):
        """The content of every file of a repository, without the one that all have from the beginning."""
        blobs = self.repositories[name].at(revision).files
        return {path: blob.content for path, blob in blobs.items() if path not in EVERY_FILE_FIRST}

    # --- what the requests do ---

    def user_of(self, token):
        if token is None:
            return None
        if token not in self.users:
            raise Refusal(401, message="Invalid credentials in Authorization header")
        return self.users[token]

    def may_write(self, user, namespace):
        return user is not None and user[1] == "write" and namespace in (user[0], *user[2])

    def repository(self, name, token, to_write=False):
        user = self.user_of(token)
        found = self.repositories.get(name)
        namespace = name.partition("/")[0]
        if found is None or (found.private and (user is None or namespace not in (user[0], *user[2]))):
            # Others get the same answer as for a missing repository.
            raise Refusal(404 if user else 401, "RepoNotFound", "Repository not found")
        if to_write and not self.may_write(user, namespace):
            raise Refusal(403 if user else 401, message="Forbidden: you must use a write token")
        return found

    def create(self, token, wanted):
        user = self.user_of(token)
        if user is None:
            raise Refusal(401, message="Invalid username or password.")
        namespace = wanted.get("organization") or user[0]
        name = f"{namespace}/{wanted['name']}"
        if not self.may_write(user, namespace):
            raise Refusal(403, message=f"You don't have the rights to create a model under the namespace {namespace!r}")
        if name in self.repositories:
            raise Refusal(409, message="You already created this model repo", url=f"{self.endpoint}/{name}")
        private = wanted.get("private") or wanted.get("visibility") == "private"
        self.repositories[name] = Repository(name, bool(private))
        files = {path: Blob(content) for path, content in EVERY_FILE_FIRST.items()}
        self.repositories[name].commit("main", "initial commit", files)
        return {"url": f"{self.endpoint}/{name}", "name": name}

    def commit(self, repository, branch, lines):
        """All of a commit or nothing: the branch moves at the end."""
        if branch not in repository.branches:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {branch}")
        header = lines[0]["value"]
        head = repository.branches[branch]
        if header.get("parentCommit") not in (None, head):
            raise Refusal(412, message="The branch has moved since parentCommit")
        files = dict(repository.commits[head].files)
        for line in lines[1:]:
            self.apply(files, line["key"], line["value"])
        sha = repository.commit(branch, header["summary"], files)
        return {"commitUrl": f"{self.endpoint}/{repository.name}/commit/{sha}", "commitOid": sha, "success": True}

    def apply(self, files, key, value):
        path = value["path"]
        if key == "file":
            files[path] = Blob(base64.b64decode(value["content"]))
        elif key == "lfsFile":
            if value["oid"] not in self.storage:
                raise Refusal(400, message=f"LFS object {value['oid']} of {path} was never uploaded")
            files[path] = Blob(self.storage[value["oid"]], value["oid"])
        elif key == "deletedFile":
            if files.pop(path, None) is None:
                raise Refusal(404, "EntryNotFound", f"A file with this name doesn't exist: {path}")
        else:
            raise Refusal(400, message=f"unknown operation {key}")

    def upload_action(self, item):
        """Return the upload instructions for a large file, without an address if it is already stored."""
        oid, size = item["oid"], item["size"]
        if oid in self.storage:
            return {"oid": oid, "size": size}
        place = f"{self.storage_endpoint}/{self.secret}/{oid}"
        upload = {"href": place}
        if self.part_size and size > self.part_size:
            count = -(-size // self.part_size)
            parts = {f"{number:05d}": f"{place}/{number}" for number in range(1, count + 1)}
            upload = {"href": f"{self.endpoint}/complete/{self.secret}/{oid}", "header": parts}
            upload["header"]["chunk_size"] = str(self.part_size)
        verify = {"href": f"{self.endpoint}/verify/{self.secret}"}
        return {"oid": oid, "size": size, "actions": {"upload": upload, "verify": verify}}


class Handler(BaseHTTPRequestHandler):
    """Reads a whole request, answers it, and injects the requested faults."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its head
    hub: LocalHub

    def log_message(self, *_):
        pass

    def handle_any(self):
        self.url = urlsplit(self.path)
        self.query = parse_qs(self.url.query)
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        self.token = token if scheme == "Bearer" else None
        self.log.append((self.command, self.url.path, self.token))
        fault = self.fault = self.next_fault()
        try:
            self.body = self.read_body(fault.cut_after if fault else None)
            if fault and fault.hang:
                self.hub.closing.wait(120)
                raise Cut
            if fault and fault.status:
                raise Refusal(fault.status, message="something is wrong with the server")
            with self.hub.lock:
                self.route()
        except Refusal as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message} | self.extra_headers
            headers |= fault.headers if fault else {}
            headers = {name: value for name, value in headers.items() if value}
            self.reply({"error": refusal.message, **refusal.about}, refusal.status, headers)
        except Cut:
            self.close_connection = True
            # Without a farewell: the client sees the connection reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        except OSError:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    extra_headers: dict = {}

    def finish(self):
        with suppress(OSError, ValueError):  # the connection may have been cut
            super().finish()

    def next_fault(self):
        with self.hub.lock:
            for fault in self.hub.faults:
                if fault.method == self.command and re.search(fault.path, self.url.path) and fault.times > 0:
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def read_body(self, cut_after):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(pieces)
        else:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length if cut_after is None else min(length, cut_after))
        if cut_after is not None:
            raise Cut
        return body

    def reply(self, content=b"", status=200, headers=None):
        if self.fault and self.fault.deaf:
            raise Cut
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class StorageHandler(Handler):
    """Serves bytes by their sha256 to any client with the address."""

    @property
    def log(self):
        return self.hub.storage_requests

    def route(self):
        _, secret, oid, *part = self.url.path.split("/")
        if secret != self.hub.secret:
            raise Refusal(403)
        broken = self.fault and self.fault.damage
        content = damaged(self.body) if broken and self.body else self.body
        if self.command == "PUT" and part:
            self.hub.parts[oid, int(part[0])] = content
            self.reply(headers={"ETag": f'"{hashlib.md5(content).hexdigest()}"'})
        elif self.command == "PUT":
            # As the real one, it trusts the address: what it holds is checked by no one else.
            self.hub.storage[oid] = content
            self.reply()
        elif oid in self.hub.storage:
            content = self.hub.storage[oid]
            self.reply(damaged(content) if broken else content, headers={"ETag": f'"{oid}"'})
        else:
            raise Refusal(404)


class HubHandler(Handler):
    """All requests except for the bytes of large files."""

    @property
    def log(self):
        return self.hub.requests

    def route(self):
        path = self.url.path
        for method, pattern, answer in ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                return answer(self, **{name: unquote(value or "") for name, value in found.groupdict().items()})
        raise Refusal(404, message=f"no such endpoint: {self.command} {path}")

    @property
    def json(self):
        return json.loads(self.body or b"{}")

    def whoami(self):
        user = self.hub.user_of(self.token)
        if user is None:
            raise Refusal(401, message="Invalid username or password.")
        token = {"displayName": "token", "role": user[1]}
        organizations = [{"type": "org", "name": name} for name in user[2]]
        auth = {"type": "access_token", "accessToken": token}
        self.reply({"type": "user", "name": user[0], "orgs": organizations, "auth": auth})

    def create(self):
        self.reply(self.hub.create(self.token, self.json))

    def validate_yaml(self):
        block = re.match(r"\s*---\r?\n(.*?)\r?\n---", self.json["content"], flags=re.DOTALL)
        errors = [] if block else [{"message": "empty or missing yaml metadata in repo card"}]
        try:
            values = yaml.safe_load(block[1]) if block else {}
        except yaml.YAMLError as error:
            values, errors = {}, [{"message": str(error)}]
        if not isinstance(values, dict):
            errors.append({"message": "the metadata must be an object"})
        elif isinstance(values.get("license"), str) and not re.fullmatch(r"[a-z0-9.-]+", values["license"]):
            errors.append({"message": '"license" must be one of the known identifiers'})
        faulty = bool(errors and block)
        answer = {"errors": errors if faulty else [], "warnings": [] if faulty else errors}
        self.reply(answer, 400 if faulty else 200)

    def info(self, name, revision=""):
        repository = self.hub.repository(name, self.token)
        commit = repository.at(revision or "main")
        siblings = [{"rfilename": path} for path in sorted(commit.files)]
        about = {"id": name, "author": name.partition("/")[0], "sha": commit.sha, "private": repository.private}
        about |= {"siblings": siblings, "lastModified": DATE, "createdAt": DATE, "tags": [], "gated": False}
        self.reply({**about, "disabled": False, "downloads": 0, "likes": 0})

    def refs(self, name):
        repository = self.hub.repository(name, self.token)
        branches, tags = (
            [{"name": one, "ref": f"refs/{kind}/{one}", "targetCommit": sha} for one, sha in refs.items()]
            for kind, refs in (("heads", repository.branches), ("tags", repository.tags))
        )
        self.reply({"branches": branches, "tags": tags, "converts": [], "pullRequests": []})

    def entry(self, path, blob):
        about = {"type": "file", "path": path, "size": len(blob.content), "oid": blob.oid}
        if blob.large:
            sha256 = damaged(blob.sha256.encode()).decode() if self.fault and self.fault.damage else blob.sha256
            about["lfs"] = {"oid": sha256, "size": len(blob.content), "pointerSize": len(blob.pointer)}
        return about

    def tree(self, name, revision, folder=""):
        files = self.hub.repository(name, self.token).at(revision).files
        below = f"{folder}/" if folder else ""
        inside = {path: blob for path, blob in sorted(files.items()) if path.startswith(below)}
        if folder and not inside:
            raise Refusal(404, "EntryNotFound", f"{folder} does not exist on {revision!r}")
        recursive = self.query.get("recursive", ["false"])[0].lower() == "true"
        parents = {path: path.removeprefix(below).split("/")[:-1] for path in inside}
        folders = {
            below + "/".join(names[: depth + 1])
            for names in parents.values()
            for depth in range(len(names) if recursive else min(len(names), 1))
        }
        entries = [self.entry(path, blob) for path, blob in inside.items() if recursive or not parents[path]]
        entries += [{"type": "directory", "path": one, "oid": "0" * 40, "size": 0} for one in sorted(folders)]
        self.reply(entries)

    def preupload(self, name, revision):
        files = self.hub.repository(name, self.token, to_write=True).at(revision).files
        answers = []
        for file in self.json["files"]:
            large = bool(LARGE_NAMES.fullmatch(file["path"])) or file["size"] > LARGE_SIZE
            there = files.get(file["path"])
            oid = there and (there.sha256 if there.large else there.oid)
            mode = "lfs" if large else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.reply({"files": answers})

    def batch(self, name):
        self.hub.repository(name, self.token, to_write=True)
        self.reply({"transfer": "basic", "objects": [self.hub.upload_action(item) for item in self.json["objects"]]})

    def complete(self, secret, oid):
        numbers = [part["partNumber"] for part in self.json["parts"]]
        self.hub.storage[oid] = b"".join(self.hub.parts.pop((oid, number)) for number in numbers)
        self.reply({})

    def verify(self, secret):
        there = self.hub.storage.get(self.json["oid"])
        if secret != self.hub.secret or there is None or len(there) != self.json["size"]:
            raise Refusal(422, message="what was uploaded is not what was announced")
        self.reply({})

    def commit(self, name, revision):
        repository = self.hub.repository(name, self.token, to_write=True)
        lines = [json.loads(line) for line in self.body.splitlines()]
        self.reply(self.hub.commit(repository, revision, lines))

    def add_branch(self, name, branch):
        repository = self.hub.repository(name, self.token, to_write=True)
        if branch in repository.branches:
            raise Refusal(409, message=f"Reference refs/heads/{branch} already exists")
        repository.branches[branch] = repository.at(self.json.get("startingPoint", "main")).sha
        self.reply({})

    def add_tag(self, name, revision):
        repository = self.hub.repository(name, self.token, to_write=True)
        if self.json["tag"] in repository.tags:
            raise Refusal(409, message="Tag already exists")
        repository.tags[self.json["tag"]] = repository.at(revision).sha
        self.reply({})

    def resolve(self, name, revision, path):
        commit = self.hub.repository(name, self.token).at(revision)
        self.extra_headers = {"X-Repo-Commit": commit.sha}
        if path not in commit.files:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        blob = commit.files[path]
        if not blob.large:
            content = damaged(blob.content) if self.fault and self.fault.damage else blob.content
            return self.reply(content, headers={"X-Repo-Commit": commit.sha, "ETag": f'"{blob.oid}"'})
        about = {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.content))}
        place = f"{self.hub.storage_endpoint}/{self.hub.secret}/{blob.sha256}"
        return self.reply(b"", 302, {"Location": place, "X-Repo-Commit": commit.sha, **about})


_NAME = r"(?P<name>[\w.-]+/[\w.-]+)"
_MODEL = rf"/api/models/{_NAME}"
_REVISION = r"(?P<revision>[^/]+)"
ROUTES = (
    ("GET", r"/api/whoami-v2", HubHandler.whoami),
    ("POST", r"/api/repos/create", HubHandler.create),
    ("POST", r"/api/validate-yaml", HubHandler.validate_yaml),
    ("GET", _MODEL, HubHandler.info),
    ("GET", rf"{_MODEL}/revision/{_REVISION}", HubHandler.info),
    ("GET", rf"{_MODEL}/refs", HubHandler.refs),
    ("GET", rf"{_MODEL}/tree/{_REVISION}(?:/(?P<folder>.+))?", HubHandler.tree),
    ("POST", rf"{_MODEL}/preupload/{_REVISION}", HubHandler.preupload),
    ("POST", rf"{_MODEL}/commit/{_REVISION}", HubHandler.commit),
    ("POST", rf"{_MODEL}/branch/(?P<branch>[^/]+)", HubHandler.add_branch),
    ("POST", rf"{_MODEL}/tag/{_REVISION}", HubHandler.add_tag),
    ("POST", rf"/{_NAME}\.git/info/lfs/objects/batch", HubHandler.batch),
    ("POST", r"/complete/(?P<secret>\w+)/(?P<oid>\w+)", HubHandler.complete),
    ("POST", r"/verify/(?P<secret>\w+)", HubHandler.verify),
    ("GET", rf"/{_NAME}/resolve/{_REVISION}/(?P<path>.+)", HubHandler.resolve),
    ("HEAD", rf"/{_NAME}/resolve/{_REVISION}/(?P<path>.+)", HubHandler.resolve),
)
