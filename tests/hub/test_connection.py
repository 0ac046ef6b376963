"""Names on a Hub that cannot be reached: commands fail soon and say why; cached files are used."""

import json
import os
import socket
import time

import pytest
from huggingface_hub import HfApi, constants, hf_hub_download, set_client_factory
from huggingface_hub.errors import LocalEntryNotFoundError
from huggingface_hub.utils import http_backoff
from huggingface_hub.utils._http import default_client_factory
from processes import free_port, run_python

from hf_xorner.hub.connection import client

# Prints the seconds that each of the commands on standard input takes, without the imports.
TIMED = """
import json, sys, time
from hf_xorner.cli import benchmark, evaluate, main, tag, train, vectors
for words in json.load(sys.stdin):
    start = time.monotonic()
    try:
        main(words[0], words[1:])
    except SystemExit as stop:
        print(time.monotonic() - start, stop.code, flush=True)
"""


@pytest.fixture
def unreachable(request):
    """The address of a Hub that refuses connections, or of one that never answers."""
    if request.param == "refused":
        yield f"http://127.0.0.1:{free_port()}"
        return
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def impatient(online):
    """The client of the commands, in this process."""
    set_client_factory(client)
    yield
    set_client_factory(default_client_factory)


@pytest.mark.parametrize("unreachable", ["refused", "silent"], indirect=True)
def test_commands_fail_soon_and_say_what_cannot_be_reached(unreachable, tmp_path):
    (tmp_path / "train.txt").write_text("Oslo B-LOC\nrains O\n\n", encoding="utf-8")
    commands = {
        "owner/data": "train --dataset owner/data",
        "owner/model": "train --dataset train.txt --model_name_or_path owner/model",
        "owner/tagger": "evaluate --model owner/tagger --dataset train.txt",
        "owner/other": "tag --model owner/other --output out.jsonl train.txt",
        "owner/vectors:a.txt": "train --dataset train.txt --vectors owner/vectors:a.txt",
        "owner/pieces:a.safetensors": "train --dataset train.txt --composed owner/pieces:a.safetensors",
        "owner/encoder": "train --dataset train.txt --context owner/encoder",
        "some/encoder": "vectors distill --encoder some/encoder --vocab train.txt --output out",
    }
    variables = {"HF_ENDPOINT": unreachable, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    offline = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
    environment = {name: value for name, value in os.environ.items() if name not in offline} | variables
    given = json.dumps([command.split() for command in commands.values()])
    done = run_python(["-c", TIMED], given=given, cwd=tmp_path, env=environment)
    times = [line.split() for line in done.stdout.splitlines()]
    assert [code for _, code in times] == ["1"] * len(commands), done.stderr
    assert all(float(seconds) < 5 for seconds, _ in times), done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("hf-xorner")]
    assert len(errors) == len(commands), done.stderr
    for name, error in zip(commands, errors, strict=True):
        assert name in error and "check the connection" in error
        # The error of `datasets` does not contain the address.
        assert f"{unreachable} cannot be reached" in error or name == "owner/data"


@pytest.mark.parametrize("unreachable", ["silent"], indirect=True)
def test_a_silent_host_is_waited_for_once(unreachable, impatient):
    start = time.monotonic()
    for name in ("a.txt", "b.txt", "c.txt"):
        with pytest.raises(LocalEntryNotFoundError):
            hf_hub_download("ann/m", name, endpoint=unreachable)
    assert 1.5 < time.monotonic() - start < 5


@pytest.mark.parametrize("unreachable", ["silent"], indirect=True)
def test_the_wait_can_be_set(unreachable, impatient, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 1)
    set_client_factory(client)
    start = time.monotonic()
    with pytest.raises(LocalEntryNotFoundError):
        hf_hub_download("ann/m", "a.txt", endpoint=unreachable)
    assert time.monotonic() - start < 1.8


@pytest.mark.parametrize("unreachable", ["silent"], indirect=True)
def test_a_request_with_a_shorter_limit_of_its_own_is_not_repeated(unreachable, impatient):
    start = time.monotonic()
    with pytest.raises(LocalEntryNotFoundError):
        hf_hub_download("ann/m", "a.txt", endpoint=unreachable, etag_timeout=0.2)
    assert time.monotonic() - start < 1.8


@pytest.fixture
def published(online, hub):
    """A Hub with a file."""
    hub.add_user("ann", "hf_ann")
    api = HfApi(endpoint=hub.endpoint, token="hf_ann")
    api.create_repo("ann/m")
    api.upload_file(path_or_fileobj=b"text", path_in_repo="a.txt", repo_id="ann/m")
    return hub


def test_cached_files_are_used(published):
    path = hf_hub_download("ann/m", "a.txt", endpoint=published.endpoint)
    published.close()
    set_client_factory(client)
    try:
        assert hf_hub_download("ann/m", "a.txt", endpoint=published.endpoint) == path
    finally:
        set_client_factory(default_client_factory)


def test_errors_after_a_first_answer_are_retried(published, impatient):
    address = f"{published.endpoint}/api/models/ann/m"
    http_backoff("GET", address)
    published.fault("GET", "ann/m", deaf=True, times=2)
    assert http_backoff("GET", address).status_code == 200


def test_a_first_answer_with_an_error_is_retried(published, impatient):
    published.fault("HEAD", "a.txt", status=503, times=2)
    hf_hub_download("ann/m", "a.txt", endpoint=published.endpoint)
    assert len([path for _, path, _ in published.requests if path.endswith("a.txt")]) > 2
