"""Train a tagger, score it, save it, and use what was saved.

    python scripts/train.py [RECIPE.yaml] [--option value …]

Without arguments: Cross-BiLSTM-CNN on the XOR corpus. A recipe is a YAML file of the same options. Also to be started
by `accelerate launch` or `torchrun`. `--help` lists the options; every field of the architecture's config is one too.
`--seeds 1 2 3` trains once for each seed, and prints mean and deviation of the scores.
`--resume_from_checkpoint true` goes on with a run that was stopped, and begins one that was not.
`--push_to_hub true --hub_model_id OWNER/NAME` publishes the model at the end, as publish.py does.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from datasets import DatasetDict
from huggingface_hub import HfApi
from transformers import pipeline

from hf_xorner.evaluation.tables import score_table
from hf_xorner.hub import publish, ready_to_publish
from hf_xorner.hub.checks import OWN
from hf_xorner.training import (
    RunArguments,
    Stopped,
    TaggerTrainingArguments,
    TrainingError,
    TrainingRun,
    best_seed,
    check_output,
    check_seeds,
    folder_locked,
    folder_of,
    of_each_seed,
    parse,
    prepare,
    seed_table,
    stoppable,
)


def main() -> None:
    """Run from the command line."""
    # A word or label that the terminal's encoding lacks ends no run.
    sys.stdout.reconfigure(errors="backslashreplace")
    with ExitStack() as stack:
        try:
            run, training, config_fields = parse()
            check_seeds(run, training)
            destination = where_to_publish(training)
            # Until the model is published: what is scored, used and uploaded is one run's.
            stack.enter_context(folder_locked(str(training.output_dir), training))
            for one, settings in of_each_seed(run, training):
                check_output(one, settings)
        except ValueError as error:
            sys.exit(f"train.py: {error}")
        train_and_publish(run, training, config_fields, destination)


def train_and_publish(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any], destination: dict[str, Any]
) -> None:
    """Train, show what the model can do, and publish it where a destination is given."""
    ready, scores = train(run, training, config_fields)
    if training.process_index != 0:
        return
    folder = str(training.output_dir)
    if run.seeds:
        print(seed_table(scores))
        folder = folder_of(folder, best_seed(scores))
        print(f"the best by its validation scores is in {folder}")
    use(folder, ready.corpus)
    if destination:
        try:
            card = (Path(folder) / "README.md").exists()
            done = publish(folder, **destination, card=card, sentences=sentences_behind(ready.corpus, run))
        except ValueError as error:
            sys.exit("\n".join(f"train.py: not published: {line}" for line in str(error).splitlines()))
        print(f"published as {done.url}, commit {done.commit}")


def train(
    run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any]
) -> tuple[TrainingRun, dict[int, dict[str, Any]]]:
    """Train, for each seed where there are several; return the last run, and the scores by seed."""
    scores, exit_code = {}, 0
    for one, settings in of_each_seed(run, training):
        try:
            ready = prepare(one, settings, config_fields)
        except ValueError as error:
            sys.exit(f"train.py: {error}")
        introduce(ready, settings.seed if run.seeds else None)
        try:
            with stoppable():
                scores[settings.seed] = ready.train()
        except TrainingError as error:
            sys.exit(f"train.py: {error}")
        except Stopped as stop:
            if training.process_index == 0:
                print(f"train.py: stopped by {stop}; --resume_from_checkpoint true goes on.", file=sys.stderr)
            exit_code = stop.exit_code
            break
        if training.process_index == 0:
            print(score_table(scores[settings.seed]))
            print(f"saved in {settings.output_dir}", flush=True)
    # Only now: an exception that is being handled holds all that it came through.
    ready.leave()
    if exit_code:
        sys.exit(exit_code)
    return ready, scores


def introduce(ready: TrainingRun, seed: int | None) -> None:
    """Say what is trained on what, and what part of the words has a pretrained vector."""
    if not ready.trainer.is_world_process_zero():
        return
    sizes = ", ".join(f"{len(split)} {name}" for name, split in ready.corpus.items())
    which = "" if seed is None else f", seed {seed}"
    print(f"{ready.run.model_type} on {ready.run.dataset} ({sizes} sentences){which}", flush=True)
    for name, found in ready.coverage.items():
        print(f"words of {name} that have a vector\n{found}", flush=True)


def use(folder: str, corpus: DatasetDict) -> None:
    """Tag a sentence of the held-out data with what was saved, as anyone would."""
    rows = (row for row in list(corpus.values())[-1] if row["tokens"])
    first = next(rows, None)
    if first is None:
        return
    row = first if any(first["ner_tags"]) else next((row for row in rows if any(row["ner_tags"])), first)
    sentence = " ".join(row["tokens"])
    tagger = pipeline("ner", model=folder, aggregation_strategy="simple")
    print(sentence)
    for entity in tagger(sentence):
        print(f"  {entity['entity_group']:<8} {sentence[entity['start'] : entity['end']]!r} {entity['score']:.3f}")


def where_to_publish(training: TaggerTrainingArguments) -> dict:
    """Take publishing from the Trainer, which checks nothing, and look whether it can be done before training."""
    if not training.push_to_hub:
        return {}
    training.push_to_hub = False
    if not training.hub_model_id:
        raise ValueError("push_to_hub needs hub_model_id, the repository as owner/name.")
    destination = {
        "repo_id": training.hub_model_id,
        "private": training.hub_private_repo,
        "revision": training.hub_revision or "main",
        "api": HfApi(token=training.hub_token),
    }
    if training.process_index == 0:
        ready_to_publish(**destination)
    return destination


def sentences_behind(corpus: DatasetDict, run: RunArguments) -> Iterator[list[str]]:
    """The sentences that must not be published along; those of the generated corpus are anyone's."""
    if run.dataset != OWN:
        for split in corpus.values():
            yield from split["tokens"]


if __name__ == "__main__":
    main()
