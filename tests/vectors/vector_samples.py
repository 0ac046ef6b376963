"""The same words and vectors in every format, written byte by byte."""

import zipfile

import numpy as np
from safetensors.numpy import save_file

WORDS = ["the", "Oslo", "naïve", "1984"]
MATRIX = np.array(
    [[0.5, -1, 0.25], [1e-3, 2.5, -0.125], [0, 0, 0], [0.1, 3.4e38, -1e-30]],
    dtype=np.float32,
)
LINES = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, MATRIX.tolist(), strict=True)]


def glove():
    return "".join(f"{line}\n" for line in LINES).encode()


def word2vec():
    return b"4 3\n" + glove()


def fasttext():
    # fastText leaves a blank at the end of every line.
    return b"4 3\n" + "".join(f"{line} \n" for line in LINES).encode()


def binary(words=None, matrix=MATRIX, header=None, line_end=b"\n"):
    words = [word.encode() for word in WORDS] if words is None else words
    rows = [word + b" " + row.astype("<f4").tobytes() + line_end for word, row in zip(words, matrix, strict=True)]
    return (header or b"%d %d\n" % matrix.shape) + b"".join(rows)


def zipped(path, members, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_tensors(folder, vocabulary="vocabulary.txt", content="the\nOslo\nnaïve\n1984\n", **named):
    """Write tensors and a vocabulary into a folder, and return it."""
    save_file({name: np.ascontiguousarray(value) for name, value in named.items()}, folder / "v.safetensors")
    if vocabulary:
        (folder / vocabulary).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
