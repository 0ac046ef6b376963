"""The exception for faulty data, and a helper for messages."""


class TrainingError(ValueError):
    """Say in one sentence why a run cannot begin or go on, and what to do about it."""


class DataError(ValueError):
    """Says in one sentence what is wrong with a corpus, a file or a saved model, where, and what to do about it."""


def first_line(error: BaseException) -> str:
    """Return the first line of another library's message without its full stop, or the error's type if it is empty."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
