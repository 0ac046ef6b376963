"""Build datasets from sentences with tags of any scheme; all splits share one numbering of the labels."""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, NamedSplit, Value
from numpy.typing import NDArray

from ..errors import DataError
from . import schemes
from .schemes import Pair, Scheme
from .source import AUTO, ReadingLog, Sentence

_log = logging.getLogger(__name__)

TRAIN = "train"
TOKENS, TAGS, POS_TAGS, DOC_ID = "tokens", "ner_tags", "pos_tags", "doc_id"
#: A column that is guessed to hold parts of speech must have 2 to this many distinct values.
MOST_POS = 128
#: Tags without ``O`` and prefixes must have at most this many distinct values.
MOST_PLAIN_TAGS = 100
# Maximum number of words that are checked for signs of a wrong column, the minimum for a decision, and a number
# of words from which on an only sentence seems to lack the empty lines between sentences.
_SAMPLE, _ENOUGH, _LONG = 20_000, 20, 200
_NUMBER = re.compile(r"[-+]?\d[\d.,:/-]*%?")
# The prefix for a language in WikiANN.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)*:(?=.)")


class Split(NamedTuple):
    """A split of a corpus before its tags are numbered.

    Attributes:
        sentences: The sentences.
        source: The source, for messages.
        guesses_pos: True if the column of the parts of speech is a guess, so that its values have to be checked.
        formats: The formats of its files, for the log.
    """

    sentences: list[Sentence]
    source: str
    guesses_pos: bool = False
    formats: str = ""


def assemble(splits: Mapping[str, Split], repairs: ReadingLog, source: str) -> DatasetDict:
    """Build the dataset of a corpus in memory, with plain or IOB2 labels, and log repairs.

    Args:
        splits: The splits by name.
        repairs: The options of reading, and the repairs of the readers; those of the tags are added.
        source: The name of the corpus, for messages.

    Returns:
        The splits in the given order, with ``tokens: List(string)`` and ``ner_tags: List(ClassLabel)``, and with
        ``pos_tags: List(string)`` and ``doc_id: string`` if the source has them.

    Raises:
        DataError: If a split has no sentence, words or tags seem to be from a wrong column, a tag does not belong to
            the scheme, or a repair is needed and ``reading.strict`` is set.
    """
    reading = repairs.reading
    corpus = {name: _read(split, repairs) for name, split in splits.items()}
    _use_usual_tags(corpus, repairs, source)
    # `_use_usual_tags` has turned types without prefixes into the I- tags of IOB1.
    named = "iob1" if reading.scheme == schemes.IO else reading.scheme
    pairs = set().union(*map(_pairs, corpus.values()))
    scheme = schemes.recognise(pairs) if named == AUTO else cast("Scheme", named)
    plain, tags = scheme == "plain", schemes.tags_of(pairs)
    if plain and reading.types:
        raise DataError(f"{source}: types={reading.types!r} renames types of entities, but here each word has a label.")
    for name, sentences in corpus.items():
        _check_columns(sentences, scheme, repairs, splits[name].source)
        if not plain:
            sentences = _without_strange_tags(sentences, scheme, repairs, splits[name].source)
        corpus[name] = _in_iob2(sentences, scheme, reading.new_types, repairs)
    if plain and reading.scheme == AUTO:
        _note_plain_tags(tags, repairs, source)
    if lacking := reading.new_types.keys() - set(map(schemes.entity_type, tags)):
        _log.info("%s: has no entities of %s, which types renames", source, ", ".join(sorted(lacking)))
    tags_in = {name: _tags_of(sentences) for name, sentences in corpus.items()}
    labels = schemes.label_names(set().union(*tags_in.values()), plain)
    train_labels = schemes.label_names(tags_in.get(TRAIN, set(labels)), plain)
    if labels == [schemes.OUTSIDE_TAG]:
        repairs.note("has no entities: all words are outside of them", source)
    for name, values in tags_in.items():
        if not plain and values == {schemes.UNLABELLED_TAG}:
            where = splits[name].source
            raise DataError(f"{where}: all words have the unknown tag ?; label some of them, or leave the split out.")
        if unknown := set(labels) & values - set(train_labels):
            examples = ", ".join(sorted(set(map(schemes.entity_type, unknown))))
            repairs.note(f"has no example of {examples} in its training split, only in {name}", source)
    repairs.report(source)
    for split in splits.values():
        if split.formats:
            _log.info("%s: read as %s", split.source, split.formats)
    with_pos = all(_have_pos(corpus[name], split.guesses_pos) for name, split in splits.items())
    with_documents = any(sentence.doc_id is not None for sentence in chain.from_iterable(corpus.values()))
    return DatasetDict(
        {name: _dataset(name, sentences, labels, with_pos, with_documents) for name, sentences in corpus.items()}
    )


