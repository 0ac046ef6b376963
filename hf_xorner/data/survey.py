"""What has to be known of a whole split before its first sentence can be written."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..errors import DataError
from .repairs import Repairs
from .schemes import EDGE, Pair, tags_of
from .sentence import Sentence

#: More distinct tags than this are words or numbers, read from a wrong column.
MOST_TAGS = 10_000
#: A second column with more values than this, or with one only, holds no parts of speech.
MOST_POS = 128


class Split(NamedTuple):
    """A split that can be read again and again, sentence by sentence.

    Attributes:
        read: Begins to read; what the reader repairs is counted there.
        identity: Text that changes whenever what is read may have changed.
        source: What is read, for messages.
        guesses_pos: Whether nobody said that what is read as parts of speech is that, so that it must look like it.
    """

    read: Callable[[Repairs], Iterator[Sentence]]
    identity: str
    source: str
    guesses_pos: bool = False


class Survey(NamedTuple):
    """The outcome of reading a split once.

    Attributes:
        pairs: How often each pair of neighbouring tags occurs, edges of sentences included.
        has_pos: Whether every sentence has parts of speech, and they look like some.
        has_documents: Whether any sentence belongs to a document.
    """

    pairs: Counter[Pair]
    has_pos: bool
    has_documents: bool

    @property
    def tags(self) -> set[str]:
        """The distinct tags."""
        return tags_of(self.pairs)


def survey(split: Split, repairs: Repairs) -> Survey:
    """Read a split once.

    Args:
        split: What to read.
        repairs: Where repairs of the reader are counted.

    Raises:
        DataError: For whatever the reader refuses, and for more distinct tags than any scheme has.
    """
    pairs: Counter[Pair] = Counter()
    has_pos, has_documents = True, False
    seen_pos: set[str] = set()
    # A tag takes part in at least one pair, so pairs are a cheap bound on tags.
    bound = MOST_TAGS
    for sentence in split.read(repairs):
        pairs.update(zip([EDGE, *sentence.tags], [*sentence.tags, EDGE], strict=True))
        has_pos = has_pos and sentence.pos_tags is not None
        if split.guesses_pos and has_pos and len(seen_pos) <= MOST_POS:
            seen_pos.update(sentence.pos_tags or ())
        has_documents = has_documents or sentence.doc_id is not None
        if len(pairs) > bound:
            if len(tags_of(pairs)) > MOST_TAGS:
                raise DataError(
                    f"{sentence.place()}: more than {MOST_TAGS:,} different tags by now; "
                    "name the column that holds the tags as tag_column."
                )
            bound = 2 * len(pairs)
    has_pos = has_pos and (1 < len(seen_pos) <= MOST_POS or not split.guesses_pos)
    return Survey(pairs, has_pos, has_documents)


def find(split: Split, wanted: Callable[[Pair], bool]) -> tuple[str, str]:
    """Find the first pair of a kind: the place of its second tag, or of the sentence's last one, and that tag.

    Reading again costs time, but only where there is something to complain about.
    """
    for sentence in split.read(Repairs()):
        tags = sentence.tags
        for index, pair in enumerate(zip([EDGE, *tags], [*tags, EDGE], strict=True)):
            if wanted(pair):
                return sentence.place(min(index, len(tags) - 1)), pair[1]
    raise DataError(f"{split.source}: changed while it was read; load it again.")
