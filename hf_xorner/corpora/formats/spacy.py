"""Read spaCy's files of documents (DocBin) with spaCy."""

from collections.abc import Iterator
from itertools import pairwise

from ...errors import DataError, first_line
from ..source import NONE, Input, Sentence
from .spans import sentences_between


def read_spacy(source: Input) -> Iterator[Sentence]:
    """Yield the sentences of a DocBin file.

    Documents are numbered from 0; if each document is one sentence, they have no numbers. Words are spaCy's tokens,
    parts of speech its ``TAG``. A sentence does not end within an entity. Groups of spans (``doc.spans``) are not read.

    Raises:
        DataError: If spaCy is not installed, the file is damaged or of another kind, or it has no annotated entities.
    """
    path = source.path
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise DataError(f'{path}: reading .spacy needs spaCy; pip install "hf_xorner[spacy]".') from None
    try:
        docs = list(DocBin().from_disk(path).get_docs(Vocab()))
    # spaCy's errors for a damaged file have no common type.
    except Exception as error:
        raise DataError(
            f"{path}: not a valid DocBin file of spaCy ({first_line(error)}); save or download it again."
        ) from error
    if source.labelled and not any(doc.has_annotation("ENT_IOB") for doc in docs):
        raise DataError(f"{path}: no document has annotated entities; set doc.ents before saving.")
    several = any(token.is_sent_start for doc in docs for token in doc[1:])
    for number, doc in enumerate(docs):
        # In spaCy, an entity without a type marks words that are not an entity.
        tokens = [token for token in doc if not token.text.isspace()]  # as in the component for spaCy
        tags = [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in tokens]
        parts = [token.tag_ for token in tokens]
        words = [token.text for token in tokens]
        ends = [0, *(token.i + 1 for token in tokens)]
        starts = [any(token.is_sent_start for token in doc[start:end]) for start, end in pairwise(ends)]
        for start, end in sentences_between(starts, tags):
            pos_tags = parts[start:end] if all(parts) and source.reading.pos_column != NONE else None
            document = str(number) if several else None
            yield Sentence(words[start:end], tags[start:end], f"{path}, document ", number, pos_tags, document)