def _read(split: Split, repairs: ReadingLog) -> list[Sentence]:
    """Return the sentences of a split; equal words and tags share their memory."""
    shared: dict[str, str] = {}
    sentences = []
    for sentence in split.sentences:
        size, tags, parts = len(sentence.tokens), len(sentence.tags), sentence.pos_tags
        if tags != size or (parts is not None and len(parts) != size):
            difference = f"{tags} tags" if tags != size else f"{len(parts or [])} parts of speech"
            repairs.leave_out(
                DataError(f"{sentence.location()}: {size} tokens but {difference}; give every token one.")
            )
            continue
        if repairs.reading.strip is not None:
            sentence = _stripped(sentence, repairs.reading.strip, repairs)
            if not sentence.tokens:
                continue
        words = [word.strip(" ") or word for word in sentence.tokens]
        if words != sentence.tokens:
            repairs.note("words with blanks around them were read without these", split.source)
        tokens, names = ([shared.setdefault(value, value) for value in values] for values in (words, sentence.tags))
        sentences.append(sentence._replace(tokens=tokens, tags=names))
    return _filled(sentences, repairs, split.source)


def _stripped(sentence: Sentence, pattern: str, repairs: ReadingLog) -> Sentence:
    """Remove the matches of a pattern from the words of a sentence."""
    tokens = [re.sub(pattern, "", token) for token in sentence.tokens]
    faults = {
        index: f"nothing is left of the word {sentence.tokens[index]!r} without {pattern!r}; give another pattern"
        for index, token in enumerate(tokens)
        if not token
    }
    return _without(sentence._replace(tokens=tokens), faults, repairs)


def _filled(sentences: list[Sentence], repairs: ReadingLog, source: str) -> list[Sentence]:
    if not sentences:
        repairs.report(source)
        raise DataError(f"{source}: the split holds no sentence; fill it, or leave it out.")
    return sentences


def _without(sentence: Sentence, faults: Mapping[int, str], repairs: ReadingLog) -> Sentence:
    """Remove the words with faults from a sentence, or raise DataError for the first unless bad lines are skipped."""
    if not faults:
        return sentence
    for index, fault in faults.items():
        repairs.leave_out(
            DataError(f"{sentence.location(index)}: {fault}."), sentence.tags[index] not in schemes.NO_CHUNK
        )
    remaining = [index for index in range(len(sentence.tokens)) if index not in faults]
    return sentence._replace(
        tokens=[sentence.tokens[index] for index in remaining],
        tags=[sentence.tags[index] for index in remaining],
        pos_tags=sentence.pos_tags and [sentence.pos_tags[index] for index in remaining],
        lines=sentence.lines and [sentence.lines[index] for index in remaining],
    )


def _pairs(sentences: Iterable[Sentence]) -> set[Pair]:
    """Return the distinct pairs of neighbouring tags, including the edges of sentences."""
    return set().union(*(pairwise([schemes.EDGE, *sentence.tags, schemes.EDGE]) for sentence in sentences))


def _tags_of(sentences: Iterable[Sentence]) -> set[str]:
    return set().union(*(sentence.tags for sentence in sentences))


def _use_usual_tags(corpus: dict[str, list[Sentence]], repairs: ReadingLog, source: str) -> None:
    """Replace tags that are spelt in another way than a scheme has them."""
    counts = Counter(chain.from_iterable(sentence.tags for sentences in corpus.values() for sentence in sentences))
    form, notes = schemes.usual_tags(counts, repairs.reading.scheme)
    if all(tag == new for tag, new in form.items()):
        return
    if empty := {tag for tag, new in form.items() if not new}:
        sentence = next(sentence for sentence in chain.from_iterable(corpus.values()) if empty & {*sentence.tags})
        index, tag = next((index, tag) for index, tag in enumerate(sentence.tags) if tag in empty)
        raise DataError(f"{sentence.location(index)}: the tag {tag!r} is only blanks; give every word a tag.")
    for note in notes:
        repairs.note(note, source)
    for name, sentences in corpus.items():
        corpus[name] = [sentence._replace(tags=[form[tag] for tag in sentence.tags]) for sentence in sentences]


