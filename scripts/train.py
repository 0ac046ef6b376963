"""Train a tagger, score it, save it, and use what was saved.

    python scripts/train.py [RECIPE.yaml] [--option value …]

Without arguments: Cross-BiLSTM-CNN on the XOR corpus. A recipe is a YAML file of the same options. Also to be started
by `accelerate launch` or `torchrun`. `--help` lists the options; every field of the architecture's config is one too.
`--resume_from_checkpoint true` goes on with a run that was stopped, and begins one that was not.
`--push_to_hub true --hub_model_id OWNER/NAME` publishes the model at the end, as publish.py does.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import DatasetDict
from huggingface_hub import HfApi
from transformers import pipeline

from hf_xorner.evaluation.tables import score_table
from hf_xorner.hub import publish, ready_to_publish
from hf_xorner.hub.corpus import OWN
from hf_xorner.training import (
    RunArguments,
    Stopped,
    TaggerTrainingArguments,
    TrainingError,
    parse,
    prepare,
    stoppable,
)


def main() -> None:
    """Run from the command line."""
    try:
        run, training, config_fields = parse()
        destination = where_to_publish(training)
        ready = prepare(run, training, config_fields)
    except ValueError as error:
        sys.exit(f"train.py: {error}")
    sizes = ", ".join(f"{len(split)} {name}" for name, split in ready.corpus.items())
    if training.process_index == 0:
        print(f"{run.model_type} on {run.dataset} ({sizes} sentences)", flush=True)
        for name, found in ready.coverage.items():
            print(f"words of {name} that have a vector\n{found}", flush=True)
    exit_code = 0
    try:
        with stoppable():
            scores = ready.train()
    except TrainingError as error:
        sys.exit(f"train.py: {error}")
    except Stopped as stop:
        if training.process_index == 0:
            print(f"train.py: stopped by {stop}; --resume_from_checkpoint true goes on.", file=sys.stderr)
        exit_code = stop.exit_code
    # Only now: an exception that is being handled holds all that it came through.
    ready.leave()
    if exit_code:
        sys.exit(exit_code)
    if training.process_index != 0:
        return
    print(score_table(scores))
    print(f"saved in {training.output_dir}")
    tagger = pipeline("ner", model=training.output_dir, aggregation_strategy="simple")
    held_out = list(ready.corpus.values())[-1]
    sentence = " ".join(next((row for row in held_out if any(row["ner_tags"])), held_out[0])["tokens"])
    print(sentence)
    for entity in tagger(sentence):
        print(f"  {entity['entity_group']:<8} {sentence[entity['start'] : entity['end']]!r} {entity['score']:.3f}")
    if destination:
        try:
            card = (Path(training.output_dir) / "README.md").exists()
            done = publish(training.output_dir, **destination, card=card, sentences=sentences_behind(ready.corpus, run))
        except ValueError as error:
            sys.exit("\n".join(f"train.py: not published: {line}" for line in str(error).splitlines()))
        print(f"published as {done.url}, commit {done.commit}")


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
