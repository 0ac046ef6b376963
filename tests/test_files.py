"""Locks, atomic writes and fingerprints of files."""

import hashlib
import os
import signal
import socket
import threading

import pytest
from helpers import lock_holder

from hf_xorner.errors import DataError
from hf_xorner.files import LockedError, check_apart, file_fingerprint, locked, replacing, sha256_of, write_whole


def test_a_second_process_is_refused_until_the_first_releases_the_lock(tmp_path):
    lock = tmp_path / "new" / "[a]*.lock"
    with lock_holder(lock) as other:
        with pytest.raises(LockedError) as caught, locked(lock, "runs/a"):
            pass
        assert f"runs/a is being written by process {other.pid} on {socket.gethostname()};" in str(caught.value)
    with locked(lock, "runs/a"):
        assert lock.exists()
    assert not lock.exists()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    lock = tmp_path / ".lock"
    with lock_holder(lock) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert lock.read_text() == f"process {other.pid} on {socket.gethostname()}"
    with locked(lock, "runs/a"):
        assert lock.read_text() == f"process {os.getpid()} on {socket.gethostname()}"


def test_an_error_releases_the_lock(tmp_path):
    lock = tmp_path / ".lock"
    with pytest.raises(KeyboardInterrupt), locked(lock, "runs/a"):
        raise KeyboardInterrupt
    assert not lock.exists()
    with lock_holder(lock):
        pass


def test_a_thread_may_take_its_lock_again_and_another_thread_may_not(tmp_path):
    lock, refused = tmp_path / ".lock", []

    def take():
        try:
            with locked(lock, "runs/a"):
                pass
        except LockedError as error:
            refused.append(error)

    with locked(lock, "runs/a"):
        with locked(lock, "runs/a"):
            pass
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert lock.exists()
    assert len(refused) == 1


@pytest.mark.parametrize("process", [0, 1])
def test_an_output_stays_locked_while_any_process_of_a_run_lives(tmp_path, process):
    """Whichever of two processes outlives the other, neither a run of one nor a run of two processes may begin."""
    lock = tmp_path / ".lock"
    with lock_holder(lock, process, 2) as other:
        for number, count in ((0, 1), (process, 2)):
            with pytest.raises(LockedError, match=f"process {other.pid} "), locked(lock, "runs/a", number, count):
                pass
        with locked(lock, "runs/a", 1 - process, 2):
            pass
    with locked(lock, "runs/a"):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("content", [b"new\r\n", "ne\u0301w\r\n"])
def test_a_file_is_replaced_as_a_whole_with_the_permissions_of_any_new_file(tmp_path, content):
    plain, path = tmp_path / "plain", tmp_path / "folder" / "file"
    plain.touch()
    for _ in range(2):
        assert write_whole(path, content) == path
        assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert path.stat().st_mode == plain.stat().st_mode
    assert os.listdir(path.parent) == ["file"]


def test_a_file_stays_as_it_was_after_an_error(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as new:
        new.write_text("half")
        raise KeyboardInterrupt
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["file"])


def test_a_link_is_replaced_and_what_it_points_to_is_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("old", "new", False)


def test_the_fingerprint_of_a_folder_covers_names_and_contents(tmp_path):
    def fingerprint(**files):
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        for name, content in files.items():
            write_whole(folder / "inner" / name, content)
        return file_fingerprint(folder)

    one = fingerprint(a="x", b="y")
    assert one == fingerprint(b="y", a="x") and one["bytes"] == 2
    different = [fingerprint(a="x", c="y"), fingerprint(a="x", b="z"), fingerprint(a="y", b="x"), fingerprint(a="x")]
    assert one["sha256"] not in [other["sha256"] for other in different]


def test_the_sha256_of_a_file_is_that_of_its_bytes(tmp_path):
    content = os.urandom((1 << 20) + 3)
    path = write_whole(tmp_path / "file", content)
    expected = hashlib.sha256(content).hexdigest()
    assert sha256_of(path) == expected
    assert file_fingerprint(path) == {"bytes": len(content), "sha256": expected}


def test_an_output_that_is_an_input_is_refused_by_every_name(tmp_path, monkeypatch):
    folder = tmp_path / "corpus"
    folder.mkdir()
    source = folder / "g.conll"
    source.write_text("Oslo B-LOC\n")
    link, hard, linked = tmp_path / "link.conll", tmp_path / "hard.conll", tmp_path / "linked"
    link.symlink_to(source)
    hard.hardlink_to(source)
    linked.symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    for output in (source, link, hard, linked / "g.conll", folder / ".." / "corpus" / "g.conll", "corpus/g.conll"):
        for read in (source, folder, linked, "corpus"):
            with pytest.raises(DataError):
                check_apart(output, "owner/name", read)
    with pytest.raises(DataError):
        check_apart(linked, folder)
    other = folder.parent / "other.conll"
    other.touch()
    check_apart(other, source, folder, "owner/name")
    check_apart(folder / "new.conll", source, folder)
    check_apart(folder, source)
