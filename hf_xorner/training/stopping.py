"""Signals that ask a run to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A signal asked to stop. No `except Exception` on the way holds this up.

    Args:
        number: The signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` where SIGINT or SIGTERM arrives, so that what is half written is cleared away.

    Only the main thread of a process may call this.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
