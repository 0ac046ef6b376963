"""Publishing to a local Hub: uploaded files, loading without this package, and errors."""

import json
import os
import shutil
import socket
import sys
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from conftest import REPOSITORY, SENTENCES
from datasets import Dataset
from huggingface_hub import HfApi, constants, get_session
from processes import free_port, run_python
from random_texts import lively_model
from transformers import TrainingArguments, pipeline

from hf_xorner.hub import Unfit, publish
from hf_xorner.hub.loading import Tagged
from hf_xorner.training import TaggerTrainer

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("forked_offline")]

TEXT = "Ann Smith met Zeus in New York ."
CARD = f"---\nlicense: mit\nwidget:\n- text: {TEXT}\n---\n# A tagger\n"
NAME = "ann/tagger"


@pytest.fixture(scope="session")
def saved(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("saved") / "tagger"
    lively_model("cross-bilstm-cnn", tokenizer, "crf").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    (folder / "training_args.bin").write_bytes(b"a pickle")
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "tagger"))


@pytest.fixture
def api(hub, online, monkeypatch):
    """The client of ann, who may write; how a model's code and a stranger's process are checked is tested elsewhere."""
    monkeypatch.setattr("hf_xorner.hub.checks.tag_in_new_process", lambda *_: [Tagged(TEXT, [])])
    monkeypatch.setattr("hf_xorner.hub.checks._faults_of_code", lambda _: [])
    hub.add_user("ann", "hf_ann", organizations=("birds",))
    return HfApi(endpoint=hub.endpoint, token="hf_ann")


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "training_args.bin"}


def refusal(*arguments, **options):
    with pytest.raises(ValueError) as caught:
        publish(*arguments, **options)
    (only,) = str(caught.value).splitlines()
    assert only.endswith(".")
    return only


def commits(hub, name=NAME):
    return len(hub.repositories[name].commits) - 1


# --- Uploads ----------------------------------------------------------------------------------------------------------


def test_the_model_is_uploaded_in_one_commit(hub, api, folder):
    done = publish(folder, NAME, tag="v1", api=api, commit_message="First")
    assert hub.files(NAME) == content(folder)
    assert commits(hub) == 1
    repository = hub.repositories[NAME]
    assert (repository.branches, repository.tags) == ({"main": done.commit}, {"v1": done.commit})
    assert repository.commits[done.commit].title == "First"
    assert repository.private is False
    assert done.url == f"{hub.endpoint}/{NAME}"
    assert {file.name for file in done.files} == set(content(folder))
    # The storage receives no token.
    assert {token for *_, token in hub.storage_requests} == {None}


def test_multipart_uploads(hub, api, folder):
    hub.part_size = 1000
    publish(folder, NAME, api=api)
    assert hub.files(NAME) == content(folder)
    assert len([1 for method, *_ in hub.storage_requests if method == "PUT"]) > 5


def test_publishing_a_private_model_of_an_organisation(hub, api, folder):
    publish(folder, "birds/tagger", private=True, api=api)
    assert hub.repositories["birds/tagger"].private is True
    assert hub.files("birds/tagger") == content(folder)


def test_publishing_to_a_branch(hub, api, folder):
    publish(folder, NAME, api=api)
    first = hub.files(NAME)
    (folder / "README.md").write_text(CARD + "second", encoding="utf-8")
    done = publish(folder, NAME, revision="try/two", tag="v2", api=api)
    assert hub.files(NAME) == first
    assert hub.files(NAME, "try/two") == hub.files(NAME, "v2") == content(folder)
    assert done.revision == "try/two"
    assert "2 files" not in refusal(folder, NAME, revision="try/two", api=api)