# --- Signs of a wrong column -----------------------------------------------------------------------------------------


def _check_columns(sentences: list[Sentence], scheme: Scheme, repairs: ReadingLog, source: str) -> None:
    """Raise DataError if words or tags seem to be from a wrong column; note prefixes or digits that all words share."""
    reading = repairs.reading
    words: list[str] = []
    for sentence in sentences:
        words += sentence.tokens
        if len(words) >= _SAMPLE:
            break
    if len(words) < _ENOUGH:
        return
    numbers = sum(_NUMBER.fullmatch(word) is not None for word in words)
    if reading.token_column is None and numbers > len(words) / 2:
        raise DataError(
            f"{source}: {numbers / len(words):.0%} of the words are numbers, such as {_examples(words)}; name the "
            "column of the words as token_column, even if it is this one."
        )
    if len(sentences) == 1 and len(words) >= _LONG:
        repairs.note(f"is one sentence of {len(words):,} words; an empty line should end each sentence", source)
    if reading.tag_column is None and reading.scheme == AUTO:
        _check_tags(_tags_of(sentences), scheme, words, source)
    language = _LANGUAGE.match(words[0])
    if language and all(word.startswith(language[0]) for word in words):
        repairs.note(f"every word begins with {language[0]!r}; pass strip='^{language[0]}' to remove it", source)
    elif not numbers and all(len(word) > 1 and word[-1] in "0123456789" for word in words):
        repairs.note(f"every word ends in a digit ({_examples(words)}); pass strip='[0-9]$' to remove it", source)


def _check_tags(tags: set[str], scheme: Scheme, words: list[str], source: str) -> None:
    strange = tags if scheme == "plain" else {tag for tag in tags if not schemes.is_of(scheme, tag)}
    distinct = len(set(words))
    if scheme == "plain" and len(tags) == 1:
        fault = "all words have the same tag"
    elif len(strange) > MOST_PLAIN_TAGS and schemes.OUTSIDE_TAG not in strange:
        fault = f"{len(strange):,} different tags that are neither O nor begin with B- or I-"
    elif len(strange) > max(_ENOUGH, distinct / 2):
        fault = f"{len(strange):,} different tags for {distinct:,} different words"
    else:
        return
    raise DataError(
        f"{source}: {fault}, such as {_examples(sorted(strange))}; name the column of the tags as tag_column, or pass "
        f"scheme=plain if these are labels of words such as {_examples(words)}."
    )


def _note_plain_tags(tags: set[str], repairs: ReadingLog, source: str) -> None:
    kind = "the tags" if schemes.OUTSIDE_TAG in tags else "parts of speech or the like"
    examples = _examples(sorted(tags - {schemes.OUTSIDE_TAG}))
    which = f"{kind} ({len(tags)} different ones, such as {examples})"
    repairs.note(f"{which} have no prefixes such as B- and I-, so each word has a separate label", source)


def _examples(values: list[str]) -> str:
    return ", ".join(repr(value[:40]) for value in values[:3])


def _have_pos(sentences: list[Sentence], guessed: bool) -> bool:
    """Return True if all sentences have parts of speech, with plausible values if their column is a guess."""
    if any(sentence.pos_tags is None for sentence in sentences):
        return False
    values = set(chain.from_iterable(sentence.pos_tags or () for sentence in sentences))
    return not guessed or 1 < len(values) <= MOST_POS


# --- Labels ----------------------------------------------------------------------------------------------------------


def _without_strange_tags(
    sentences: list[Sentence], scheme: Scheme, repairs: ReadingLog, source: str
) -> list[Sentence]:
    """Remove the words whose tags do not belong to the scheme, or raise DataError unless bad lines are skipped."""
    strange = {tag for tag in _tags_of(sentences) if not schemes.is_of(scheme, tag)}
    if not strange:
        return sentences
    remedy = f"expected O, or a type after {schemes.prefixes_of(scheme)} ({scheme.upper()}); correct it"
    remaining = []
    for sentence in sentences:
        faults = {at: f"unknown tag {tag!r}; {remedy}" for at, tag in enumerate(sentence.tags) if tag in strange}
        sentence = _without(sentence, faults, repairs)
        if sentence.tokens or not faults:
            remaining.append(sentence)
    return _filled(remaining, repairs, source)


