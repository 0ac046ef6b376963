"""`hf-xorner analyze`: the papers' proofs and analyses, each with its picture and its figures as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..corpora import load_corpus
from ..evaluation.chunk_tags import raw_chunk_tags
from ..files import write_whole
from ..papers.word_pairs import FIGURE_1, draw_pairs, word_pairs
from ..papers.xor_demonstration import CONTENDERS, PATTERNS, Outcome, demonstrate, draw_demonstration
from ..papers.xor_proof import DECODERS, Proof, decide, inequalities
from ..tagger import Tagger
from . import benchmark
from .parser import Parser

EXAMPLES = (
    "hf-xorner analyze xor-proof --demonstrate --output xor",
    "hf-xorner analyze xor-proof --pattern S O S",
    "hf-xorner analyze ablate my_att_tagger --dataset wnut17 --data_dir corpora --output ablation",
    "hf-xorner analyze attention my_att_tagger --output attention",
    "hf-xorner analyze relation my_grn_tagger --text 'Ann saw Bob in Paris.' --output relation",
    "hf-xorner analyze speed --dataset conll2003 --data_dir corpora",
)
#: The two contestants of chen2019's Table 6, and its figures for CoNLL-2003.
SPEED = ("cnn-lstm-crf/chen2019", "grn")
PUBLISHED_SPEED = {"train": 1.16, "tag": 1.19}


def parser() -> argparse.ArgumentParser:
    """Return the parser of `hf-xorner analyze`."""
    parser = Parser(prog="hf-xorner analyze", description="Run an analysis of the papers.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        made.add_argument("--output", type=Path, help="A folder for the figures as JSON, and the pictures.")
        return made

    proof = command("xor-proof", "Prove which of four phrases a tagger can tell apart (li2020, section 3).")
    proof.add_argument("--pattern", nargs=3, metavar="TAG", help="Chunk tags of an entity; by default B I E and O S O.")
    proof.add_argument("--demonstrate", action="store_true", help="Also train models on the phrases; takes a minute.")
    proof.add_argument("--seed", type=int, default=0, help="The seed of the models.")
    ablate = command("ablate", "Recall of chunk tags with parts of the vectors zeroed (li2020, Table 5).")
    ablate.add_argument("--dataset", required=True, help="A corpus by name, a file, a folder of files, a Hub id.")
    ablate.add_argument("--data_dir", help="Where the files of a named corpus lie.")
    ablate.add_argument("--split", default="validation", help="The split that is labelled.")
    pairs = [command("attention", "Show what each word attends to, for each head (li2020, Figure 2).")]
    pairs.append(command("relation", "Show how strongly words are related in a GRN (chen2019, Figure 4)."))
    for made in pairs:
        made.add_argument("--text", nargs="+", default=FIGURE_1, help="Sentences; by default those of Figure 1.")
    for made in (ablate, *pairs):
        made.add_argument("model", metavar="MODEL", help="The folder of a model, or owner/name on the Hub.")
    speed = command("speed", "Speed of GRN as a multiple of CNN-BiLSTM-CRF's (chen2019, Table 6).")
    speed.add_argument("--dataset", default="xor", help="The corpus whose training split is used.")
    speed.add_argument("--data_dir", help="The folder of the files of a named corpus.")
    speed.add_argument("--sentences", type=int, help="Number of sentences; by default 1280.")
    speed.add_argument("--rounds", type=int, default=5, help="Number of rounds.")
    speed.add_argument("--device", default="cpu", help="The device: cpu, cuda, …")
    return parser


def run(words: Sequence[str]) -> None:
    """Run the analysis, and print what was written."""
    options = parser().parse_args(words)
    analysis = {"xor-proof": prove, "ablate": ablate, "attention": show_pairs, "relation": show_pairs, "speed": speed}
    figures = analysis[options.command](options)
    if options.output:
        text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
        print(f"written: {write_whole(options.output / f'{options.command}.json', text)}")


def prove(options: argparse.Namespace) -> dict[str, Any]:
    """Decide the inequalities of each pattern and decoder; on demand, train models on the phrases."""
    patterns = [tuple(options.pattern)] if options.pattern else [tuple(pattern.split()) for pattern in PATTERNS]
    proofs = []
    for pattern in patterns:
        for decoder in DECODERS:
            system = inequalities(pattern, decoder)
            proof = decide(system)
            found = f"{len(system)} inequalities have a solution" if proof.feasible else "no tagger can be right"
            print(f"{' '.join(pattern)} against O O O, {decoder}: {found}")
            for inequality, number in proof.multipliers:
                print(f"  {number} x [{inequality}]")
            if not proof.feasible:
                print("  sum: 0 > 0")
            proofs.append({"pattern": " ".join(pattern), "decoder": decoder, **proof_figures(proof)})
    return {"proofs": proofs, **({"models": demonstration(options)} if options.demonstrate else {})}


def proof_figures(proof: Proof) -> dict[str, Any]:
    """A proof as JSON."""
    return {
        "feasible": proof.feasible,
        "solution": {" ".join(name): str(value) for name, value in proof.solution.items()},
        "multipliers": [
            {
                "inequality": str(inequality),
                "times": str(number),
                "terms": {" ".join(name): count for name, count in inequality.terms.items()},
            }
            for inequality, number in proof.multipliers
        ],
    }


def demonstration(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Say what is expected of each model, and train it."""
    print("\nexpected, of 4 phrases:")
    for contender in CONTENDERS:
        fails = ", ".join(f"{pattern} {'at most 3' if pattern in contender.fails else 4}" for pattern in PATTERNS)
        print(f"  {contender.name:<20}{fails:<34}{contender.why}")
    print("found:")
    outcomes: list[Outcome] = []
    for outcome in demonstrate(options.seed):
        outcomes.append(outcome)
        judged = "as expected" if outcome.as_expected else "NOT as expected"
        print(f"  {outcome.contender.name:<20}{outcome.pattern}  {outcome.right} of 4, {judged}", flush=True)
    if options.output:
        print(f"written: {draw_demonstration(outcomes, options.output / 'xor-models.png')}")
    return [
        {
            "name": outcome.contender.name,
            "pattern": outcome.pattern,
            "right": outcome.right,
            "expected": outcome.expected,
            "probabilities": [round(each, 4) for each in outcome.probabilities],
        }
        for outcome in outcomes
    ]