def test_a_published_model_is_not_overwritten_by_default(hub, api, folder):
    publish(folder, NAME, api=api)
    before = hub.files(NAME)
    (folder / "README.md").write_text(CARD + "second", encoding="utf-8")
    assert "--overwrite true" in refusal(folder, NAME, api=api)
    assert hub.files(NAME) == before
    publish(folder, NAME, overwrite=True, api=api)
    assert hub.files(NAME) == content(folder)
    assert commits(hub) == 2
    publish(folder, NAME, overwrite=True, api=api, tag="same")
    assert commits(hub) == 2


def test_overwriting_deletes_only_the_old_model(hub, api, folder):
    api.create_repo(NAME)
    old = ["model-00001-of-00002.safetensors", "model.safetensors.index.json", "piece_tokenizer.json", "facts.json"]
    old += ["handler.py", "requirements.txt"]
    kept = ["notes.txt", "LICENSE", "onnx/model.onnx", "old.png", "train.py", "model-a/x-of-y.safetensors", "a/tags.py"]
    for name in [*old, *kept]:
        api.upload_file(path_or_fileobj=b"x" * 9, path_in_repo=name, repo_id=NAME)
    publish(folder, NAME, overwrite=True, api=api)
    assert set(hub.files(NAME)) == {*content(folder), *kept}


def test_overwriting_deletes_only_the_code_of_the_old_model(hub, api, folder):
    """The modules that the earlier model names, with those that they import, in the commit of the new one."""
    shutil.copyfile(folder / "tags.py", folder / "old_tags.py")
    (folder / "old_model.py").write_text("from .old_tags import *\n")
    config = json.loads((folder / "config.json").read_text())
    new = json.dumps(config)
    config["auto_map"]["AutoModel"] = "old_model.Model"
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "handler.py").write_text("x = 1\n")
    (folder / "requirements.txt").write_text("torch\n")
    publish(folder, NAME, api=api)
    stale = {"old_model.py", "old_tags.py", "handler.py", "requirements.txt"}
    assert stale <= set(hub.files(NAME))
    api.upload_file(path_or_fileobj=b"from .old_tags import x\n", path_in_repo="mine.py", repo_id=NAME)
    for name in stale:
        (folder / name).unlink()
    (folder / "config.json").write_text(new)
    publish(folder, NAME, overwrite=True, api=api)
    assert hub.files(NAME) == content(folder) | {"mine.py": b"from .old_tags import x\n"}
    assert commits(hub) == 3
    assert ".gitattributes" in hub.repositories[NAME].at("main").files


def test_overwriting_keeps_requirements_without_a_handler(hub, api, folder):
    api.create_repo(NAME)
    api.upload_file(path_or_fileobj=b"torch", path_in_repo="requirements.txt", repo_id=NAME)
    publish(folder, NAME, overwrite=True, api=api)
    assert "requirements.txt" in hub.files(NAME)


@pytest.mark.parametrize("config", [b"[]", b"{", b'{"auto_map": {"AutoModel": "../x.A", "AutoConfig": "/etc/y.B"}}'])
def test_overwriting_an_unreadable_config(hub, api, folder, config):
    api.create_repo(NAME)
    for name, held in {"config.json": config, "mine.py": b"(" * 5000}.items():
        api.upload_file(path_or_fileobj=held, path_in_repo=name, repo_id=NAME)
    publish(folder, NAME, overwrite=True, api=api)
    assert hub.files(NAME) == content(folder) | {"mine.py": b"(" * 5000}


def test_old_code_that_cannot_be_downloaded_is_an_error(hub, api, folder):
    publish(folder, NAME, api=api)
    before = hub.files(NAME)
    hub.fault("GET", "/resolve/", status=500)
    assert "nothing was published" in refusal(folder, NAME, overwrite=True, api=api)
    assert hub.files(NAME) == before


def test_an_existing_empty_repository_is_used(hub, api, folder):
    api.create_repo(NAME, private=True)
    publish(folder, NAME, api=api)
    assert hub.files(NAME) == content(folder)
    assert hub.repositories[NAME].private is True


