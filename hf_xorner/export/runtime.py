"""Tag texts with an exported model, by ONNX Runtime, tokenizers and NumPy alone.

    from onnx_tagger import OnnxTagger

    tagger = OnnxTagger.from_pretrained("folder")
    for entity in tagger("Ann Smith met Zeus in New York."):
        print(entity.label, entity.text, entity.start, entity.end, entity.score)

An export writes this module and the modules of the package that it imports to one file, `onnx_tagger.py`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Encoding, Tokenizer

from ..entities import WORDS_PER_SENTENCE, BaseTagger, NumberByLabel

#: The files that an export adds to those of a saved model: the graph, and the code that runs it.
GRAPH_FILE, RUNTIME_FILE = "model.onnx", "onnx_tagger.py"

# --- Words -----------------------------------------------------------------------------------------------------------

_PAD, _UNKNOWN = "[PAD]", "[UNK]"
_UNKNOWN_ID = 1

#: Ids of unknown characters by their Unicode category, or its first letter; of all others: 1. Those up to 5 are taken.
_ID_BY_CATEGORY = {"Lu": 2, "Lt": 2, "Ll": 3, "Nd": 4, "P": 5, "S": 5}
_FIRST_CHARACTER_ID = 6
_DIGIT_CATEGORY = "Nd"
#: Characters from here on have no type.
_TYPED_CODE_POINTS = 0x20000
_CODE_POINTS = 0x110000

#: Casing and digits of the further forms under which a word is looked up.
_FALLBACKS = {"lower": ("lower", "keep"), "zero": ("keep", "zero"), "lower_zero": ("lower", "zero")}


class _Words(NamedTuple):
    """The N words of a batch of sentences, one after the other; D of them are distinct."""

    counts: np.ndarray  # (sentences,) words of each
    offsets: np.ndarray  # (N, 2) from the start of the text, or of the given word
    place: np.ndarray  # (N,) index of each word among the distinct ones
    input_ids: np.ndarray  # (D,)
    char_ids: np.ndarray  # (D, W): W is max_word_chars, or less if no word is longer
    piece_ids: np.ndarray | None  # (D, max_word_pieces), where the tokenizer cuts words into pieces


class OnnxTokenizer:
    """The words of texts, their ids and the ids of their characters, as the model's `WordCharTokenizer` gives them.

    Args:
        tokenizer: The words and the rule that finds them.
        policies: The content of tokenizer_config.json.
        pieces: Cuts words into pieces, where the model reads them; see `_WordPieces`.
    """

    def __init__(self, tokenizer: Tokenizer, policies: dict[str, Any], pieces: _WordPieces | None = None) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # The text "[PAD]" is a text.
        self._tokenizer = tokenizer
        self._pieces = pieces
        self.max_word_chars: int = policies["max_word_chars"]
        self.max_word_pieces: int = policies.get("max_word_pieces", 0)
        self._fold = (policies["casing"], policies["digits"])
        self._fallback = [_FALLBACKS[step] for step in policies["fallback"]]
        self._characters = {one: index for index, one in enumerate(policies["characters"], _FIRST_CHARACTER_ID)}
        self._digit_id = self._characters.get("0") if policies["digits"] == "zero" else None
        # The id of every code point; 0 until it is first needed.
        self._character_table = np.zeros(_CODE_POINTS, dtype=np.int64)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> OnnxTokenizer:
        """Load tokenizer.json and tokenizer_config.json, and piece_tokenizer.json if the model reads pieces.

        Raises:
            ValueError: If a file is missing or broken.
        """
        folder = Path(folder)
        policies = _read_json(folder / "tokenizer_config.json")
        needed = {"characters": str, "casing": str, "digits": str, "fallback": list, "max_word_chars": int}
        for name, kind in needed.items():
            if not isinstance(policies.get(name), kind):
                raise ValueError(f"{folder}: tokenizer_config.json lacks {name!r}; copy it again.")
        for name, known in (("casing", ("keep", "lower")), ("digits", ("keep", "zero")), ("fallback", _FALLBACKS)):
            values = policies[name] if name == "fallback" else [policies[name]]
            if unknown := [value for value in values if value not in known]:
                raise ValueError(f"{folder}: {name} {unknown[0]!r} is unknown; export the model again.")
        tokenizer = _tokenizer_of(_read(folder / "tokenizer.json"), folder / "tokenizer.json")
        if (tokenizer.token_to_id(_PAD), tokenizer.token_to_id(_UNKNOWN)) != (0, _UNKNOWN_ID):
            raise ValueError(f"{folder}: tokenizer.json must number {_PAD} and {_UNKNOWN} first; copy it again.")
        pieces = None
        if policies.get("max_word_pieces", 0):
            pieces = _WordPieces(folder / "piece_tokenizer.json", policies["max_word_pieces"])
        return cls(tokenizer, policies, pieces)

    def words_of(self, items: Sequence[Any], given_words: bool) -> _Words:
        """Return the words of texts, or of lists of words, as arrays over all items."""
        if given_words:
            given = list(chain.from_iterable(items))
            counts = np.fromiter(map(len, items), np.int64, len(items))
            lengths = np.fromiter(map(len, given), np.int64, len(given))
            offsets = np.stack([np.zeros_like(lengths), lengths], 1)
        else:
            encodings: list[Encoding] = self._tokenizer.encode_batch(items, add_special_tokens=False)
            pairs = [encoding.offsets for encoding in encodings]
            counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
            given = [text[start:end] for text, places in zip(items, pairs, strict=True) for start, end in places]
            flat = chain.from_iterable(chain.from_iterable(pairs))
            offsets = np.fromiter(flat, np.int64, 2 * len(given)).reshape(-1, 2)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(given))}
        place = np.fromiter(map(numbers.__getitem__, given), np.int64, len(given))
        distinct = list(numbers)
        ids = np.fromiter(map(self._word_id, distinct), np.int64, len(distinct))
        piece_ids = self._pieces.of(distinct) if self._pieces is not None else None
        return _Words(counts, offsets, place, ids, self._character_ids(distinct), piece_ids)

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text, verbatim."""
        return [text[start:end] for start, end in self.words_of([text], False).offsets.tolist()]

    def _word_id(self, word: str) -> int:
        """The id of a word as it stands, or else of the first of its other forms that is known."""
        look_up = self._tokenizer.token_to_id
        index = look_up(word)
        if index is None:
            folded = _fold(word, *self._fold)
            forms = [folded, *(_fold(folded, *step) for step in self._fallback)]
            index = next((found for form in forms if (found := look_up(form)) is not None), None)
        return index or _UNKNOWN_ID  # A given word "[PAD]" pads nothing.

    def _character_ids(self, words: list[str]) -> np.ndarray:
        """Character ids (D, W) of words; see `_Words`."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        width = min(self.max_word_chars, int(lengths.max(initial=1)))
        points = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
        ids = self._character_table[points]
        if not ids.all():
            for point in set(points[ids == 0].tolist()):
                self._character_table[point] = self._character_id(chr(point))
            ids = self._character_table[points]
        columns = np.arange(width)
        mask = columns < lengths[:, None]
        rows = np.zeros((len(words), width), dtype=np.int64)
        rows[mask] = ids[((lengths.cumsum() - lengths)[:, None] + columns)[mask]]
        return rows

    def _character_id(self, character: str) -> int:
        """The id of a known character, or that of its type."""
        category = unicodedata.category(character) if ord(character) < _TYPED_CODE_POINTS else "Cn"
        if category == _DIGIT_CATEGORY and self._digit_id is not None:
            return self._digit_id
        by_type = _ID_BY_CATEGORY.get(category) or _ID_BY_CATEGORY.get(category[0], _UNKNOWN_ID)
        return self._characters.get(character, by_type)


class _WordPieces:
    """The tokenizer of an encoder, applied to one word at a time."""

    def __init__(self, path: Path, width: int) -> None:
        self.width = width
        content = _read(path)
        # Byte-level BPE distinguishes words after a blank. The blank is added here, since `add_prefix_space` would also
        # add it inside words that another rule has split before. Only where that may be so, the JSON is parsed.
        self.blank = ""
        if '"ByteLevel"' in content:
            parts = _read_json(path)
            if _disable_prefix_space(parts.get("pre_tokenizer")):
                self.blank, content = " ", json.dumps(parts)
        self._tokenizer = _tokenizer_of(content, path)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def of(self, words: list[str]) -> np.ndarray:
        """The ids + 1 of the first pieces of distinct words, (D, width), padded with 0."""
        texts = [self.blank + word if word else word for word in words] if self.blank else words
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [encoding.ids[: self.width] for encoding in encodings]
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        rows = np.zeros((len(ids), self.width), dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(ids), np.int64, counts.sum())
        rows[np.arange(self.width) < counts[:, None]] = flat + 1
        return rows


def _disable_prefix_space(pre_tokenizer: Any) -> bool:
    """Set `add_prefix_space` to false in every byte-level part; return whether there is one."""
    if not isinstance(pre_tokenizer, dict):
        return False
    inner = [_disable_prefix_space(part) for part in pre_tokenizer.get("pretokenizers", ())]
    byte_level = pre_tokenizer.get("type") == "ByteLevel"
    if byte_level:
        pre_tokenizer["add_prefix_space"] = False
    return byte_level or any(inner)


def _fold(word: str, casing: str, digits: str) -> str:
    """The form under which a word is looked up, as long as its surface form."""
    if digits == "zero":
        word = re.sub(r"\d", "0", word)
    # U+0130, I with a dot above, is the only character whose lower case is longer.
    return word.replace("\u0130", "i").lower() if casing == "lower" else word


# --- Files -----------------------------------------------------------------------------------------------------------


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise ValueError(f"{path.name} is missing in {path.parent}; copy the whole folder of the export.") from None
    except UnicodeError:
        raise ValueError(f"{path} is not a text in UTF-8; copy it again.") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error}); copy it again.") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object; copy it again.")
    return content


def _tokenizer_of(content: str, path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_str(content)
    # What the tokenizers library raises has no type of its own.
    except Exception as error:
        raise ValueError(f"{path} is not a tokenizer ({error}); copy it again.") from None


# --- The graph -------------------------------------------------------------------------------------------------------


class OnnxTagger(BaseTagger):
    """A model in ONNX with its tokenizer, to tag many texts at once.

    Args:
        session: ONNX Runtime's session of the model.
        tokenizer: Its tokenizer.
        labels: Its labels in the order of their ids.
        threads: Batches that are computed at a time.
        min_score: Entities with a lower score are left out; one number, or numbers by label.
        default: What `min_score` is by default.
    """

    def __init__(
        self,
        session: Any,
        tokenizer: OnnxTokenizer,
        labels: Sequence[str],
        threads: int = 1,
        min_score: NumberByLabel | None = None,
        default: NumberByLabel | None = None,
    ) -> None:
        super().__init__(labels, tokenizer, min_score, default)
        self.session = session
        self.threads = threads
        self._shapes = _checked_shapes(session, tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        file: str = GRAPH_FILE,
        threads: int | None = None,
        providers: Sequence[Any] = ("CPUExecutionProvider",),
        min_score: NumberByLabel | None = None,
    ) -> OnnxTagger:
        """Load an exported folder.

        Args:
            folder: The folder.
            file: The model in it.
            threads: Batches that are computed at a time; by default one for each processor.
            providers: Those of ONNX Runtime, such as "CUDAExecutionProvider".
            min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label. By default
                `min_score` of config.json, if it is there, or else 0.

        Raises:
            ValueError: If a file is missing or broken, or one does not belong to the others.
        """
        folder = Path(folder)
        config = _read_json(folder / "config.json")
        labels = config.get("id2label")
        if not isinstance(labels, dict) or not all(
            isinstance(labels.get(str(index)), str) for index in range(len(labels))
        ):
            raise ValueError(f"{folder}: the id2label of config.json does not number labels from 0; copy it again.")
        tokenizer = OnnxTokenizer.from_pretrained(folder)
        threads = threads or _processors()
        session = _session(folder / file, providers)
        names = [labels[str(index)] for index in range(len(labels))]
        return cls(session, tokenizer, names, threads, min_score, config.get("min_score"))

    def __repr__(self) -> str:
        return f"OnnxTagger({', '.join(self.session.get_providers())}, types: {', '.join(self.entity_labels)})"

    def score(self, inputs: dict[str, np.ndarray], of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels (B, T) of a batch, and their probabilities (B, T) or `path_log_probs` (B, T, 2)."""
        outputs = ["labels", "path_log_probs" if of_spans else "probabilities"]
        labels, probabilities = self.session.run(outputs, inputs)
        return labels, probabilities

    def label_words(self, words: _Words, batch_size: int, of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length; see `BaseTagger.label_words`."""
        labels = np.zeros(len(words.place), dtype=np.int64)
        probabilities = np.zeros((len(words.place), 2) if of_spans else len(words.place), dtype=np.float32)
        begins = words.counts.cumsum() - words.counts

        def label(batch: np.ndarray) -> None:
            counts = words.counts[batch, None]
            mask = np.arange(counts[0, 0]) < counts  # (B, T)
            place = (begins[batch, None] + np.arange(counts[0, 0]))[mask]
            found = self.score(self._inputs(words, words.place[place], mask), of_spans)
            labels[place], probabilities[place] = (values[mask] for values in found)

        batches = _batches(words.counts, batch_size)
        if self.threads == 1 or len(batches) < 2:
            for batch in batches:
                label(batch)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(label, batches))
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.labels):
            raise ValueError("The model gives labels that its config.json does not number; export it again.")
        if np.isnan(probabilities).any():
            raise ValueError("The model gives probabilities that are not numbers; export it again.")
        return labels, probabilities

    def _inputs(self, words: _Words, rows: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
        """The inputs of a batch: `rows` are the distinct words at the places of its mask (B, T)."""
        rows, index = np.unique(rows, return_inverse=True)
        inputs = {"word_index": _padded(index, mask), "attention_mask": mask.astype(np.int64)}
        for name, values in words._asdict().items():
            if name in self._shapes and values is not None:
                found = values[rows]
                inputs[name] = found if found.ndim == 1 else _fitted(found, self._shapes[name][-1])
        return inputs


def _session(path: Path, providers: Sequence[Any]) -> Any:
    if not path.is_file():
        raise ValueError(f"{path.name} is missing in {path.parent}; name the folder that the export has written.")
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("ONNX Runtime is missing: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # Threads compute batches of their own.
    options.enable_mem_pattern = False  # Batches have many shapes.
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=list(providers))
    # The errors of ONNX Runtime share no type but this.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"ONNX Runtime cannot load {path} ({reason}); export the model again.") from None


def _checked_shapes(session: Any, tokenizer: OnnxTokenizer) -> dict[str, list[Any]]:
    """The shapes of the inputs of a session, which must be those that the tokenizer fills.

    A graph computes each distinct word of a batch once: it reads their ids, and the index among them of every word.
    """
    shapes = {one.name: list(one.shape) for one in session.get_inputs()}
    batch, rows = ["batch", "words"], ["distinct"]
    expected: dict[str, list[Any]] = {"input_ids": rows, "char_ids": [*rows, tokenizer.max_word_chars]}
    # A model need not read the pieces that its tokenizer gives.
    if tokenizer.max_word_pieces and "piece_ids" in shapes:
        expected["piece_ids"] = [*rows, tokenizer.max_word_pieces]
    expected |= {"word_index": batch, "attention_mask": batch}
    if shapes.keys() != expected.keys():
        raise ValueError(
            f"The model reads {', '.join(sorted(shapes))} and its tokenizer gives {', '.join(sorted(expected))}; "
            "export the model again."
        )
    for name, shape in shapes.items():
        # Of what the tokenizer gives, only the widths of characters and pieces are numbers.
        fits = len(shape) == len(expected[name]) and all(
            given == size for given, size in zip(expected[name], shape, strict=True) if isinstance(size, int)
        )
        if not fits:
            raise ValueError(
                f"The model reads {name} of shape {_written(shape)} and its tokenizer gives "
                f"{_written(expected[name])}; export the model again."
            )
    missing = {"labels", "probabilities", "path_log_probs"} - {one.name for one in session.get_outputs()}
    if missing:
        raise ValueError(f"The model gives no {sorted(missing)[0]}; export it with hf-xorner.")
    return shapes


def _written(shape: list[Any]) -> str:
    return f"({', '.join(map(str, shape))})"


def _batches(counts: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """The numbers of sentences of similar length, in batches, the longest first; sentences without words are left."""
    by_length = np.argsort(-counts, kind="stable")
    by_length = by_length[counts[by_length] > 0]
    batches, begin = [], 0
    while begin < len(by_length):
        size = min(batch_size, max(1, batch_size * WORDS_PER_SENTENCE // int(counts[by_length[begin]])))
        batches.append(by_length[begin : begin + size])
        begin += size
    return batches


def _padded(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Pad the values (n, …) of the words of a batch: (B, T, …) with mask (B, T)."""
    padded = np.zeros((*mask.shape, *values.shape[1:]), dtype=np.int64)
    padded[mask] = values
    return padded


def _fitted(values: np.ndarray, width: Any) -> np.ndarray:
    """Cut the columns in which all values are 0, or pad to a width that a graph has fixed."""
    if isinstance(width, int):
        return np.pad(values, ((0, 0), (0, width - values.shape[1])))
    used = np.flatnonzero(values.any(0))
    return values[:, : used[-1] + 1 if len(used) else 1]


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
