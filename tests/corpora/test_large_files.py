"""Large files: the memory and the time that loading them takes, in a separate process."""

import json
import random
import subprocess
import sys

import pytest

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