def test_refused_folders_create_no_repository(hub, api, folder):
    (folder / "README.md").unlink()
    (folder / "config.json").write_text((folder / "config.json").read_text().replace('"keep"', '"/home/ann/x"'))
    with pytest.raises(Unfit):
        publish(folder, NAME, api=api)
    assert hub.repositories == {}
    assert {method for method, *_ in hub.requests} == {"GET"}


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"repo_id": "tagger"}, "has no owner"),
        ({"repo_id": "a/b/c"}, "not a valid name"),
        ({"repo_id": "ann/--x"}, "not a valid name"),
        ({"revision": "no blanks"}, "revision='no blanks' is not a valid name"),
        ({"revision": "deadbeef"}, "revision='deadbeef' is not a valid name"),
        ({"tag": "../x"}, "tag='../x' is not a valid name"),
        ({"tag": ""}, "tag='' is not a valid name"),
    ],
)
def test_invalid_names_are_refused_without_requests(hub, api, folder, options, complaint):
    assert complaint in refusal(folder, **{"repo_id": NAME, "api": api, **options})
    assert hub.requests == []


@pytest.mark.parametrize(
    ("token", "name", "complaint"),
    [
        (None, NAME, "hf auth login"),
        ("hf_wrong", NAME, "does not know the token"),
        ("hf_reader", NAME, "read-only"),
        ("hf_ann", "bob/tagger", "the token may not do that"),
    ],
)
def test_a_missing_or_wrong_token_is_refused(hub, api, folder, monkeypatch, tmp_path, token, name, complaint):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    hub.add_user("ann", "hf_reader", role="read")
    assert complaint in refusal(folder, name, api=HfApi(endpoint=hub.endpoint, token=token))
    assert hub.repositories == {}


def test_publishing_to_a_repository_of_another_user_is_refused(hub, api, folder):
    hub.add_user("bob", "hf_bob")
    HfApi(endpoint=hub.endpoint, token="hf_bob").create_repo("bob/tagger")
    assert "the token may not do that" in refusal(folder, "bob/tagger", api=api)
    assert hub.files("bob/tagger") == {}


def test_private_publishing_to_a_public_repository_is_refused(hub, api, folder):
    api.create_repo(NAME)
    assert "is public" in refusal(folder, NAME, private=True, api=api)
    assert hub.files(NAME) == {}


def test_existing_tags_are_not_moved(hub, api, folder):
    publish(folder, NAME, tag="v1", api=api)
    tagged = dict(hub.repositories[NAME].tags)
    assert "has a tag v1 already" in refusal(folder, NAME, tag="v1", overwrite=True, api=api)
    assert "v1 is a tag" in refusal(folder, NAME, revision="v1", overwrite=True, api=api)
    assert hub.repositories[NAME].tags == tagged


# --- Errors -----------------------------------------------------------------------------------------------------------

STEPS = [
    ("GET", "whoami"),
    ("GET", "/api/models/ann/tagger$"),
    ("GET", "/refs$"),
    ("POST", "/repos/create"),
    ("POST", "/validate-yaml"),
    ("POST", "/preupload/"),
    ("POST", "/objects/batch"),
    ("PUT", ""),
    ("POST", "/verify/"),
    ("POST", "/commit/"),
    ("GET", "/resolve/"),
    ("POST", "/tag/"),
]


UNHEARD = [("POST", "/repos/create"), ("PUT", ""), ("POST", "/commit/"), ("POST", "/tag/")]


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [(*step, {"status": 503}) for step in STEPS] + [(*step, {"deaf": True}) for step in UNHEARD],
)
def test_temporary_errors_are_retried(hub, api, folder, method, path, what):
    hub.fault(method, path, times=1, **what)
    done = publish(folder, NAME, tag="v1", api=api)
    assert hub.faults[0].times == 0
    assert hub.files(NAME, done.commit) == content(folder)
    assert hub.repositories[NAME].tags == {"v1": done.commit}
    assert commits(hub) == 1


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_permanent_errors_are_reported(hub, api, folder, method, path):
    hub.fault(method, path, status=500)
    found = refusal(folder, NAME, tag="v1", api=api)
    assert "500" in found
    repository = hub.repositories.get(NAME)
    if (method, path) in STEPS[-2:]:
        assert f"holds commit {repository.branches['main'][:10]}" in found or "without the tag v1" in found
        assert hub.files(NAME) == content(folder)
    else:
        assert repository is None or hub.files(NAME) == {}
    assert repository is None or repository.tags == {}


