"""Training through the Trainer: losses right under accumulation and in several processes, ragged evaluation."""

import pytest
import torch
from conftest import LABELS, SENTENCES, build_model
from datasets import Dataset
from runs import settings

from hf_xorner.training.arguments import TaggerTrainingArguments
from hf_xorner.training.batches import TaggingCollator
from hf_xorner.training.trainer import EarlyStopping, TaggerTrainer

REDUCTIONS = ("token", "sentence", "sum")


def tiny_data() -> Dataset:
    """Four sentences of different lengths, the last without any label."""
    tags = [[(7 * index + number) % len(LABELS) for index in range(len(s))] for number, s in enumerate(SENTENCES)]
    tags[-1] = [-100] * len(tags[-1])
    return Dataset.from_dict({"tokens": SENTENCES, "ner_tags": tags})


def one_step(folder, tokenizer, reduction: str, **arguments) -> dict[str, torch.Tensor]:
    """The weights after one step of plain gradient descent over the four sentences."""
    model = build_model("cross-bilstm-cnn", tokenizer, loss_reduction=reduction, dropout=0.0)
    sgd = {"learning_rate": 0.1, "optim": "sgd", "lr_scheduler_type": "constant", "max_grad_norm": 0.0}
    arguments = settings(folder, max_steps=1, **sgd, **arguments)
    trainer = TaggerTrainer(model, arguments, train_dataset=tiny_data(), processing_class=tokenizer)
    trainer.train()
    return {name: value.detach().clone() for name, value in trainer.model.state_dict().items()}


@pytest.fixture
def trainer_of(tmp_path, tokenizer):
    """Build a trainer with the defaults of taggers."""

    def build(data, build_itself=False, **arguments):
        def model():
            return build_model("bilstm-cnn", tokenizer)

        return TaggerTrainer(
            None if build_itself else model(),
            TaggerTrainingArguments(str(tmp_path), use_cpu=True, **arguments),
            model_init=model if build_itself else None,
            train_dataset=tiny_data(),
            eval_dataset=data,
            processing_class=tokenizer,
        )

    return build


@pytest.mark.parametrize("build_itself", [False, True])
@pytest.mark.parametrize(("splits", "metric"), [(None, "f1"), ("ab", "a_f1")])
def test_models_are_selected_by_f1(trainer_of, build_itself, splits, metric):
    trainer = trainer_of({name: tiny_data() for name in splits} if splits else tiny_data(), build_itself)
    assert (trainer.args.metric_for_best_model, trainer.args.greater_is_better) == (metric, True)
    assert f"eval_{metric}" in trainer.evaluate()


def test_without_validation_data_nothing_is_evaluated(trainer_of):
    trainer = trainer_of(None)
    assert (trainer.args.metric_for_best_model, trainer.args.eval_strategy) == ("loss", "no")


def test_a_metric_of_no_split_is_refused(trainer_of):
    with pytest.raises(ValueError, match="metric_for_best_model='b_f1' is unknown"):
        trainer_of(tiny_data(), metric_for_best_model="b_f1")


def test_metrics_of_the_user_have_the_usual_number_of_unlabelled_words(tmp_path, tokenizer):
    seen = []
    options = {"eval_dataset": tiny_data(), "processing_class": tokenizer}
    options["compute_metrics"] = lambda output: seen.append(output.label_ids) or {"f1": 0.0}
    TaggerTrainer(build_model("bilstm-cnn", tokenizer), settings(tmp_path), **options).evaluate()
    assert seen[0].min() == -100 and -1 not in seen[0]


def test_resuming_may_change_the_patience():
    stopping = EarlyStopping(1)
    arguments = TaggerTrainingArguments(early_stopping=4, metric_for_best_model="f1", use_cpu=True)
    stopping.on_train_begin(arguments, None, None)
    assert stopping.early_stopping_patience == 4


def largest_difference(left: dict, right: dict) -> float:
    return max((left[name].double() - right[name].double()).abs().max().item() for name in left)


def test_accumulated_gradients_match_a_large_batch(tmp_path, tokenizer):
    start = build_model("cross-bilstm-cnn", tokenizer).state_dict()
    for reduction in REDUCTIONS:
        whole = one_step(tmp_path, tokenizer, reduction, per_device_train_batch_size=4)
        parts = one_step(tmp_path, tokenizer, reduction, per_device_train_batch_size=1, gradient_accumulation_steps=4)
        assert largest_difference(whole, start) > 1e-3
        assert largest_difference(whole, parts) < 1e-6, reduction


@pytest.mark.parametrize(("columns", "remove"), [(("tokens", "ner_tags"), True), (("words", "tags"), False)])
def test_stock_arguments_keep_the_columns_of_the_collator(tmp_path, tokenizer, columns, remove):
    """Others are removed as the stock Trainer does, or are left."""
    words, labels = columns
    data = tiny_data().rename_columns({"tokens": words, "ner_tags": labels}).add_column("id", list("abcd"))
    arguments = settings(tmp_path, max_steps=1, remove_unused_columns=remove)
    seen = set()

    class Collator(TaggingCollator):
        def __call__(self, examples):
            seen.add(frozenset(examples[0]))
            return super().__call__(examples)

    trainer = TaggerTrainer(
        build_model("bilstm-cnn", tokenizer),
        arguments,
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        data_collator=Collator(tokenizer, words, labels),
    )
    trainer.train()
    assert trainer.evaluate()["eval_f1"] >= 0
    assert trainer.predict(data.remove_columns(labels)).predictions.shape[0] == len(data)
    kept = set() if remove else {"id"}
    assert seen == {frozenset({*columns, *kept}), frozenset({words, *kept})}
    assert trainer.args.remove_unused_columns is remove


def test_the_collator_names_a_missing_column_and_an_example_with_too_few_labels(tokenizer):
    for examples, fact in (
        ([{"words": ["Ann"], "ner_tags": [0]}], "'words'.* 'tokens'"),
        ([{"tokens": ["a"], "ner_tags": [0]}, {"tokens": ["a", "b"], "ner_tags": [0]}], "Example 1 .*2 tokens"),
        ([{"tokens": ["a"], "ner_tags": [0, 0]}, {"tokens": ["a", "b"], "ner_tags": [0]}], "Example 0 .*1 tokens"),
    ):
        with pytest.raises(ValueError, match=fact):
            TaggingCollator(tokenizer)(examples)
