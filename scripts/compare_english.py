"""Compare taggers of English persons, organisations and locations: F1 on corpora, speed, memory and size.

The words are those of the corpora. Other types of a system or a corpus do not count; WNUT 2017's corporations and
groups are organisations. F1 is strict, in percent. Systems, each after a name and `=` where it has one:

- a folder of a model of hf_xorner, or onnx:FOLDER for its export;
- transformers:FOLDER for a token classifier of transformers, or for its export to ONNX by optimum;
- spacy:NAME for a pipeline of spaCy;
- crfsuite:FILE for a CRF with hand-written features, trained on CoNLL-2003 if there is no such file;
- node:FOLDER for a page of `hf-xorner export --to web`, or for the npm package compromise.

Scores in all cases, and calibration errors:

    python scripts/compare_english.py model_cards/english-ner-small spacy:en_core_web_sm --data_dir corpora/

Scores, and speed, start-up and memory, each system in its own process with one thread, and the table:

    python scripts/compare_english.py --measure --data_dir corpora/ model_cards/english-ner-small crfsuite:crf.model
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

# Functions import what they need, so that the start-up and the memory of a system are its own.

#: The types of each system or corpus, by what they are here.
TYPES = dict.fromkeys(("PER", "PERSON", "person"), "PER")
TYPES |= dict.fromkeys(("ORG", "corporation", "group"), "ORG")
TYPES |= dict.fromkeys(("LOC", "GPE", "FAC", "location"), "LOC")
KEPT = ("PER", "ORG", "LOC")
CASES: dict[str, Callable[[str], str]] = {
    "as spelt": str,
    "lower case": str.lower,
    "capitals": str.upper,
    "Each Word With A Capital": lambda word: word[:1].upper() + word[1:].lower(),
}
#: Sentences in a batch, sentences that are tagged one at a time, and rounds of which the fastest counts.
BATCH, ALONE, ROUNDS = 256, 200, 2

Words = Sequence[Sequence[str]]
#: From words to their tags, and the log probabilities of these if they are known.
Tag = Callable[[Words], tuple[Words, Any]]


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="+", help="The systems.")
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora.")
    parser.add_argument("--split", default="test", help="The split: validation or test.")
    corpora = ["conll2003", "wnut17", "wikiann-en", "test-only/pud.iob2"]
    parser.add_argument("--corpora", nargs="+", default=corpora, help="Their names; or a file.")
    parser.add_argument("--output", type=Path, help="A file for the figures.")
    parser.add_argument("--measure", action="store_true", help="Also measure speed, on the last corpus.")
    parser.add_argument("--spacy_python", default=sys.executable, help="An interpreter with spaCy, without PyTorch.")
    options = parser.parse_args()
    data = {Path(name).stem: read(name, options.data_dir, options.split) for name in options.corpora}
    names = {system.split("=")[0]: system.split("=")[-1] for system in options.systems}
    for name in names.values():
        if name.startswith("crfsuite:") and not Path(name[9:]).exists():
            train_crf(name[9:], *read("conll2003", options.data_dir, "train"))
    figures = measured(names, data, options.spacy_python) if options.measure else scored(names, data)
    if options.output:
        options.output.write_text(json.dumps(figures, indent=2) + "\n")


def read(corpus: str, data_dir: Path, split: str) -> tuple[Words, Words]:
    """Return the words and the tags of a corpus or a file."""
    from hf_xorner import load_corpus
    from hf_xorner.corpora.assemble import words_and_tags

    source = (corpus, str(data_dir)) if corpus in ("conll2003", "wnut17") else (str(data_dir / corpus),)
    splits = load_corpus(*source, strip="^en:")
    return words_and_tags(splits["train"] if list(splits) == ["train"] else splits[split])  # a file is one split


def scored(names: dict[str, str], data: dict[str, tuple[Words, Words]]) -> dict[str, Any]:
    """Return the scores of systems in all cases."""
    from hf_xorner.evaluation import span_scores

    systems = {label: system_of(name) for label, name in names.items()}
    figures: dict[str, dict[str, Any]] = {label: {} for label in systems}
    for corpus, (words, gold) in data.items():
        for case, change in CASES.items():
            changed = [list(map(change, sentence)) for sentence in words]
            for label, system in systems.items():
                predicted, log_probs = system(changed)
                score = scores(words, gold, predicted, KEPT, log_probs)
                score["PER and LOC"] = scores(words, gold, predicted, ("PER", "LOC"))["f1"]
                if log_probs is not None:
                    score["own types"] = span_scores(gold, predicted)["f1"] if corpus == "conll2003" else None
                figures[label][f"{corpus}, {case}"] = score
                print(f"{corpus:<11} {case:<25} {Path(label).name:<28} {line(score)}", flush=True)
    return figures


def measured(names: dict[str, str], data: dict[str, tuple[Words, Words]], spacy_python: str) -> dict[str, Any]:
    """Return the scores of systems, and the least CPU time and memory of some rounds, in which they take turns."""
    *_, (words, _) = data.values()
    count = sum(map(len, words))
    figures: dict[str, Any] = {label: {"megabytes": size(name)} for label, name in names.items()}
    for number in range(ROUNDS):
        for label, name in names.items():
            with worker(name, spacy_python if name[:6] == "spacy:" else sys.executable) as (ask, process):
                _, _, start_up = ask(words[:1])
                alone = 1000 * median(ask([sentence])[1] for sentence in words[:ALONE])
                figures_of_round = {"start_up": start_up, "one_text_ms": alone, "batch_seconds": ask(words)[1]}
                status = Path(f"/proc/{process}/status").read_text()
                figures_of_round["peak_megabytes"] = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) * 1024 / 1e6
                for key, value in figures_of_round.items():
                    figures[label][key] = min(value, figures[label].get(key, value))
                figures[label]["words_per_second"] = round(count / figures[label]["batch_seconds"])
                for corpus, (tokens, gold) in data.items() if number == 0 else ():
                    figures[label][corpus] = scores(tokens, gold, ask(tokens)[0], KEPT)
    print(table(figures))
    return figures


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a table in Markdown."""
    corpora = {"conll2003": "CoNLL-2003", "wnut17": "WNUT 2017", "pud": "PUD"}
    columns = [*corpora.values(), "words a second", "one text, ms", "start-up, s", "peak MB", "MB on disk"]
    rows = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for label, values in figures.items():
        cells = [f"{values[corpus]['f1']:.1f}" for corpus in corpora if corpus in values]
        cells += [f"{values['words_per_second']:,}", f"{values['one_text_ms']:.2f}", f"{values['start_up']:.1f}"]
        cells += [f"{values['peak_megabytes']:,.0f}", f"{values['megabytes']:.1f}"]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(rows)


