"""Locks, whole writes, compressed files, and outputs that are inputs."""

import gzip
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import lock_holder, posix

from hf_xorner.errors import DataError
from hf_xorner.files import LockedError, check_apart, file_fingerprint, locked, read_text, replacing, write_whole


@posix
def test_a_second_process_is_refused_and_the_lock_of_a_killed_one_is_reused(tmp_path):
    lock = tmp_path / "new" / "[a]*.lock"
    with lock_holder(lock) as other:
        with pytest.raises(LockedError) as caught, locked(lock, "runs/a"):
            pass
        assert f"runs/a is being written by process {other.pid} on {socket.gethostname()};" in str(caught.value)
        other.kill()
        other.wait()
    with pytest.raises(KeyboardInterrupt), locked(lock, "runs/a"):
        # The same thread may take it again, and another may not.
        with locked(lock, "runs/a"), ThreadPoolExecutor() as pool, pytest.raises(LockedError):
            pool.submit(locked(lock, "runs/a").__enter__).result()
        assert lock.exists()
        raise KeyboardInterrupt
    assert not lock.exists()
    with lock_holder(lock):
        pass


def test_the_fingerprint_of_a_folder_does_not_depend_on_the_order_of_its_files(tmp_path, monkeypatch):
    for name in "abc":
        write_whole(tmp_path / name / "x", name)
    before, found = file_fingerprint(tmp_path), sorted(tmp_path.rglob("*"))
    for order in (found, found[::-1]):
        monkeypatch.setattr(Path, "rglob", lambda *_, order=order: iter(order))
        assert file_fingerprint(tmp_path) == before


def test_a_file_is_replaced_as_a_whole_or_stays_as_it_was(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "folder" / "file"
    plain.touch()
    for content in ("ne\u0301w\r\n", b"new\r\n"):
        assert write_whole(path, content) == path
        assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert path.stat().st_mode == plain.stat().st_mode
    with pytest.raises(KeyboardInterrupt), replacing(path) as new:
        new.write_text("half")
        raise KeyboardInterrupt
    assert (path.read_bytes(), os.listdir(path.parent)) == (b"new\r\n", ["file"])
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, "other")
    assert (path.read_bytes(), link.read_text(), link.is_symlink()) == (b"new\r\n", "other", False)


@posix
def test_devices_are_written_and_not_replaced():
    reader, writer = os.pipe()
    write_whole(Path(f"/dev/fd/{writer}"), "text")
    assert os.read(reader, 9) == b"text"


def test_texts_are_read_plain_or_compressed_and_faults_are_named(tmp_path):
    path = tmp_path / "texts"
    text = "a\x85b\u2028\r\nc\n"
    for content in (text.encode(), gzip.compress(text.encode())):
        path.write_bytes(content)
        assert read_text(path) == text
    for content, message in ((b"a\nb\xe9\n", "texts:2: "), (gzip.compress(os.urandom(9999))[:-900], "texts: the gzip")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_text(path)


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
