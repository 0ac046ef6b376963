"""How far a run has come, shown where somebody looks."""

import time

from tqdm import tqdm


class Progress:
    """A bar on standard error: of the bytes of the input where their number is known, else of the texts."""

    def __init__(self, size: int | None, disable: bool) -> None:
        """Begin to show.

        Args:
            size: Bytes of the input.
            disable: Show nothing; nothing is shown either where standard error is no terminal.
        """
        self.bytes = size is not None
        self.bar = tqdm(
            total=size,
            unit="B" if self.bytes else " texts",
            unit_scale=True,
            disable=True if disable else None,
            mininterval=0.5,
        )
        self.start = time.monotonic()
        self.texts = self.words = self.place = 0

    def add(self, texts: int, words: int, position: int, fresh: bool = True) -> None:
        """Show more.

        Args:
            texts: Texts that were tagged.
            words: Their words.
            position: Bytes of the input up to the end of them.
            fresh: Whether it was this run that tagged them.
        """
        self.texts += texts
        self.words += words if fresh else 0
        if not self.bar.disable:
            rate = self.words / max(time.monotonic() - self.start, 1e-3)
            self.bar.set_postfix_str(f"{self.texts:,} texts, {rate:,.0f} words/s", refresh=False)
        self.bar.update(position - self.place if self.bytes else texts)
        self.place = position

    def close(self) -> None:
        """Show no more."""
        self.bar.close()