@contextmanager
def worker(name: str, python: str) -> Iterator[tuple[Callable[[Words], Any], int]]:
    """Start a system in its own process; give a function that sends words to it, and its number.

    The function returns the tags, the CPU time that they took, and that since the start.
    """
    node = ["node", str(Path(__file__).with_name("node_tagger.mjs")), name.removeprefix("node:")]
    command = node if name.startswith("node:") else [python, __file__, "--serve", name]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]

        def ask(words: Words) -> Any:
            print(json.dumps(words), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield ask, process.pid
        process.stdin.close()


def serve(name: str) -> None:
    """Tag the words of each line of standard input, for `worker`."""
    system = system_of(name)
    for request in sys.stdin:
        words, start = json.loads(request), time.process_time()
        tags, _ = system(words)
        end = time.process_time()
        print(json.dumps([tags, end - start, end]), flush=True)


def size(name: str) -> float:
    """Return the size of a model in megabytes."""
    kind, _, place = name.rpartition(":")
    path = Path(place)
    if kind == "spacy" and not path.exists():
        path = Path(find_spec(place).origin).parent  # type: ignore[union-attr, arg-type]
    browser = path / "builds" / "three" / "compromise-three.mjs"
    path = browser if browser.exists() else path
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def scores(words: Words, gold: Words, predicted: Words, types: Sequence[str], log_probs: Any = None) -> dict[str, Any]:
    """Return F1 over the entities of some types, and of each, and the calibration error of a `Tagger`."""
    from hf_xorner.evaluation.report import System, report

    tags = [[[renamed(tag, types) for tag in sentence] for sentence in rows] for rows in (gold, predicted)]
    result = report(System(words, *tags, log_probs), resamples=0)
    figures = {"f1": result["f1"], **{name: values["f1"] for name, values in result["per_type"].items()}}
    return figures | ({"ece of Tagger": result["calibration"]["ece"]} if "calibration" in result else {})


def renamed(tag: str, types: Sequence[str]) -> str:
    """Return a tag with its type as it is called here, O, or ? where it is unknown."""
    new = TYPES.get(tag[2:])
    return tag if tag == "?" else f"{tag[:2]}{new}" if new in types else "O"


def line(score: dict[str, Any]) -> str:
    """Return the scores as text."""
    return "  ".join(f"{name} {value:.2f}" for name, value in score.items() if value is not None)


def system_of(name: str) -> Tag:
    """Return a function from words to their tags, by one of the systems above."""
    kind, _, place = name.rpartition(":")
    kinds = {"spacy": spacy_system, "onnx": onnx_system, "transformers": transformers_system, "crfsuite": crf_system}
    return kinds[kind](place) if kind else own_system(name)


def own_system(name: str) -> Tag:
    """Return a function from words to the tags of a model and their log probabilities, in a row."""
    from hf_xorner import Tagger
    from hf_xorner.evaluation.report import System

    tagger = Tagger.from_pretrained(name)

    def tag(words: Words) -> tuple[Words, Any]:
        system = System.of_tagger(tagger, words, words, BATCH)
        return system.predicted, system.log_probs

    return tag


def onnx_system(folder: str) -> Tag:
    """Return a function from words to the tags of an exported model, by the code in its folder."""
    sys.path.insert(0, folder)
    from onnx_tagger import OnnxTagger

    tagger = OnnxTagger.from_pretrained(folder, threads=1)
    return lambda words: ([annotation.labels for annotation in tagger.annotate(words, BATCH)], None)


def transformers_system(folder: str) -> Tag:
    """Return a function from words to the tags of a token classifier: each word has that of its first piece."""
    import numpy as np
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.enable_padding()
    tokenizer.enable_truncation(512)
    labels = json.loads(Path(folder, "config.json").read_text())["id2label"]
    if Path(folder, "model.onnx").exists():
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options)
    else:
        import torch
        from transformers import AutoModelForTokenClassification

        model = AutoModelForTokenClassification.from_pretrained(folder).eval()

    def logits(ids: Any, mask: Any) -> Any:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        if Path(folder, "model.onnx").exists():
            return session.run(None, {entry.name: inputs[entry.name] for entry in session.get_inputs()})[0]
        with torch.inference_mode():
            return model(**{key: torch.from_numpy(value) for key, value in inputs.items()}).logits.float().numpy()

    def tag(words: Words) -> tuple[Words, None]:
        tags, order = (
            [["O"] * len(sentence) for sentence in words],
            sorted(range(len(words)), key=lambda i: len(words[i])),
        )
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            batch = tokenizer.encode_batch([list(words[row]) for row in rows], is_pretokenized=True)
            best = logits(
                *(np.array([getattr(one, key) for one in batch]) for key in ("ids", "attention_mask"))
            ).argmax(-1)
            for row, pieces, classes in zip(rows, batch, best.tolist(), strict=True):
                for word, label in reversed(list(zip(pieces.word_ids, classes, strict=True))):
                    if word is not None:
                        tags[row][word] = labels[str(label)]
        return tags, None

    return tag


