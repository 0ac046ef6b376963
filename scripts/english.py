r"""Train the English tagger of model_cards/english-ner-small from raw corpora: one command, several seeds.

The steps are commands of `hf-xorner`, printed as they run: vectors of word pieces, a teacher over an encoder's states,
and for each seed a student that learns from it, beside one that does not. Finished steps are not repeated.

    python scripts/english.py --vectors glove.6B.100d.txt --pieces sentence-transformers/all-MiniLM-L6-v2 \
        --context sentence-transformers/all-mpnet-base-v2 --data_dir corpora/ --output runs/english

`data_dir` holds the folders conll2003, wnut17 and wikiann-en. `scripts/compare_english.py` scores the models.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from hf_xorner import load_corpus


def main() -> None:
    """Run the steps that are not finished."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vectors", required=True, help="GloVe of 100 dimensions, 6 billion words.")
    parser.add_argument("--pieces", required=True, help="The encoder whose word pieces get vectors.")
    parser.add_argument("--dim", type=int, default=64, help="The dimension of these vectors.")
    parser.add_argument("--context", required=True, help="The teacher's encoder.")
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora.")
    parser.add_argument("--output", type=Path, default=Path("runs/english"), help="The folder to write to.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="Seeds of the students.")
    parser.add_argument("--sentences", type=int, default=10000, help="Sentences of WikiANN that the teacher labels.")
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="Files of text for the teacher, too.")
    parser.add_argument("--alone", action="store_true", help="Also train each student without the teacher.")
    options, further = parser.parse_known_args()
    here = options.output
    here.mkdir(parents=True, exist_ok=True)
    wikiann = list(load_corpus(str(options.data_dir / "wikiann-en"), strip="^en:")["train"]["tokens"])
    named = [load_corpus(name, str(options.data_dir))["train"]["tokens"] for name in ("conll2003", "wnut17")]
    words = dict.fromkeys(word for corpus in (*named, wikiann) for sentence in corpus for word in sentence)
    (here / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (here / "text.txt").write_text("\n".join(map(" ".join, wikiann[: options.sentences])) + "\n", encoding="utf-8")

    pieces, teacher = here / "pieces", here / "teacher"
    step(
        pieces / "composed.safetensors",
        *("vectors", "distill", "--encoder", options.pieces, "--vocab", here / "words.txt", "--composed", "true"),
        *("--dim", options.dim, "--half", "true", "--output", pieces),
    )
    data = ["--data_dir", options.data_dir, "--vectors", options.vectors, "--resume_from_checkpoint", "true"]
    step(
        teacher / "facts.json",
        *("train", "english/teacher", *data, "--context", options.context, "--output_dir", teacher),
    )
    for seed in options.seeds:
        student = [*data, "--composed", pieces, "--seed", seed, *further]
        with_teacher, alone = here / f"student-{seed}", here / f"alone-{seed}"
        learn = ["--teacher", teacher, "--teacher_text", here / "text.txt", *options.text, "--output_dir", with_teacher]
        step(with_teacher / "facts.json", "train", "english/ner-small", *student, *learn)
        if options.alone:
            step(alone / "facts.json", "train", "english/ner-small", *student, "--output_dir", alone)


def step(result: Path, *words: object) -> None:
    """Run a command of hf-xorner, unless its result is there."""
    command = list(map(str, words))
    print("hf-xorner", shlex.join(command), "(finished)" * result.exists(), flush=True)
    if not result.exists():
        subprocess.run([sys.executable, "-m", "hf_xorner", *command], check=True)


if __name__ == "__main__":
    main()
