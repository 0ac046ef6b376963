"""Small runs, Trainers and their arguments."""

from conftest import LABELS, SENTENCES, build_model
from datasets import Dataset
from transformers import TrainingArguments

from hf_xorner.training.arguments import TaggerTrainingArguments, parse
from hf_xorner.training.run import each_run
from hf_xorner.training.trainer import TaggerTrainer

QUIET = {"use_cpu": True, "disable_tqdm": True}


def words_of(**options):
    """Options as words of a command line."""
    words = []
    for name, value in {**QUIET, **options}.items():
        words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return words


def ready(corpus, out, *words, **options):
    """A run that is ready to be trained; words of a command line override options."""
    return next(each_run(*parse([*words_of(dataset=corpus, output_dir=out, **options), *map(str, words)])))


def settings(folder, **options):
    """Stock arguments that save and report nothing."""
    return TrainingArguments(str(folder), **{**QUIET, "report_to": "none", "save_strategy": "no", **options})


def labelled(size=4, labels=LABELS):
    """Sentences with labels of all kinds."""
    sentences = [SENTENCES[number % 4] for number in range(size)]
    tags = [[(3 * index + number) % len(labels) for index in range(len(s))] for number, s in enumerate(sentences)]
    return Dataset.from_dict({"tokens": sentences, "ner_tags": tags})


def make_trainer(folder, tokenizer, *, size=4, labels=LABELS, dev=True, callbacks=None, dropout=0.35, **options):
    """A TaggerTrainer of a small model, in batches of two sentences, for three epochs."""
    options = {**QUIET, "num_train_epochs": 3, "per_device_train_batch_size": 2, **options}
    if not dev:
        options = {"eval_strategy": "no", "load_best_model_at_end": False, **options}
    return TaggerTrainer(
        build_model("bilstm-cnn", tokenizer, labels=labels, dropout=dropout),
        TaggerTrainingArguments(str(folder), **options),
        train_dataset=labelled(size, labels),
        eval_dataset=labelled(size, labels) if dev else None,
        processing_class=tokenizer,
        callbacks=callbacks,
    )
