"""Shows which errors a tagger makes, and draws them.

A Baseline-BiLSTM-CNN is trained on the built-in XOR corpus, which it cannot learn completely. The script prints the
outcome of the gold entities of each type, the spurious entities, and a few sentences with errors. It draws two plots:
the confusion of types and the reliability of the confidence.
`python error_analysis.py [FOLDER]`; needs `pip install "hf_xorner[plots]"`.
"""

import sys
from typing import Any

from hf_xorner import evaluate, load_corpus, train
from hf_xorner.evaluation.plots import draw

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "runs/error_analysis"
KINDS = ("boundary", "boundary_and_type", "missed")

if __name__ == "__main__":
    options: dict[str, Any] = {"num_train_epochs": 2, "hidden_size": 50, "disable_tqdm": True, "overwrite": True}
    tagger = train("xor", model_type="bilstm-cnn", output_dir=FOLDER, **options)
    scores = evaluate(tagger, "xor", resamples=0)
    print(f"precision {scores['precision']:.0f}, recall {scores['recall']:.0f}, F1 {scores['f1']:.0f}")

    errors = scores["confusion"]
    for number, name in enumerate(errors["types"]):
        as_types = zip(errors["types"], errors["matrix"][number], strict=True)
        outcomes = {f"as {other}": count for other, count in as_types} | {kind: errors[kind][name] for kind in KINDS}
        print(f"gold {name}:", ", ".join(f"{count} {kind}" for kind, count in outcomes.items() if count))
    print("predicted where no gold entity overlaps:", errors["spurious"])

    split = load_corpus("xor")["test"]
    names, shown = split.features["ner_tags"].feature.names, 0
    for row, annotation in zip(split, tagger.annotate(split["tokens"]), strict=True):
        gold = [names[tag] for tag in row["ner_tags"]]
        if gold != annotation.labels and shown < 3:
            shown += 1
            wrong = zip(row["tokens"], gold, annotation.labels, strict=True)
            print(" ".join(f"{word}[{tag}→{other}]" if tag != other else word for word, tag, other in wrong))
    for path in draw(scores, f"{FOLDER}/pictures"):
        print(f"written: {path}")
