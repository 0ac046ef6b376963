"""A plugin of pytest: a folder to publish, and methods of HfApi that publishing calls, on repositories in memory."""

import json
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import SENTENCES
from huggingface_hub.utils import filter_repo_objects

TEXT = " ".join(SENTENCES[0])
CARD = f"---\nlicense: mit\nwidget:\n- text: {TEXT}\n---\n# A tagger\n"


@pytest.fixture
def folder(tagger_folder, tmp_path):
    """A saved tagger with a card."""
    folder = Path(shutil.copytree(tagger_folder, tmp_path / "tagger"))
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


@pytest.fixture
def hub(monkeypatch):
    """The client; that the model works in a new process is tested elsewhere."""
    monkeypatch.setattr("hf_xorner.hub.checks.run_without_package", lambda *_: json.dumps([[TEXT, []]]))
    return FakeHub()


class FakeHub:
    """Repositories by name.

    Attributes:
        repositories: Of each repository `private`, `tags` (commit by name) and `branches` (files by name).
        calls: The names of the methods that were called.
        failing: The name of a method that raises.
    """

    def __init__(self):
        self.repositories, self.calls, self.failing = {}, [], None
        self.endpoint = "https://hub.example"

    def _called(self, name):
        self.calls.append(name)
        if name == self.failing:
            raise ConnectionError(f"{name}\nfailed")

    def create_repo(self, repo_id, *, private=None, exist_ok=False):
        self._called("create_repo")
        if repo_id in self.repositories and not exist_ok:
            raise OSError("409 Conflict")
        new = SimpleNamespace(private=bool(private), branches={"main": {".gitattributes": b""}}, tags={})
        self.repositories.setdefault(repo_id, new)
        return SimpleNamespace(repo_id=repo_id)

    def create_branch(self, repo_id, *, branch, exist_ok=False):
        self._called("create_branch")
        branches = self.repositories[repo_id].branches
        if branch in branches and not exist_ok:
            raise OSError("409 Conflict")
        branches.setdefault(branch, dict(branches["main"]))

    def model_info(self, repo_id, *, revision):
        self._called("model_info")
        repository = self.repositories[repo_id]
        siblings = [SimpleNamespace(rfilename=name) for name in repository.branches[revision]]
        return SimpleNamespace(private=repository.private, siblings=siblings)

    def list_repo_refs(self, repo_id):
        self._called("list_repo_refs")
        return SimpleNamespace(tags=[SimpleNamespace(name=name) for name in self.repositories[repo_id].tags])

    def upload_folder(self, *, repo_id, folder_path, revision, commit_message, allow_patterns, delete_patterns):
        self._called("upload_folder")
        paths = (path.relative_to(folder_path).as_posix() for path in Path(folder_path).rglob("*") if path.is_file())
        uploaded = {
            name: (Path(folder_path) / name).read_bytes()
            for name in filter_repo_objects(paths, allow_patterns=allow_patterns)
        }
        branches = self.repositories[repo_id].branches
        kept = {
            name: content
            for name, content in branches[revision].items()
            if not any(fnmatchcase(name, pattern) for pattern in delete_patterns or ())
        }
        branches[revision] = kept | uploaded
        url = f"https://hub/{repo_id}"
        return SimpleNamespace(oid=f"commit {len(self.calls)}", commit_url=url, title=commit_message)

    def create_tag(self, repo_id, *, tag, revision):
        self._called("create_tag")
        if tag in self.repositories[repo_id].tags:
            raise OSError("409 Conflict")
        self.repositories[repo_id].tags[tag] = revision

    def files(self, repo_id, branch="main"):
        """Return the contents of a branch by name, without those of a new repository."""
        return {
            name: content
            for name, content in self.repositories[repo_id].branches[branch].items()
            if name != ".gitattributes"
        }
