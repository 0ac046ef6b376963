"""The one exception that faulty data raise."""


class DataError(ValueError):
    """Say in one sentence what is wrong with a corpus, where, and what to do about it."""


def first_line(error: BaseException) -> str:
    """Return the first line of what another library's error says, without its stop, or its type if it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
