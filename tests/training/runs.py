"""Small runs and the Trainer's arguments for them."""

from transformers import TrainingArguments

from hf_xorner.training import parse, prepare

QUIET = {"use_cpu": True, "disable_tqdm": True}


def words_of(**options):
    """Options as words of a command line."""
    words = []
    for name, value in {**QUIET, **options}.items():
        words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return words


def ready(corpus, out, *words, **options):
    """A run that is ready to be trained; words of a command line override options."""
    return prepare(*parse([*words_of(dataset=corpus, output_dir=out, **options), *map(str, words)]))


def settings(folder, **options):
    """Stock arguments that save and report nothing."""
    return TrainingArguments(str(folder), **{**QUIET, "report_to": "none", "save_strategy": "no", **options})
