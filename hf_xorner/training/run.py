"""A whole run: corpus, tokenizer, model, training, scores, and the folder that holds what came of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from datasets import Dataset, DatasetDict
from transformers import AutoModelForTokenClassification, set_seed

from ..data import load_corpus
from ..data.composition import read_composition
from ..data.encoders import read_encoder
from ..data.vector_files import read_vectors
from ..data.vector_lookup import Coverage, coverage_of
from ..evaluation import checked_span_scores
from ..models.tags import IGNORED
from ..models.tokenization_word_char import WordCharTokenizer
from ..registration import CONFIGS
from .arguments import RunArguments, TaggerTrainingArguments
from .averaging import EpochAverage, keep_the_better
from .context import context_fields, pieces_of, place_encoder, with_context_states
from .record import RunRecord
from .trainer import TaggerTrainer
from .vectors import composition_fields, place_composition, place_vectors, vector_fields

WORDS, LABELS = "tokens", "ner_tags"


class TrainingRun(NamedTuple):
    """A run that is ready to start: `corpus` goes through `trainer` into `trainer.args.output_dir`.

    `coverage` says of each split what part of it has a pretrained vector, where there are any. `average` collects the
    weights of the last epochs, where they are to be averaged. `record` is what `output_dir` says of the run.
    """

    corpus: DatasetDict
    trainer: TaggerTrainer
    coverage: dict[str, Coverage]
    average: EpochAverage | None
    record: RunRecord

    def train(self) -> dict[str, dict[str, Any]]:
        """Train, save model and tokenizer, and return the scores of the held-out splits, which seqeval has checked.

        Raises:
            TrainingError: If the run cannot begin or go on; what was saved before is as it was.
        """
        self.trainer.train(resume_from_checkpoint=self.trainer.args.resume_from_checkpoint)
        if self.average is not None:
            keep_the_better(self.trainer, self.average)
        self.trainer.save_model()
        scores = {name: self.score(split) for name, split in self.corpus.items() if name != "train"}
        self.record.finish(self.trainer)
        return scores

    def score(self, split: Dataset) -> dict[str, Any]:
        """Score the model on a split."""
        names = self.trainer.model.config.labels
        output = self.trainer.predict(split)
        predicted, gold = output.predictions.argmax(-1), output.label_ids
        known = gold != IGNORED
        return checked_span_scores(
            [[names[label] for label in row[mask]] for row, mask in zip(gold, known, strict=True)],
            [[names[label] for label in row[mask]] for row, mask in zip(predicted, known, strict=True)],
        )


def prepare(run: RunArguments, training: TaggerTrainingArguments, config_fields: dict[str, Any]) -> TrainingRun:
    """Load the corpus, and build tokenizer, model and trainer from it; what does not fit is said here, in one sentence.

    Args:
        run: What is trained on what.
        training: How it is trained.
        config_fields: Fields of the model's config that differ from their defaults.
    """
    set_seed(training.seed)
    corpus = load_corpus(run.dataset, run.data_dir, **run.reading())
    config_class = CONFIGS[run.model_type]
    encoder = read_encoder(run.context) if run.context else None
    composition = read_composition(run.composed) if run.composed else None
    pieces = pieces_of(encoder, composition)
    vectors = read_vectors(run.vectors, most_frequent=run.most_frequent_vectors) if run.vectors else None
    tokenizer = WordCharTokenizer.from_corpus(
        corpus["train"][WORDS],
        min_count=run.min_count,
        casing=run.casing,
        digits=run.digits,
        max_word_chars=config_fields.get("max_word_chars", config_class.max_word_chars),
        fallback=run.fallback,
        vector_words=vectors.words if vectors else (),
        pieces=pieces,
        max_word_pieces=run.max_word_pieces,
    )
    if composition:
        config_fields = {**composition_fields(composition), **config_fields}
    if encoder:
        config_fields = {**context_fields(encoder), **config_fields}
    if vectors:
        config_fields = {**config_fields, **vector_fields(run.vectors_as, vectors.dim)}
    names = corpus["train"].features[LABELS].feature.names
    config = config_class(**{**config_fields, **tokenizer.model_fields(), "id2label": dict(enumerate(names))})
    model = AutoModelForTokenClassification.from_config(config)
    coverage = {}
    if composition:
        place_composition(model.features.composed, composition)
    if encoder:
        place_encoder(model.features.context, encoder.model)
        if config.context_frozen:
            with training.main_process_first(desc="encoding"):
                corpus = with_context_states(corpus, model.features.context.to(training.device), tokenizer, WORDS)
    if vectors:
        place_vectors(model.features, tokenizer, vectors, run.vectors_as)
        coverage = {name: coverage_of(tokenizer, vectors.words, split[WORDS]) for name, split in corpus.items()}
    if "validation" not in corpus:
        # Nothing to choose the best epoch by: the last one is taken.
        training.eval_strategy, training.load_best_model_at_end = "no", False
    elif training.metric_for_best_model in (None, "loss"):
        training.metric_for_best_model = "f1" if model.tags.chunked else "accuracy"
        training.greater_is_better = True
    trainer = TaggerTrainer(
        model,
        training,
        train_dataset=corpus["train"],
        eval_dataset=corpus.get("validation"),
        processing_class=tokenizer,
    )
    average = None
    if run.average_epochs and "validation" in corpus:
        average = EpochAverage(run.average_epochs)
        trainer.add_callback(average)
    record = RunRecord(corpus, asdict(run), [WORDS, LABELS])
    trainer.add_callback(record)
    return TrainingRun(corpus, trainer, coverage, average, record)
