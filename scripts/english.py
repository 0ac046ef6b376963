r"""Train the English tagger of model_cards/english-ner-small from raw corpora: one command, several seeds.

The steps are commands of `hf-xorner`, printed as they run: vectors of word pieces, a teacher over an encoder's states,
and for each seed a student that learns from it, beside one that does not. Finished steps are not repeated.

The teacher also labels text: sentences of WikiANN, those of WNUT 2017 with other persons and locations in the place of
their own, and files of `--text`.

    python scripts/english.py --vectors glove.6B.100d.txt --pieces sentence-transformers/all-MiniLM-L6-v2 \
        --context sentence-transformers/all-mpnet-base-v2 --data_dir corpora/ --output runs/english

`data_dir` holds the folders conll2003, wnut17 and wikiann-en. `scripts/compare_english.py` scores the models.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hf_xorner import load_corpus
from hf_xorner.corpora.assemble import words_and_tags

#: Types whose names are exchanged, as the three corpora call them.
EXCHANGED = {"person": "PER", "PER": "PER", "location": "LOC", "LOC": "LOC"}
#: Copies of each sentence with exchanged names.
COPIES = 3

Corpus = tuple[list[list[str]], list[list[str]]]


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
    folder = str(options.data_dir)
    corpora = [load_corpus(name, folder) for name in ("conll2003", "wnut17")]
    corpora.append(load_corpus(f"{folder}/wikiann-en", strip="^en:"))
    news, social, wikiann = (words_and_tags(corpus["train"]) for corpus in corpora)
    write(
        here / "words.txt", dict.fromkeys(word for corpus in (news, social, wikiann) for s in corpus[0] for word in s)
    )
    write(here / "text.txt", map(" ".join, wikiann[0][: options.sentences]))
    write(here / "exchanged.txt", map(" ".join, with_other_names(social, [news, wikiann])))
    texts = [here / "text.txt", here / "exchanged.txt", *options.text]

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
        learn = ["--teacher", teacher, "--text", *texts, "--output_dir", with_teacher]
        step(with_teacher / "facts.json", "distill", "--student", "english/ner-small", *student, *learn)
        if options.alone:
            step(alone / "facts.json", "train", "english/ner-small", *student, "--output_dir", alone)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines of text."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def with_other_names(sentences: Corpus, sources: Sequence[Corpus]) -> Iterator[list[str]]:
    """Yield copies of the sentences that have a person or location, each with random names in their place.

    Args:
        sentences: The words and IOB2 tags of sentences.
        sources: Further sentences from which names are drawn; a name that occurs several times is drawn as seldom as
            one that occurs once.
    """
    names: dict[str, dict[tuple[str, ...], None]] = defaultdict(dict)
    for corpus in (sentences, *sources):
        for words, tags in zip(*corpus, strict=True):
            for kind, part in chunks(words, tags):
                if kind:
                    names[kind][tuple(part)] = None
    choices = {kind: list(found) for kind, found in names.items()}
    draw = random.Random(1)
    for words, tags in zip(*sentences, strict=True):
        parts = list(chunks(words, tags))
        if any(kind for kind, _ in parts):
            for _ in range(COPIES):
                yield [word for kind, part in parts for word in (draw.choice(choices[kind]) if kind else part)]


def chunks(words: Sequence[str], tags: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of a sentence in turn: persons and locations, with their type, and words of no such name."""
    start = 0
    for index in range(1, len(words) + 1):
        if index == len(words) or not tags[index].startswith("I-"):
            yield EXCHANGED.get(tags[start][2:], ""), list(words[start:index])
            start = index


def step(result: Path, *words: object) -> None:
    """Run a command of hf-xorner, unless its result is there."""
    command = list(map(str, words))
    print("hf-xorner", shlex.join(command), "(finished)" * result.exists(), flush=True)
    if not result.exists():
        subprocess.run([sys.executable, "-m", "hf_xorner", *command], check=True)


if __name__ == "__main__":
    main()
