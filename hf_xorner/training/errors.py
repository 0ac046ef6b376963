"""What stops a training run, and leaves what was saved as it was."""


class TrainingError(ValueError):
    """Say in one sentence why a run cannot begin or go on, and what to do about it."""
