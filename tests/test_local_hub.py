"""The local Hub with the real client: the behaviour that the tests of publishing rely on."""

import hashlib
import time

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_download
from huggingface_hub.errors import (
    BadRequestError,
    EntryNotFoundError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import get_session, hf_raise_for_status

WEIGHTS = bytes(range(256)) * 40


# httpx2 has its complaints about how the client hands it a file.
pytestmark = [pytest.mark.usefixtures("online"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def ann(hub):
    hub.add_user("ann", "hf_ann", organizations=("birds",))
    return HfApi(endpoint=hub.endpoint, token="hf_ann")


@pytest.fixture
def bob(hub):
    hub.add_user("bob", "hf_bob")
    return HfApi(endpoint=hub.endpoint, token="hf_bob")


@pytest.fixture
def anonymous(hub):
    return HfApi(endpoint=hub.endpoint, token=False)


def commit(api, files, name="ann/m", **options):
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    return api.create_commit(name, operations, commit_message="add", **options).oid


def fetched(api, path, name="ann/m", **options):
    place = hf_hub_download(name, path, endpoint=api.endpoint, token=api.token, **options)
    with open(place, "rb") as file:
        return file.read()


def test_whoami(hub, ann):
    me = ann.whoami()
    assert (me["name"], me["orgs"][0]["name"], me["auth"]["accessToken"]["role"]) == ("ann", "birds", "write")
    with pytest.raises(HfHubHTTPError, match="Invalid user token"):
        HfApi(endpoint=hub.endpoint, token="hf_nobody").whoami()


def test_committed_files_can_be_downloaded(hub, ann, anonymous):
    assert ann.create_repo("ann/m").repo_id == "ann/m"
    assert hub.files("ann/m") == {}
    files = {"config.json": b"{}", "model.safetensors": WEIGHTS, "sub/deep/a.txt": "ä".encode(), "empty.txt": b""}
    sha = commit(ann, files)
    assert hub.files("ann/m") == files
    assert anonymous.model_info("ann/m").sha == sha
    assert anonymous.model_info("ann/m", revision=sha[:10]).sha == sha
    assert {one.rfilename for one in anonymous.model_info("ann/m").siblings} == {".gitattributes", *files}
    for path, content in files.items():
        assert fetched(anonymous, path) == content
    # The token stays with the Hub: the address in the storage is enough.
    assert {method for method, *_ in hub.storage_requests} == {"PUT", "GET"}
    assert {token for *_, token in hub.storage_requests} == {None}


def test_files_can_be_deleted_and_commits_are_atomic(hub, ann):
    ann.create_repo("ann/m")
    sha = commit(ann, {"a.txt": b"a", "b.txt": b"b"})
    operations = [CommitOperationAdd("c.txt", b"c"), CommitOperationDelete("nothing.txt")]
    with pytest.raises(EntryNotFoundError):
        ann.create_commit("ann/m", operations, commit_message="half")
    assert ann.model_info("ann/m").sha == sha
    assert hub.files("ann/m") == {"a.txt": b"a", "b.txt": b"b"}
    ann.create_commit("ann/m", [operations[0], CommitOperationDelete("a.txt")], commit_message="whole")
    assert hub.files("ann/m") == {"b.txt": b"b", "c.txt": b"c"}


def test_a_commit_with_another_parent_is_refused(ann):
    ann.create_repo("ann/m")
    first = commit(ann, {"a.txt": b"a"})
    commit(ann, {"a.txt": b"b"}, parent_commit=first)
    with pytest.raises(HfHubHTTPError, match="412"):
        commit(ann, {"a.txt": b"c"}, parent_commit=first)


@pytest.mark.parametrize("part_size", [1000, 10_239])
def test_multipart_uploads_of_large_files(hub, ann, part_size):
    hub.part_size = part_size
    ann.create_repo("ann/m")
    commit(ann, {"model.safetensors": WEIGHTS})
    assert hub.files("ann/m") == {"model.safetensors": WEIGHTS}
    assert len(hub.storage_requests) == -(-len(WEIGHTS) // part_size)


def test_branches_and_tags(hub, ann):
    ann.create_repo("ann/m")
    first = commit(ann, {"a.txt": b"1"})
    ann.create_branch("ann/m", branch="try/it")
    second = commit(ann, {"a.txt": b"2"}, revision="try/it")
    ann.create_tag("ann/m", tag="v1", revision=second)
    refs = ann.list_repo_refs("ann/m")
    assert {one.name: one.target_commit for one in refs.branches} == {"main": first, "try/it": second}
    assert {one.name: one.target_commit for one in refs.tags} == {"v1": second}
    assert [fetched(ann, "a.txt", revision=one) for one in ("main", "try/it", "v1", first)] == [b"1", b"2", b"2", b"1"]
    for again in (lambda: ann.create_branch("ann/m", branch="try/it"), lambda: ann.create_tag("ann/m", tag="v1")):
        with pytest.raises(HfHubHTTPError, match="409"):
            again()
    ann.create_branch("ann/m", branch="try/it", exist_ok=True)
    for ask in (lambda: ann.model_info("ann/m", revision="v2"), lambda: commit(ann, {"a": b"3"}, revision="try/none")):
        with pytest.raises(RevisionNotFoundError):
            ask()


def test_a_private_repository_is_hidden_from_others(ann, bob, anonymous, tmp_path):
    ann.create_repo("ann/m", private=True)
    commit(ann, {"a.txt": b"a"})
    assert ann.model_info("ann/m").private is True
    assert fetched(ann, "a.txt") == b"a"
    for other, status in ((bob, 404), (anonymous, 401)):
        for ask in (other.model_info, other.list_repo_refs, lambda name, api=other: list(api.list_repo_tree(name))):
            with pytest.raises(RepositoryNotFoundError, match=str(status)):
                ask("ann/m")
        with pytest.raises((RepositoryNotFoundError, LocalEntryNotFoundError)):
            fetched(other, "a.txt", cache_dir=tmp_path)
    assert not anonymous.repo_exists("ann/none")


def test_write_permissions(hub, ann, bob, anonymous):
    ann.create_repo("ann/m")
    ann.create_repo("birds/m")
    hub.add_user("ann", "hf_reader", role="read")
    reader = HfApi(endpoint=hub.endpoint, token="hf_reader")
    for other in (bob, reader):
        with pytest.raises(HfHubHTTPError, match="403"):
            commit(other, {"a.txt": b"a"})
        with pytest.raises(HfHubHTTPError, match="403"):
            other.create_repo("ann/new")
    with pytest.raises(HfHubHTTPError, match="401"):
        commit(anonymous, {"a.txt": b"a"})
    with pytest.raises(HfHubHTTPError, match="409"):
        ann.create_repo("ann/m")
    ann.create_repo("ann/m", exist_ok=True)


def test_missing_repositories_and_files(ann):
    ann.create_repo("ann/m")
    with pytest.raises(EntryNotFoundError):
        fetched(ann, "nothing.txt")
    with pytest.raises(RevisionNotFoundError):
        fetched(ann, ".gitattributes", revision="nowhere")
    with pytest.raises(BadRequestError, match="never uploaded"):
        commit_what_was_not_uploaded(ann, "0" * 64)


def commit_what_was_not_uploaded(api, oid):
    """Commit a large file that was not uploaded, which the client itself would not do."""
    lines = b'{"key": "header", "value": {"summary": "x"}}\n'
    lines += b'{"key": "lfsFile", "value": {"path": "a.bin", "oid": "%s", "size": 1}}' % oid.encode()
    headers = {"Authorization": f"Bearer {api.token}"}
    url = f"{api.endpoint}/api/models/ann/m/commit/main"
    hf_raise_for_status(get_session().post(url, content=lines, headers=headers))


@pytest.mark.parametrize("card", ["---\nlicense: [\n---\n", "---\nlicense: My Own!\n---\n", "---\n- a\n---\n"])
def test_an_invalid_card_is_refused(hub, ann, card):
    ann.create_repo("ann/m")
    with pytest.raises(ValueError, match=r"Invalid metadata in README\.md"):
        commit(ann, {"README.md": card.encode()})
    assert hub.files("ann/m") == {}


# --- Faults ---------------------------------------------------------------------------------------------------------


def test_a_connection_that_breaks_within_the_body(hub, ann):
    ann.create_repo("ann/m")
    hub.fault("PUT", "", cut_after=100, times=1)
    commit(ann, {"model.safetensors": WEIGHTS})
    hub.fault("PUT", "", cut_after=100)
    with pytest.raises(RuntimeError, match=r"Error while uploading 'other.safetensors'"):
        commit(ann, {"other.safetensors": WEIGHTS[1:]})
    assert set(hub.files("ann/m")) == {"model.safetensors"}


def test_a_lost_response_after_a_completed_request(hub, ann):
    ann.create_repo("ann/m")
    hub.fault("POST", "/commit/", deaf=True, times=1)
    with pytest.raises(Exception, match=r"disconnected|reset"):
        commit(ann, {"a.txt": b"a"})
    assert hub.files("ann/m") == {"a.txt": b"a"}


def test_bytes_corrupted_in_storage_and_in_transfer(hub, ann, tmp_path):
    ann.create_repo("ann/m")
    hub.fault("PUT", "", damage=True, times=1)
    commit(ann, {"model.safetensors": WEIGHTS, "a.txt": b"abc"})
    tree = {one.path: one for one in ann.list_repo_tree("ann/m")}
    assert tree["model.safetensors"].lfs.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert fetched(ann, "model.safetensors") == WEIGHTS[:-1] + b"\xfe"
    hub.fault("GET", "/resolve/", damage=True, times=1)
    assert fetched(ann, "a.txt") == b"abb"
    hub.fault("GET", "/tree/", damage=True, times=1)
    tree = {one.path: one for one in ann.list_repo_tree("ann/m")}
    assert tree["model.safetensors"].lfs.sha256 != hashlib.sha256(WEIGHTS).hexdigest()


def test_a_hub_that_does_not_respond(hub, ann):
    hub.fault("GET", "whoami", hang=True)
    start = time.monotonic()
    with pytest.raises(Exception, match="timed out"):
        get_session().get(f"{hub.endpoint}/api/whoami-v2", timeout=0.2)
    assert time.monotonic() - start < 5
    hub.close()
