"""Exceptions for invalid input, and helpers for messages."""

# Number of characters of a message, as quoted values may be long.
_LONGEST = 500


class TrainingError(ValueError):
    """A run cannot start or continue; the message is one sentence with the reason and the remedy."""


class DataError(ValueError):
    """A corpus, a file or a saved model is invalid; the message is one sentence with place, fault and remedy."""

    def __init__(self, message: str) -> None:
        """Set the message; the middle of a long one is left out."""
        super().__init__(message if len(message) <= _LONGEST else f"{message[: _LONGEST - 200]} … {message[-190:]}")


class UsageError(ValueError):
    """A command line cannot be read; the command exits with code 2."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message without its full stop, or the error's type if it is empty."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")


def why_not_loaded(error: BaseException) -> str:
    """Return the reason why a path or a name on the Hub cannot be loaded, with a remedy if one is known."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ConnectionError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        return f"{first_line(cause)}; check the connection, or name a local path"
    reason = first_line(error)
    return f"{reason}; save_pretrained of its model writes it" if "model.safetensors" in reason else reason
