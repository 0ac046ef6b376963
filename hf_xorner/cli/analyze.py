"""`hf-xorner analyze`: run proofs and analyses of the papers, and write pictures and figures as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..corpora import load_corpus
from ..corpora.assemble import words_and_tags
from ..files import write_json
from ..options import Commands, option, run_command
from ..papers.chunk_tags import raw_chunk_tags
from ..papers.word_pairs import FIGURE_1, draw_pairs, word_pairs
from ..papers.xor_demonstration import PATTERNS, Outcome, demonstrate, draw_demonstration
from ..papers.xor_proof import DECODERS, decide, inequalities
from ..tagger import Tagger
from ..text_table import text_table

EXAMPLES = (
    "hf-xorner analyze xor-proof --demonstrate --output xor",
    "hf-xorner analyze xor-proof --pattern S O S",
    "hf-xorner analyze ablate my_att_tagger --dataset wnut17 --data_dir corpora --output ablation",
    "hf-xorner analyze word-pairs my_grn_tagger --text 'Ann saw Bob in Paris.' --output relations",
)
DESCRIPTION = "Run a proof or an analysis of the papers."


@dataclass(kw_only=True)
class ProofOptions:
    """The options of `xor-proof`."""

    output: str | None = option(None, "The folder for pictures and figures as JSON.")
    pattern: list[str] = option([], "The three chunk tags of an entity; by default both B I E and O S O.")
    demonstrate: bool = option(False, "Also train models on the phrases, which takes a minute.")
    seed: int = option(0, "The seed of the models.")


@dataclass(kw_only=True)
class AblationOptions:
    """The options of `ablate`."""

    output: str | None = option(None, "The folder for pictures and figures as JSON.")
    model: str = option(help="The folder of a model, or owner/name on the Hub.", positional=True)
    dataset: str = option(help="A corpus by name, a file, a folder of files, a Hub id.")
    data_dir: str | None = option(None, "The folder of the files of a named corpus.")
    split: str = option("validation", "The split to label.")


@dataclass(kw_only=True)
class PairOptions:
    """The options of `word-pairs`."""

    model: str = option(help="The folder of a model, or owner/name on the Hub.", positional=True)
    output: str = option(help="The folder for the maps and figures as JSON.")
    text: list[str] = option(list(FIGURE_1), "Sentences; by default those of li2020's Figure 1.")


def write_figures(name: str, figures: Any, output: str | None) -> None:
    """Write the figures of an analysis into the output folder, if there is one."""
    if output:
        print(f"written: {write_json(Path(output) / f'{name}.json', figures)}")


def prove(options: ProofOptions) -> None:
    """Prove whether a Baseline-BiLSTM can label the four XOR phrases (li2020, section 3)."""
    if options.demonstrate and options.output:
        import_module("matplotlib")  # before models are trained
    patterns = [tuple(options.pattern)] if options.pattern else [tuple(pattern.split()) for pattern in PATTERNS]
    proofs = []
    for pattern in patterns:
        for decoder in DECODERS:
            system = inequalities(pattern, decoder)
            proof = decide(system)
            outcome = f"{len(system)} inequalities have a solution" if proof.feasible else "no tagger can be right"
            print(f"{' '.join(pattern)} against O O O, {decoder}: {outcome}")
            for inequality, number in proof.multipliers:
                print(f"  {number} x [{inequality}]")
            if not proof.feasible:
                print("  sum: 0 > 0")
            solution = {" ".join(name): str(value) for name, value in proof.solution.items()}
            multipliers = {str(inequality): str(number) for inequality, number in proof.multipliers}
            figures = {"feasible": proof.feasible, "solution": solution, "multipliers": multipliers}
            proofs.append({"pattern": " ".join(pattern), "decoder": decoder, **figures})
    models = {"models": demonstration(options)} if options.demonstrate else {}
    write_figures("xor-proof", {"proofs": proofs, **models}, options.output)


def demonstration(options: ProofOptions) -> list[dict[str, Any]]:
    """Train the models; print how many of the four phrases each one learns, the expectation and the reason."""
    outcomes: list[Outcome] = []
    for outcome in demonstrate(options.seed):
        outcomes.append(outcome)
        name, why = outcome.contender.name, outcome.contender.why
        verdict = "as expected" if outcome.as_expected else f"NOT as expected, {outcome.expected}"
        print(f"{name:<20}{outcome.pattern}  {outcome.right} of 4, {verdict}: {why}", flush=True)
    if options.output:
        print(f"written: {draw_demonstration(outcomes, Path(options.output) / 'xor-models.png')}")
    return [
        {
            "name": outcome.contender.name,
            "pattern": outcome.pattern,
            "right": outcome.right,
            "expected": outcome.expected,
            "probabilities": [round(probability, 4) for probability in outcome.probabilities],
        }
        for outcome in outcomes
    ]


def ablate(options: AblationOptions) -> None:
    """Compute the recall of chunk tags with parts of the vectors zeroed (li2020, Table 5)."""
    corpus = load_corpus(options.dataset, options.data_dir)
    if options.split not in corpus:
        raise ValueError(f"{options.dataset} has no split {options.split!r}; choose among {', '.join(corpus)}.")
    tagger = Tagger.from_pretrained(options.model)
    if not tagger.model.tags.chunked:
        raise ValueError(f"{options.model} labels single words; name a model of entities.")
    recalls = raw_chunk_tags(tagger, *words_and_tags(corpus[options.split]))
    parts = [name for name in next(iter(recalls.values())) if name not in ("all", "support")]
    rows = (
        (tag, row["support"], row["all"], *(f"{row[part] - row['all']:+.2f}" for part in parts))
        for tag, row in recalls.items()
    )
    print(text_table([("", "words", "all", *parts), *rows]))
    write_figures("ablate", recalls, options.output)


def draw_maps(options: PairOptions) -> None:
    """Draw what each word attends to, for each head (li2020, Figure 2), or a GRN's relations (chen2019, Figure 4)."""
    tagger = Tagger.from_pretrained(options.model)
    sentences = []
    for number, text in enumerate(options.text, 1):
        pairs = word_pairs(tagger, text)
        print(f"written: {draw_pairs(pairs, Path(options.output) / f'word-pairs-{number}.png')}")
        sentences.append({**pairs._asdict(), "maps": dict(zip(pairs.names, pairs.maps.round(4).tolist(), strict=True))})
    write_figures("word-pairs", {"sentences": sentences}, options.output)


COMMANDS: Commands = {
    "xor-proof": (ProofOptions, prove),
    "ablate": (AblationOptions, ablate),
    "word-pairs": (PairOptions, draw_maps),
}


def run(words: Sequence[str]) -> None:
    """Run one of the analyses."""
    run_command(COMMANDS, words)
