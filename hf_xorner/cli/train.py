"""`hf-xorner train`: train a tagger, score it, save it, and tag a sentence with it."""

import logging
import sys
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from datasets import Dataset
from huggingface_hub import HfApi
from transformers import pipeline

from ..evaluation.plots import CURVE_FILE, draw, draw_curve
from ..evaluation.report_text import score_table
from ..hub import prepare_repository, publish
from ..loading import without_bars
from ..training.advice import advice
from ..training.arguments import TaggerTrainingArguments, parse, training_parser
from ..training.facts import AGREEMENT, read_facts
from ..training.run import TrainingRun, best_seed, each_run, folder_locked, folder_of, seed_table
from ..vectors.distill import AUTO, ORIGIN, START
from . import fail

EXAMPLES = (
    "hf-xorner train my_corpus/ --model_type cnn-lstm-crf --output_dir my_tagger",
    "hf-xorner train li2020/table1/cross --vectors glove.6B.300d.txt --seeds 1 2 3",
    "hf-xorner train my_corpus/ --teacher large_tagger --teacher_text sentences.txt --output_dir small_tagger",
)
DESCRIPTION = (
    "RECIPE is a recipe of the package, such as ma2016/table7/no-dropout, or a YAML file of options. CORPUS is the "
    "same as --dataset. Without either, Cross-BiLSTM-CNN is trained on the XOR corpus. With --teacher, the "
    "model also learns from the predictions of larger taggers. Also runs under `accelerate launch scripts/train.py` "
    "and `torchrun`. Every argument of the Trainer and every field of the architecture's config is an option."
)
DEFAULT_RECIPE = "xor/cross"
_SHOWN = 40  # words of the sentence that is tagged at the end
parser = training_parser


def run(words: Sequence[str]) -> None:
    """Train, score, tag a sentence, and publish the model if requested."""
    run, training, config_fields = parse(words, DEFAULT_RECIPE)
    # The Trainer would warn that checkpoints within a second of each other are sorted by their numbers.
    logging.getLogger("transformers.trainer_utils").addFilter(lambda record: "mtime" not in record.getMessage())
    # A log file has one line per epoch, without progress bars.
    training.disable_tqdm = training.disable_tqdm or not sys.stderr.isatty()
    destination = where_to_publish(training, run.overwrite)
    folder = str(training.output_dir)
    scores = {}
    # Locked until the model is published, so that no other run replaces it before.
    with folder_locked(folder, training):
        for ready in each_run(run, training, config_fields):
            scores[ready.trainer.args.seed] = train(ready)
        if training.process_index != 0:
            return
        if run.seeds:
            print(seed_table(scores))
            folder = folder_of(folder, best_seed(scores))
            has_validation = "validation" in next(iter(scores.values()))
            chosen = "the best model by validation scores" if has_validation else "the model of the first seed"
            print(f"{chosen} is in {folder}")
        use(folder, list(ready.corpus.values())[-1])
        if destination:
            try:
                commit = publish(folder, **destination)
            except ValueError as error:
                fail("train", f"not published: {error}")
            print(f"published as {commit.commit_url}")


def train(ready: TrainingRun) -> dict[str, Any]:
    """Train, print the scores and advice, and return the scores."""
    main = ready.trainer.is_world_process_zero()
    if main:
        introduce(ready)
    try:
        scores = ready.train()
    except KeyboardInterrupt:
        fail("train", "stopped; --resume_from_checkpoint continues.", 130)
    if main:
        print(score_table(scores, AGREEMENT if ready.run.texts_alone else "F1"))
        folder = Path(str(ready.trainer.args.output_dir))
        facts = read_facts(folder)
        if draw_curve(facts["curve"], folder / CURVE_FILE) and scores:
            draw(list(scores.values())[-1], folder)
        print(f"saved in {folder}", flush=True)
        if limits := advice(facts):
            print(limits, flush=True)
    return scores


def introduce(ready: TrainingRun) -> None:
    """Print the model, the corpus, the options set by its size, and the share of words with a vector."""
    sizes = ", ".join(f"{len(split)} {name}" for name, split in ready.corpus.items())
    corpora = " + ".join([ready.run.dataset, *ready.run.more_data])
    seed = ready.trainer.args.seed
    print(f"{ready.run.model_type} on {corpora} ({sizes} sentences), seed {seed}", flush=True)
    if ready.chosen.get("model_name_or_path") == START:
        print(f"starts from {START} of the package (Apache-2.0); --model_name_or_path none leaves it out", flush=True)
    if ready.run.vectors == AUTO:
        print(f"vectors of English word pieces from {ORIGIN} (Apache-2.0); --vectors none leaves them out", flush=True)
    if ready.chosen:
        chosen = ", ".join(f"{name} {str(value).removesuffix('.0')}" for name, value in ready.chosen.items())
        print(f"chosen for {len(ready.corpus['train'])} sentences: {chosen}", flush=True)
    for name, coverage in ready.coverage.items():
        print(f"words of {name} that have a vector\n{coverage}", flush=True)


def use(folder: str, split: Dataset) -> None:
    """Tag a sentence of the held-out data with the saved model and the pipeline of transformers."""
    # The first with an entity near its start; a document may be one sentence.
    rows = [(row["tokens"][:_SHOWN], any(row["ner_tags"][:_SHOWN])) for row in split if row["tokens"]]
    if not rows:
        return
    sentence = " ".join(max(rows, key=itemgetter(1))[0])
    with without_bars():
        tagger = pipeline("ner", model=folder, aggregation_strategy="simple")
    print(sentence)
    for entity in tagger(sentence):
        print(f"  {entity['entity_group']:<8} {sentence[entity['start'] : entity['end']]!r} {entity['score']:.3f}")


def where_to_publish(training: TaggerTrainingArguments, overwrite: bool) -> dict:
    """Return the arguments of `publish`, after a check that the repository can be written; empty without push_to_hub.

    The Trainer would publish without checks, so its option is switched off.
    """
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
        "overwrite": overwrite,
    }
    if training.process_index == 0:
        prepare_repository(**destination)
    return destination
