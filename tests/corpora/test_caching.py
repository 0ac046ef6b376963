"""The dataset cache: hits, misses and failures."""

import os
import re
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from hf_xorner.corpora import DataError, load_corpus
from hf_xorner.corpora import assemble as assembly


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.conll"
    path.write_text("Ann O\n")
    return path


def words(path, cache, **options):
    return [" ".join(row) for row in load_corpus(path, cache_dir=cache, **options)["train"]["tokens"]]


def test_the_default_cache_is_that_of_datasets(path, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "usual")
    (file,) = load_corpus(path)["train"].cache_files
    assert Path(file["filename"]).is_relative_to(tmp_path / "usual")


def test_a_relative_cache_is_relative_to_the_working_directory(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words("some.conll", "my cache") == ["Ann"]
    assert list((tmp_path / "my cache").rglob("*.arrow"))


# --- Changes ----------------------------------------------------------------------------------------------------------


def test_changes_that_keep_size_and_time_are_detected(path, tmp_path):
    before = path.stat()
    assert words(path, tmp_path / "cache") == ["Ann"]
    path.write_text("Bob O\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert words(path, tmp_path / "cache") == ["Bob"]


def test_a_file_that_replaces_another_is_read(path, tmp_path):
    other = tmp_path / "other.conll"
    other.write_text("Bob O\n")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    assert words(path, tmp_path / "cache") == ["Ann"]
    os.replace(other, path)
    assert words(path, tmp_path / "cache") == ["Bob"]


def test_other_options_use_a_separate_cache_entry(path, tmp_path):
    path.write_text("Ann Bob O\n")
    cache = tmp_path / "cache"
    assert words(path, cache) == ["Ann"]
    assert words(path, cache, token_column=1) == ["Bob"]
    assert words(path, cache, token_column=1, tag_column=0, scheme="plain") == ["Bob"]
    assert words(path, cache) == ["Ann"]


# --- Failures ---------------------------------------------------------------------------------------------------------


def files(cache):
    return [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_full_disk_leaves_no_files(path, tmp_path, monkeypatch):
    path.write_text("Ann O\n\n" * 5000)
    table, count = assembly._table, 0

    def full(*arguments):
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(28, "No space left on device")
        return table(*arguments)

    monkeypatch.setattr(assembly, "_table", full)
    with pytest.raises(DataError) as error:
        words(path, tmp_path / "cache")
    assert str(error.value) == (
        f"{tmp_path}/cache: the cache cannot be written ([Errno 28] No space left on device); "
        "name another folder as cache_dir, or by the variable HF_DATASETS_CACHE."
    )
    assert files(tmp_path / "cache") == []
    assert words(path, tmp_path / "cache") == ["Ann"] * 5000


def lose(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "damage"), [("*.arrow", lose), ("*.arrow", cut), ("*.arrow", empty), ("*.json", cut), ("*.json", empty)]
)
def test_a_damaged_cache_raises_and_can_be_removed(path, tmp_path, name, damage):
    words(path, tmp_path / "cache")
    (damaged,) = (tmp_path / "cache").rglob(name)
    damage(damaged)
    with pytest.raises(DataError) as error:
        words(path, tmp_path / "cache")
    told = re.fullmatch(
        rf"({tmp_path}/cache/hf_xorner/train-[0-9a-f]{{32}}): this part of the cache is damaged \(.+\); "
        "remove it, and load again.",
        str(error.value),
    )
    for left in files(Path(told[1])):
        left.unlink()
    assert words(path, tmp_path / "cache") == ["Ann"]


@pytest.mark.parametrize("cache", ["a::b", "s3::x"])
def test_a_cache_path_with_two_colons_raises(path, tmp_path, cache):
    with pytest.raises(DataError) as error:
        load_corpus(path, cache_dir=tmp_path / cache)
    assert str(error.value) == (
        f"{tmp_path / cache}: a folder with '::' in its name cannot be a cache; "
        "name another folder as cache_dir, or by the variable HF_DATASETS_CACHE."
    )


PROGRAM = """
import sys, time
import datasets
from hf_xorner import load_corpus
datasets.disable_progress_bars()
sys.stdin.readline()
print(sum(map(len, load_corpus(sys.argv[1], cache_dir=sys.argv[2])["train"]["tokens"])))
"""


def test_processes_can_load_the_same_new_file_concurrently(path, tmp_path):
    path.write_text("Ann B-PER\nleft O\n\n" * 30_000)
    command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "cache")]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, errors = process.communicate(timeout=300)
        assert (process.returncode, out, errors) == (0, "60000\n", "")
    assert len(list((tmp_path / "cache").rglob("*.arrow"))) == 1
