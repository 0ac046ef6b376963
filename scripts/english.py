r"""Train an English tagger of model_cards/ from raw corpora: one command, several seeds.

The steps are commands, which are printed: pool the corpora, distil vectors of word pieces, train a teacher with an
encoder's states (`--context`), and for each seed a student of the teacher. Finished steps are not repeated.

    python scripts/english.py ner-small --vectors glove.6B.100d.txt --pieces sentence-transformers/all-mpnet-base-v2 \
        --context sentence-transformers/all-mpnet-base-v2 --data_dir corpora/ --output runs/english --text names.txt

`data_dir` holds the folders wnut17, open, multilingual/en-ewt, wikiann-en and, for ner-small, conll2003 (see
`scripts/english_corpora.py`). `scripts/english_text.py` writes names.txt, `scripts/compare_english.py` scores the
models.
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
    parser.add_argument("recipe", choices=("ner-small", "ner-open"), help="The tagger.")
    parser.add_argument("--vectors", required=True, help="GloVe of 100 dimensions, 6 billion words.")
    parser.add_argument("--pieces", required=True, help="The encoder whose word pieces get vectors.")
    parser.add_argument("--dim", type=int, default=128, help="The dimension of these vectors.")
    parser.add_argument("--context", help="The teacher's encoder; without it, students learn from the labels alone.")
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora.")
    parser.add_argument("--output", type=Path, default=Path("runs/english"), help="The folder to write to.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="Seeds of the students.")
    parser.add_argument("--sentences", type=int, default=20000, help="Sentences of WikiANN that the teacher labels.")
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="Files of text for the teacher, too.")
    options, more = parser.parse_known_args()
    folder, data_dir = options.output / options.recipe, options.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    pooled = folder / "corpus"
    misc = ["--conll2003"] * (options.recipe == "ner-small")
    step(pooled / "train.conll", POOL, "--data_dir", data_dir, "--output", pooled, *misc)
    data = ["--dataset", pooled.resolve(), "--vectors", options.vectors, "--resume_from_checkpoint", "true"]
    wikiann = list(load_corpus(str(data_dir / "wikiann-en"), strip="^en:")["train"]["tokens"])
    labelled = load_corpus(str(pooled))["train"]["tokens"]
    words = dict.fromkeys(word for corpus in (labelled, wikiann) for sentence in corpus for word in sentence)
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "text.txt").write_text("\n".join(map(" ".join, wikiann[: options.sentences])) + "\n", encoding="utf-8")

    pieces = folder / "pieces"
    step(
        pieces / "composed.safetensors",
        *(*TAGGER, "vectors", "distill", "--encoder", options.pieces, "--vocab", folder / "words.txt", "--composed"),
        *("--dim", options.dim, "--half", "--output", pieces),
    )
    learn: list[object] = []
    if options.context:
        teacher = folder / "teacher-42"
        learn = ["--teacher", teacher, "--teacher_text", folder / "text.txt", *options.text]
        train(teacher, "english/teacher", *data, "--context", options.context, "--seed", 42)
    for seed in options.seeds:
        student = [f"english/{options.recipe}", *data, "--composed", pieces, *learn, "--seed", seed, *more]
        train(folder / f"student-{seed}", *student)


#: The command line of the package, and the script that pools corpora.
TAGGER, POOL = ("-m", "hf_xorner"), Path(__file__).with_name("english_corpora.py")


def train(folder: Path, *words: object) -> None:
    """Train a model, unless it is finished."""
    step(folder / "facts.json", *TAGGER, "train", *words, "--output_dir", folder)


def step(result: Path, *words: object) -> None:
    """Run a command of Python, unless its result is there."""
    command = list(map(str, words))
    print("python", shlex.join(command), "(finished)" * result.exists(), flush=True)
    if not result.exists():
        subprocess.run([sys.executable, *command], check=True)


if __name__ == "__main__":
    main()