def _in_iob2(
    sentences: list[Sentence], scheme: Scheme, new_types: Mapping[str, str], repairs: ReadingLog
) -> list[Sentence]:
    """Convert the tags of sentences to labels: IOB2 with the new types, or plain tags.

    Types are renamed after the conversion, since in IOB1 the tags of two neighbouring entities depend on the old ones.
    """
    pairs = _pairs(sentences)
    label_of = {
        pair: schemes.with_new_type(schemes.iob2_of(pair, scheme), new_types)
        for pair in pairs
        if pair[1] != schemes.EDGE
    }
    faults = {pair: kinds for pair in pairs if (kinds := schemes.repairs_of(pair, scheme))}
    converted = []
    for sentence in sentences:
        for index, pair in enumerate(pairwise([schemes.EDGE, *sentence.tags, schemes.EDGE]) if faults else ()):
            for kind in faults.get(pair, ()):
                repairs.add(kind, sentence.location(min(index, len(sentence.tags) - 1)))
        converted.append(sentence._replace(tags=[label_of[pair] for pair in pairwise([schemes.EDGE, *sentence.tags])]))
    return converted


def _dataset(name: str, sentences: list[Sentence], labels: list[str], with_pos: bool, with_documents: bool) -> Dataset:
    # A plain tag "?" is a label, and overrides -1.
    number = {schemes.UNLABELLED_TAG: -1, **{label: index for index, label in enumerate(labels)}}
    features: dict[str, Any] = {TOKENS: List(Value("string")), TAGS: List(ClassLabel(names=labels))}
    columns: dict[str, list[Any]] = {
        TOKENS: [sentence.tokens for sentence in sentences],
        TAGS: [[number[tag] for tag in sentence.tags] for sentence in sentences],
    }
    if with_pos:
        features[POS_TAGS], columns[POS_TAGS] = List(Value("string")), [sentence.pos_tags for sentence in sentences]
    if with_documents:
        features[DOC_ID], columns[DOC_ID] = Value("string"), [sentence.doc_id for sentence in sentences]
    return Dataset.from_dict(columns, features=Features(features), split=NamedSplit(name))


# --- Reading datasets ------------------------------------------------------------------------------------------------


def label_names_of(dataset: Dataset, split: str) -> list[str]:
    """Return the names of a split's labels.

    Raises:
        DataError: If the split has not the form that `hf_xorner.corpora.load_corpus` returns.
    """
    feature = getattr(dataset.features.get(TAGS), "feature", None)
    if TOKENS not in dataset.features or not isinstance(feature, ClassLabel):
        raise DataError(
            f"{split}: expected the columns {TOKENS}: List(string) and {TAGS}: List(ClassLabel), "
            f"found {', '.join(dataset.column_names)}; load the corpus with load_corpus."
        )
    return list(feature.names)


def words_and_tags(split: Dataset) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of each sentence, and the names of their labels, ``?`` for a word without a label."""
    names = [*split.features[TAGS].feature.names, schemes.UNLABELLED_TAG]  # the last has the number -1
    return list(split[TOKENS]), [[names[tag] for tag in row] for row in split[TAGS]]


def flat_labels(split: Dataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of all labels, sentence after sentence, and the number of words of each sentence."""
    rows = list(split[TAGS])
    return np.array(list(chain.from_iterable(rows)), dtype=np.int64), np.array(list(map(len, rows)), dtype=np.int64)


def corpus_fingerprint(corpus: DatasetDict) -> str:
    """Return the SHA-256 of a corpus: its splits, labels, sentences, words and tags.

    It does not depend on paths, formats, or other columns.

    Args:
        corpus: The splits in the form that `hf_xorner.corpora.load_corpus` returns.
    """
    rows = [[name, split_fingerprint(corpus[name], name)] for name in sorted(corpus)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def split_fingerprint(split: Dataset, name: str) -> str:
    """Return the SHA-256 of a split: its labels, sentences, words and tags.

    Args:
        split: The split.
        name: Its name, for messages.
    """
    names = label_names_of(split, name)
    labels, lengths = flat_labels(split)
    words = "".join(f"{len(word)}:{word}" for word in chain.from_iterable(split[TOKENS]))
    parts = (words.encode(), lengths.astype("<i8").tobytes(), labels.astype("<i8").tobytes())
    digests = [hashlib.sha256(part).hexdigest() for part in parts]
    return hashlib.sha256(json.dumps([names, *digests]).encode()).hexdigest()
