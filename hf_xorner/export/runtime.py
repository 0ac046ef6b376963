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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ..entities import WORDS_PER_SENTENCE, BaseTagger, NumberByLabel
from ..models.word_ids import FALLBACKS, PAD, UNKNOWN, UNKNOWN_ID, WordLookup, WordPieces, Words

#: The files that an export adds to those of a saved model: the graph, and the code that runs it.
GRAPH_FILE, RUNTIME_FILE = "model.onnx", "onnx_tagger.py"

# --- Files -----------------------------------------------------------------------------------------------------------

#: The entries of tokenizer_config.json that are needed, with their types and the known values of some.
_POLICIES = {"characters": str, "casing": str, "digits": str, "fallback": list, "max_word_chars": int}
_POLICIES |= {"max_word_pieces": int}
_KNOWN = {"casing": ("keep", "lower"), "digits": ("keep", "zero"), "fallback": FALLBACKS}


def read_lookup(folder: Path) -> WordLookup:
    """Load tokenizer.json and tokenizer_config.json, and piece_tokenizer.json if the tokenizer cuts words into pieces.

    Raises:
        ValueError: If a file is missing or broken.
    """
    policies = _read_json(folder / "tokenizer_config.json")
    for name, kind in _POLICIES.items():
        if not isinstance(policies.get(name), kind):
            raise ValueError(f"{folder}: tokenizer_config.json lacks {name!r}; copy it again.")
    for name, known in _KNOWN.items():
        values = policies[name] if name == "fallback" else [policies[name]]
        if unknown := [value for value in values if value not in known]:
            raise ValueError(f"{folder}: {name} {unknown[0]!r} is unknown; export the model again.")
    tokenizer = _loaded(Tokenizer.from_str, folder / "tokenizer.json")
    if (tokenizer.token_to_id(PAD), tokenizer.token_to_id(UNKNOWN)) != (0, UNKNOWN_ID):
        raise ValueError(f"{folder}: tokenizer.json must number {PAD} and {UNKNOWN} first; copy it again.")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # The text "[PAD]" is a text.
    pieces = _loaded(WordPieces, folder / "piece_tokenizer.json") if policies["max_word_pieces"] else None
    return WordLookup(tokenizer, policies, pieces)


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


def _loaded(load: Callable[[str], Any], path: Path) -> Any:
    content = _read(path)
    try:
        return load(content)
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
        tokenizer: WordLookup,
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
        tokenizer = read_lookup(folder)
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

    def label_words(self, words: Words, batch_size: int, of_spans: bool) -> tuple[np.ndarray, np.ndarray]:
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

    def _inputs(self, words: Words, rows: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
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


def _checked_shapes(session: Any, tokenizer: WordLookup) -> dict[str, list[Any]]:
    """The shapes of the inputs of a session, which must be those that the tokenizer fills.

    A graph computes each distinct word of a batch once: it reads their ids, and the index among them of every word.
    """
    shapes = {one.name: list(one.shape) for one in session.get_inputs()}
    batch, rows = ["batch", "words"], ["distinct"]
    expected: dict[str, list[Any]] = {"input_ids": rows, "char_ids": [*rows, tokenizer.policies["max_word_chars"]]}
    # A model need not read the pieces that its tokenizer gives.
    if tokenizer.pieces and "piece_ids" in shapes:
        expected["piece_ids"] = [*rows, tokenizer.policies["max_word_pieces"]]
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
