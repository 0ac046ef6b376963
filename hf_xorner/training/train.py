"""`hf_xorner.train`: from a corpus to a trained `Tagger` in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..tagger import Tagger
from .arguments import arguments_of
from .run import best_seed, check_output, check_seeds, folder_locked, folder_of, of_each_seed, prepare


def train(dataset: str | Path = "xor", recipe: str | None = None, **options: Any) -> Tagger:
    """Train a tagger, save it, and return it.

        tagger = train("my_corpus/", model_type="cnn-lstm-crf", num_train_epochs=20, output_dir="my_tagger")

    Args:
        dataset: A corpus by name, a file, a folder, or owner/name on the Hub.
        recipe: A recipe of the package or a YAML file, which `dataset` and `options` override.
        **options: The options of ``hf-xorner train``: arguments of the `Trainer` and fields of the model's config.

    Returns:
        The saved tagger. Its `scores` are those of the held-out splits; with `seeds`, the seed with the best validation
        score is returned.

    Raises:
        ValueError: If an option is unknown or wrong, or the corpus cannot be read.
    """
    if not recipe or dataset != "xor":
        options["dataset"] = str(dataset)
    run, training, config_fields = arguments_of(options, recipe)
    if training.push_to_hub:
        raise ValueError(
            "push_to_hub is an option of `hf-xorner train`; call hf_xorner.publish with the folder instead."
        )
    check_seeds(run, training)
    scores = {}
    with folder_locked(str(training.output_dir), training):
        for one, settings in of_each_seed(run, training):
            check_output(one, settings)
        for one, settings in of_each_seed(run, training):
            ready = prepare(one, settings, config_fields)
            scores[settings.seed] = ready.train()
        ready.leave()
        folder = str(training.output_dir)
        best = next(iter(scores))
        if run.seeds:
            best = best_seed(scores)
            folder = folder_of(folder, best)
        tagger = Tagger.from_pretrained(folder)
    tagger.scores = scores[best]
    return tagger