@pytest.fixture
def slept(monkeypatch, api):
    """The seconds of each wait."""
    seconds = []
    monkeypatch.setattr("time.sleep", seconds.append)
    return seconds


@pytest.mark.parametrize(
    ("method", "path", "status"), [(*step, (429, 503)[number % 2]) for number, step in enumerate(STEPS)]
)
def test_retry_after_is_respected(hub, api, folder, slept, method, path, status):
    hub.fault(method, path, times=2, status=status, headers={"Retry-After": "17"})
    done = publish(folder, NAME, tag="v1", api=api)
    assert hub.files(NAME, done.commit) == content(folder)
    assert len([seconds for seconds in slept if 17 <= seconds <= 18]) == 2
    assert commits(hub) == 1


@pytest.mark.parametrize(
    ("status", "headers", "least", "most"),
    [
        (429, {"RateLimit": '"api";r=0;t=55'}, 55, 56),
        (429, {"RateLimit": '"api";r=3;t=55', "Retry-After": "4"}, 4, 5),
        (503, {"Retry-After": "a date in 200 seconds"}, 150, 200),
        (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 1),
        (429, {"Retry-After": "0"}, 0, 1),
        (429, {"Retry-After": "soon"}, 0, 1),
        (429, {"Retry-After": "-5"}, 0, 1),
        (429, {"Retry-After": "\u00b2"}, 0, 1),
        (429, {"Retry-After": "Wed, 21 Oct 99999999999 07:28:00 GMT"}, 0, 1),
        (500, {"Retry-After": "200"}, 0, 1),
    ],
)
def test_forms_of_retry_after(hub, api, folder, slept, status, headers, least, most):
    """The first request is asked in a thread, the second is not."""
    if "date" in headers.get("Retry-After", ""):
        later = datetime.now(timezone.utc) + timedelta(seconds=200)
        headers = {"Retry-After": format_datetime(later, usegmt=True)}
    for path in ("whoami", "/api/models/ann/tagger$"):
        hub.fault("GET", path, times=1, status=status, headers=headers)
    publish(folder, NAME, api=api)
    assert len(slept) == 2
    assert all(least <= waited <= most for waited in slept)


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_long_retry_after_is_an_error(hub, api, folder, slept, method, path):
    hub.fault(method, path, status=429, headers={"Retry-After": "86400"})
    assert "asks to wait 86400 seconds" in refusal(folder, NAME, tag="v1", api=api)
    assert sum(slept) == 0
    assert len([1 for request in hub.requests + hub.storage_requests if request[0] == method]) < 40


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_the_total_retry_time_is_limited(hub, api, folder, slept, method, path):
    hub.fault(method, path, status=503, headers={"Retry-After": "50"})
    assert "asks to wait 50 seconds" in refusal(folder, NAME, tag="v1", api=api)
    assert 100 <= sum(slept) <= 320


def test_timeouts_of_the_client_are_restored(hub, api, folder):
    session = get_session()
    before = session.timeout, session.event_hooks
    publish(folder, NAME, api=api)
    assert (session.timeout, session.event_hooks) == before


def test_a_connection_that_always_breaks_is_an_error(hub, api, folder):
    hub.fault("PUT", "", cut_after=1000)
    found = refusal(folder, NAME, tag="v1", api=api)
    assert "the connection to the Hub broke" in found
    assert "nothing was published: ann/tagger is empty" in found
    assert hub.files(NAME) == {}
    assert hub.repositories[NAME].tags == {}
    hub.faults.clear()
    publish(folder, NAME, tag="v1", api=api)
    assert hub.files(NAME) == content(folder)


