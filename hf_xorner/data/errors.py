"""The one exception that faulty data raise."""


class DataError(ValueError):
    """Say in one sentence what is wrong with a corpus, where, and what to do about it."""