def ablate(options: argparse.Namespace) -> dict[str, Any]:
    """Compute the recall of chunk tags, and print it as in li2020's Table 5: changes against all vectors."""
    corpus = load_corpus(options.dataset, options.data_dir)
    if options.split not in corpus:
        raise ValueError(f"{options.dataset} has no split {options.split!r}; choose among {', '.join(corpus)}.")
    sentences = benchmark.sentences_of(corpus[options.split])
    words, tags = [each[0] for each in sentences], [each[1] for each in sentences]
    recalls = raw_chunk_tags(Tagger.from_pretrained(options.model), words, tags)
    parts = [name for name in next(iter(recalls.values())) if name not in ("all", "support")]
    print(f"{'':<4}{'words':>8}{'all':>8}{''.join(f'{part:>8}' for part in parts)}")
    for tag, row in recalls.items():
        changes = "".join(f"{row[part] - row['all']:>+8.2f}" for part in parts)
        print(f"{tag:<4}{row['support']:>8}{row['all']:>8.2f}{changes}")
    return recalls


def show_pairs(options: argparse.Namespace) -> dict[str, Any]:
    """Draw the maps of each sentence."""
    if options.output is None:
        raise ValueError("--output is missing; name a folder for the maps.")
    tagger = Tagger.from_pretrained(options.model)
    is_grn = tagger.model.config.model_type == "grn"
    if is_grn != (options.command == "relation"):
        raise ValueError(
            f"{options.model} is of type {tagger.model.config.model_type}; see `hf-xorner analyze --help`."
        )
    sentences = []
    for number, text in enumerate(options.text, 1):
        pairs = word_pairs(tagger, text)
        print(f"written: {draw_pairs(pairs, options.output / f'{options.command}-{number}.png')}")
        sentences.append({**pairs._asdict(), "maps": dict(zip(pairs.names, pairs.maps.round(4).tolist(), strict=True))})
    return {"sentences": sentences}


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """Time both models in turns, and print GRN's speed as a multiple."""
    figures = benchmark.measure(SPEED, benchmark.load_material(options), options.rounds, options.device)["models"]
    one, other = (figures[name] for name in SPEED)
    ratios = {kind: round(other[kind] / one[kind], 3) for kind in PUBLISHED_SPEED}
    print(f"GRN's words per second as a multiple of CNN-BiLSTM-CRF's, on {options.device}")
    for kind, published in PUBLISHED_SPEED.items():
        print(f"{kind:<8}published {published:.2f} (one GPU, CoNLL-2003)   measured {ratios[kind]:.2f}")
    return {"words_per_second": figures, "multiples": ratios, "published": PUBLISHED_SPEED}