def test_a_broken_connection_is_retried(hub, api, folder):
    hub.fault("PUT", "", cut_after=1000, times=1)
    hub.fault("POST", "/commit/", cut_after=1000, times=1)
    publish(folder, NAME, api=api)
    assert hub.files(NAME) == content(folder)
    assert commits(hub) == 1


def test_a_failed_upload_keeps_the_published_model(hub, api, folder):
    publish(folder, NAME, api=api)
    before = hub.files(NAME)
    (folder / "README.md").write_text(CARD + "second", encoding="utf-8")
    hub.fault("POST", "/commit/", cut_after=10)
    assert "nothing was published: ann/tagger holds what it held" in refusal(folder, NAME, overwrite=True, api=api)
    assert hub.files(NAME) == before


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [("PUT", "", "model.safetensors"), ("GET", "resolve/[0-9a-f]+/tags.py", "tags.py"), ("GET", "[0-9a-f]{64}$", "")],
)
def test_corrupted_uploads_are_detected(hub, api, folder, method, path, name):
    hub.fault(method, path, damage=True)
    found = refusal(folder, NAME, tag="v1", api=api)
    assert f"but {name}" in found
    assert "came back with another hash" in found
    assert hub.repositories[NAME].branches["main"][:10] in found
    assert hub.repositories[NAME].tags == {}


def test_a_concurrent_commit_is_an_error(hub, api, folder, monkeypatch):
    api.create_repo(NAME)
    sent = api.create_commit

    def too_late(*arguments, **options):
        hub.repositories[NAME].commit("main", "meanwhile", {})
        return sent(*arguments, **options)

    monkeypatch.setattr(api, "create_commit", too_late)
    found = refusal(folder, NAME, api=api)
    assert "someone else has published there meanwhile" in found
    assert "has another commit now" in found
    assert hub.files(NAME) == {}


def test_a_card_that_the_hub_refuses_is_an_error(hub, api, folder):
    (folder / "README.md").write_text("---\nlicense: My Very Own!\n---\n", encoding="utf-8")
    found = refusal(folder, NAME, api=api)
    assert "license" in found
    assert "is empty" in found
    assert hub.files(NAME) == {}


# --- Unreachable Hub --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["offline", "refused", "silent", "mute", "name"])
def test_an_unreachable_hub_is_reported_within_two_seconds(hub, api, folder, monkeypatch, how):
    monkeypatch.undo()  # with the real waits
    if how != "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    if how == "refused":
        api = HfApi(endpoint=f"http://127.0.0.1:{free_port()}", token="hf_ann")
    elif how == "silent":
        hub.fault("GET", "whoami", hang=True)
    elif how == "mute":
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        api = HfApi(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}", token="hf_ann")
    elif how == "name":
        api = HfApi(endpoint="http://hub.invalid", token="hf_ann")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(20))
    start = time.monotonic()
    found = refusal(folder, NAME, api=api)
    assert time.monotonic() - start < 2.0
    assert "HF_HUB_OFFLINE" in found if how == "offline" else "cannot be reached" in found
    assert hub.repositories == {}


def test_a_hub_that_does_not_respond_times_out(hub, api, folder, monkeypatch):
    monkeypatch.setattr(sys.modules["hf_xorner.hub.publish"], "SILENCE", 0.2)
    hub.fault("POST", "/commit/", hang=True)
    start = time.monotonic()
    found = refusal(folder, NAME, api=api)
    assert time.monotonic() - start < 20
    assert "timed out" in found
    assert hub.files(NAME) == {}


