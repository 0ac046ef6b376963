"""New Python processes, forked from one that has imported PyTorch and others, which takes most of a process's start.

What that process has imported reads no variable of the Hub, and this package is not among it. Tests of imports,
encodings, memory, pipes and signals start an interpreter themselves.
"""

import atexit
import functools
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SERVER = """
import json, os, runpy, sys
import pandas, pyarrow.parquet, sklearn.utils.validation, torch._dynamo, torch.distributed.tensor

for line in sys.stdin:
    job, children = json.loads(line), []
    for process in job["processes"]:
        children.append(os.fork())
        if not children[-1]:
            break
    else:
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
        continue
    break
else:
    sys.exit()
os.environ.clear()
os.environ.update(process["env"])
os.chdir(job["cwd"])
for number, path in enumerate(process["streams"]):
    os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
first, *rest = job["arguments"]
if first in ("-c", "-m"):
    sys.argv, sys.path[0] = [first, *rest[1:]], ""
else:
    sys.argv, sys.path[0] = [first, *rest], os.path.dirname(first)
sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
if first == "-m":
    runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
elif first == "-c":
    exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
else:
    runpy.run_path(first, run_name="__main__")
"""


@functools.cache
def server():
    """Start the process that is forked; it ends with the tests."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", SERVER], start_new_session=True, **pipes)
    atexit.register(process.stdin.close)
    return process


def run_pythons(arguments, environments, *, cwd=None, stdin_text="", timeout=900):
    """Run a process with each of the environments, all at once; return what `subprocess.run` would of each."""
    words = list(map(str, arguments))
    if not hasattr(os, "fork"):
        return _run_interpreters(words, environments, cwd, stdin_text, timeout)
    process = server()
    with tempfile.TemporaryDirectory() as scratch:
        processes = []
        for number, environment in enumerate(environments):
            streams = [Path(scratch) / f"{number}.{name}" for name in ("in", "out", "err")]
            for path, content in zip(streams, (stdin_text, "", ""), strict=True):
                path.write_text(content, encoding="utf-8")
            processes.append({"env": dict(environment), "streams": list(map(str, streams))})
        job = {"arguments": words, "cwd": str(cwd or os.getcwd()), "processes": processes}
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        ended = select.select([process.stdout], [], [], timeout)[0]
        written = [
            [Path(path).read_text(encoding="utf-8") for path in streams_of["streams"][1:]] for streams_of in processes
        ]
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
            server.cache_clear()
            raise subprocess.TimeoutExpired(words, timeout, stderr="".join(errors for _, errors in written))
        codes = json.loads(process.stdout.readline())
    return [subprocess.CompletedProcess(words, code, *texts) for code, texts in zip(codes, written, strict=True)]


def _run_interpreters(words, environments, cwd, stdin_text, timeout):
    """Run the processes on Windows, which cannot fork."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen([sys.executable, *words], env=environment, cwd=cwd, **pipes) for environment in environments
    ]
    texts = [process.communicate(stdin_text, timeout) for process in started]
    return [
        subprocess.CompletedProcess(words, process.returncode, *text)
        for process, text in zip(started, texts, strict=True)
    ]


def run_python(arguments, *, env=None, **options):
    """Return what `subprocess.run` returns for an interpreter with these arguments: exit code, output and errors."""
    (done,) = run_pythons(arguments, [os.environ if env is None else env], **options)
    return done


def free_port():
    """Return a free port that no other process of the tests returns, and the system gives to none by itself."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 24
    for port in random.sample(range(20_000 + 500 * worker, 20_500 + 500 * worker), 500):
        with socket.socket() as free:
            if free.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise RuntimeError("all ports are taken")
