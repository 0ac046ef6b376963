"""Large files: the memory and the time that loading them takes, in a separate process; endless lines."""

import gzip
import json
import random
import subprocess
import sys

import pytest

from hf_xorner import load_corpus
from hf_xorner.corpora.predictions import read_predictions
from hf_xorner.errors import DataError
from hf_xorner.tagging.read import Lines
from hf_xorner.vectors.formats import read_vectors

TOKENS = 10_000_000
MOST_MEGABYTES = 500
LEAST_TOKENS_PER_SECOND = 400_000

PROGRAM = """
import json, resource, sys, time
import datasets
datasets.disable_progress_bars()
from hf_xorner import load_corpus
def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = megabytes()
begin, cpu = time.perf_counter(), time.process_time()
corpus = load_corpus(sys.argv[1])
figures = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
figures |= {"sentences": len(corpus["train"]), "start": start, "peak": megabytes()}
begin = time.perf_counter()
load_corpus(sys.argv[1])
print(json.dumps(figures | {"again": time.perf_counter() - begin}))
"""


@pytest.mark.slow
def test_ten_million_tokens_load_within_memory_and_time_limits(tmp_path):
    rng = random.Random(0)
    words = [f"{number:x}" * rng.randint(1, 3) for number in range(50_000)]
    path = tmp_path / "large.conll"
    sentences = tokens = 0
    with path.open("w") as file:
        while tokens < TOKENS:
            length = rng.randint(3, 26)
            tags = rng.choices(["O", "B-PER", "I-PER", "B-LOC"], [90, 5, 3, 2], k=length)
            rows = zip(rng.choices(words, k=length), tags, strict=True)
            file.write("".join(f"{word}\t{tag}\n" for word, tag in rows) + "\n")
            sentences, tokens = sentences + 1, tokens + length
    command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "cache")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    figures = json.loads(result.stdout)
    # CPU time, which does not depend on other programs.
    speed = tokens / figures["cpu_seconds"]
    sys.stdout.write(f"\n{tokens:,} tokens: {speed:,.0f} a second, {figures}\n")
    assert figures["sentences"] == sentences
    assert figures["peak"] < MOST_MEGABYTES
    assert speed > LEAST_TOKENS_PER_SECOND


#: By the name of a file: its first line, and what reads it.
READERS = {
    "corpus.conll": ("a O", lambda path, cache: load_corpus(path)),
    "corpus.gold_conll": ("#begin document (a)", lambda path, cache: load_corpus(path)),
    "corpus.jsonl": ('{"tokens": ["a"], "tags": ["O"]}', lambda path, cache: load_corpus(path)),
    "predictions.tsv": ("a\tO\tO", lambda path, _: read_predictions(path)),
    "texts.txt": ("a", lambda path, _: list(Lines(str(path)))),
    "vectors.txt": ("a 0.5", lambda path, _: read_vectors(path)),
}


@pytest.fixture(scope="module")
def endless_line():
    """1.5 GB without a line break, compressed with gzip."""
    return gzip.compress(b"x" * 15_000_000, compresslevel=1) * 100


@pytest.mark.parametrize("name", READERS)
def test_endless_lines_are_refused_with_their_number(name, endless_line, tmp_path):
    first, read = READERS[name]
    path = tmp_path / name
    path.write_bytes(gzip.compress(f"{first}\n".encode()) + endless_line)
    with pytest.raises(DataError, match=f"{name}:2: .*longer"):
        read(path, tmp_path / "cache")


def test_endless_lines_are_refused_in_little_memory(endless_line, tmp_path):
    path = tmp_path / "line.gz"
    path.write_bytes(gzip.compress(b"a O\n") + endless_line)
    program = PROGRAM.replace(
        "begin, cpu =", "sys.excepthook = lambda *error: print(megabytes() - start)\nbegin, cpu ="
    )
    command = [sys.executable, "-c", program, str(path), str(tmp_path / "cache")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 1
    assert float(result.stdout) < MOST_MEGABYTES