# --- The Trainer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["end", "every_save", "all_checkpoints"])
def test_the_trainer_uploads_no_pickle(hub, api, tokenizer, tmp_path, monkeypatch, strategy):
    monkeypatch.setattr("transformers.trainer.hf_api", lambda: api)
    monkeypatch.setattr("hf_xorner.training.trainer.HfApi", lambda: api)
    rows = {"tokens": SENTENCES, "ner_tags": [[0] * len(words) for words in SENTENCES]}
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        save_steps=1,
        push_to_hub=True,
        hub_model_id=NAME,
        hub_strategy=strategy,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    model = lively_model("cross-bilstm-cnn", tokenizer, "softmax")
    trainer = TaggerTrainer(model, arguments, train_dataset=Dataset.from_dict(rows), processing_class=tokenizer)
    trainer.train()
    assert (tmp_path / "out" / "training_args.bin").exists() or list((tmp_path / "out").glob("checkpoint-*"))
    (tmp_path / "out").joinpath("README.md").write_text(CARD)
    trainer.push_to_hub()
    files = hub.files(NAME)
    assert {"config.json", "model.safetensors", "tokenizer.json", "modeling_bilstm_cnn.py"} <= set(files)
    assert files["README.md"].decode() == CARD
    every = {path for commit in hub.repositories[NAME].commits.values() for path in commit.files}
    assert not [path for path in every if path.endswith((".bin", ".pt", ".pth", ".pkl")) or "checkpoint" in path]


# --- Processes --------------------------------------------------------------------------------------------------------


def in_process(arguments, environment, cwd):
    result = run_python(arguments, cwd=cwd, env={**os.environ, **environment})
    return result.returncode, result.stdout, result.stderr


STRANGER = """
import json, os, sys
import transformers
answers = []
for kind, options in json.loads(sys.argv[2]):
    try:
        if kind == "pipeline":
            ner = transformers.pipeline("ner", sys.argv[3], aggregation_strategy="simple", **options)
            answer = [(one["entity_group"], one["start"], one["end"]) for one in ner(sys.argv[1])]
            assert type(ner.model).__module__.startswith("transformers_modules."), type(ner.model)
        else:
            answer = type(getattr(transformers, kind).from_pretrained(sys.argv[3], **options)).__module__
    except (ValueError, OSError) as error:
        answer = str(error)
    answers.append((answer, os.path.exists("ran")))
assert "hf_xorner" not in sys.modules
print("\\n" + json.dumps(answers))
"""


def load_without_package(hub, home, *ways):
    """The results of a process without this package in each way: entities from a pipeline, a class, or an error.

    A way is "pipeline" or an automatic class, and options. With each comes whether there is then a file `ran`.
    """
    home.mkdir()
    environment = {**hub.environment(home), "PYTHONPATH": ""}
    code, out, errors = in_process(["-c", STRANGER, TEXT, json.dumps(ways), NAME], environment, home)
    assert code == 0, errors[-3000:]
    return json.loads(out.splitlines()[-1])


def test_a_private_model_is_published_by_the_script_and_loaded(hub, folder, tmp_path):
    """By branch, tag and commit, with the token and without."""
    ner = pipeline("ner", model=str(folder), aggregation_strategy="simple")
    here = [[one["entity_group"], one["start"], one["end"]] for one in ner(TEXT)]
    assert here
    hub.add_user("ann", "hf_ann")
    script = [REPOSITORY / "scripts" / "publish.py", folder, "--repo_id", NAME, "--private", "true", "--tag", "v1"]
    environment = hub.environment(tmp_path / "home", token="hf_ann")
    code, out, errors = in_process(script, environment, tmp_path)
    assert code == 0, errors[-3000:]
    commit = hub.repositories[NAME].branches["main"]
    assert commit in out
    assert "hf_ann" not in out + errors
    assert hub.files(NAME) == content(folder)
    mine = {"trust_remote_code": True, "token": "hf_ann"}
    ways = [{**mine, "token": False}, mine, {**mine, "revision": "v1"}, {**mine, "revision": commit}]
    ways = [("pipeline", options) for options in ways]
    (refused, _), *answers = load_without_package(hub, tmp_path / "a", *ways)
    assert "is not a local folder and is not a valid model identifier" in refused
    assert [answer for answer, _ in answers] == [here] * 3