def spacy_system(name: str) -> Tag:
    """Return a function from words to the tags of a pipeline, of which only the entities are computed."""
    import spacy

    nlp = spacy.load(name, exclude=["tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer"])
    return lambda words: (spacy_tags(nlp, words), None)


def spacy_tags(nlp: Any, words: Words) -> Words:
    """Return the tags that a pipeline of spaCy gives to words."""
    from spacy.tokens import Doc

    docs = nlp.pipe((Doc(nlp.vocab, words=list(sentence)) for sentence in words), batch_size=BATCH)
    return [[t.ent_iob_ + "-" * bool(t.ent_type_) + t.ent_type_ for t in doc] for doc in docs]


def crf_system(file: str) -> Tag:
    """Return a function from words to the tags of a CRF of python-crfsuite."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(file)
    return lambda words: ([tagger.tag(crf_features(sentence)) for sentence in words], None)


def train_crf(file: str, words: Words, tags: Words) -> None:
    """Train a CRF, with the options of python-crfsuite's tutorial."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence, labels in zip(words, tags, strict=True):
        trainer.append(crf_features(sentence), labels)
    trainer.set_params({"c1": 1.0, "c2": 1e-3, "max_iterations": 50, "feature.possible_transitions": True})
    trainer.train(file)


def crf_features(words: Sequence[str]) -> list[list[str]]:
    """Return the features of each word: its form, its last letters and its shape, and those of its neighbours."""
    shapes = [re.sub("[A-Z]", "X", re.sub("[a-z]", "x", re.sub("[0-9]", "d", word))) for word in words]
    forms = [[f"word={word.lower()}", f"shape={shape}"] for word, shape in zip(words, shapes, strict=True)]
    padded = [["edge"], *forms, ["edge"]]
    return [
        ["bias", *form, f"suffix={word[-3:]}", f"suffix={word[-2:]}"]
        + [f"-1:{feature}" for feature in padded[place]]
        + [f"+1:{feature}" for feature in padded[place + 2]]
        for place, (word, form) in enumerate(zip(words, forms, strict=True))
    ]


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        main()