def test_code_runs_only_with_trust_remote_code(hub, api, folder, tmp_path):
    """Modules that leave a trace when they are run leave none, until they are trusted."""
    for path in folder.glob("*.py"):
        path.write_text(f"{path.read_text()}\nimport pathlib\npathlib.Path('ran').touch()\n")
    api.create_repo(NAME)
    api.upload_folder(repo_id=NAME, folder_path=folder)
    kinds = ("pipeline", "AutoConfig", "AutoTokenizer", "AutoModelForTokenClassification")
    ways = [(kind, {}) for kind in kinds] + [("pipeline", {"trust_remote_code": True})]
    *untrusting, (entities, ran) = load_without_package(hub, tmp_path / "a", *ways)
    for complaint, ran_before in untrusting:
        assert "contains custom code which must be executed to correctly load the model" in complaint
        assert "trust_remote_code=True" in complaint
        assert ran_before is False
    assert isinstance(entities, list)
    assert ran is True


def test_a_dry_run_makes_no_requests(hub, online, script, folder, monkeypatch):
    hub.add_user("ann", "hf_ann")
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_TOKEN", "hf_ann")
    code, out, errors = script("publish.py", folder, "--repo_id", NAME, "--dry_run")
    assert code == 0, errors[-3000:]
    for name, held in content(folder).items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert f"{len(held):,}" in line
    assert f"{len(content(folder))} files, {sum(map(len, content(folder).values())):,} bytes for {NAME}" in out
    assert "left here: training_args.bin" in out
    assert TEXT in out
    assert hub.requests == hub.storage_requests == []


def test_the_script_prints_one_line_errors(script, folder):
    (folder / "README.md").unlink()
    (folder / "model.safetensors").unlink()
    code, out, errors = script("publish.py", folder, "--repo_id", NAME, "--dry_run", "true")
    assert (code, out) == (1, "")
    lines = errors.strip().splitlines()[-2:]
    assert all(line.startswith("hf-xorner publish: ") and line.endswith(".") for line in lines)
    assert ["model.safetensors" in lines[0], "README.md" in lines[1]] == [True, True]
    code, out, errors = script("publish.py", folder, "--repo_id", NAME)
    assert (code, out) == (1, "")
    assert errors.strip().splitlines()[-1].startswith("hf-xorner publish: HF_HUB_OFFLINE")


@pytest.mark.slow
def test_training_with_push_to_hub_publishes_the_model(hub, tmp_path):
    """`train.py --push_to_hub true` looks before it trains, checks, and uploads no pickle."""
    hub.add_user("ann", "hf_ann")
    environment = hub.environment(tmp_path / "home", token="hf_ann")
    script = [REPOSITORY / "scripts" / "train.py", "--num_train_epochs", "1", "--disable_tqdm", "true"]
    script += ["--push_to_hub", "true"]
    code, _, errors = in_process(script, environment, tmp_path)
    assert (code, errors.splitlines()[-1]) == (
        1,
        "hf-xorner train: push_to_hub needs hub_model_id, the repository as owner/name.",
    )
    script += ["--hub_model_id", NAME, "--hub_private_repo", "true"]
    code, out, errors = in_process(script, environment, tmp_path)
    assert code == 0, errors[-3000:]
    assert commits(hub) == 1
    assert hub.repositories[NAME].private is True
    assert f"commit {hub.repositories[NAME].branches['main']}" in out
    assert not [name for name in hub.files(NAME) if name.endswith(".bin")]
    code, out, errors = in_process(script, environment, tmp_path)
    assert (code, out) == (1, "")
    assert "--overwrite true" in errors.splitlines()[-1]
