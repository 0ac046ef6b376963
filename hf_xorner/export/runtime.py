"""Tag texts with an exported model, which needs ONNX Runtime, tokenizers and NumPy.

    from onnx_tagger import OnnxTagger

    tagger = OnnxTagger.from_pretrained("folder")
    for entity in tagger("Ann Smith met Zeus in New York."):
        print(entity.label, entity.text, entity.start, entity.end, entity.score)

An export joins this module and the modules of the package that it imports into one file, `onnx_tagger.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ..entities import BaseTagger, NumberByLabel, batches_of
from ..models.word_ids import WordLookup, WordPieces, Words, check_fields, check_policies
from ..safety import ARCHITECTURES, check_settings

#: The file with the code that runs a graph, which an export adds to those of a saved model.
RUNTIME_FILE = "onnx_tagger.py"

#: Maximum number of sentences in a batch; with 16, tagging takes 3 % less time and 9 % more memory.
SENTENCES = 12


class OnnxTagger(BaseTagger):
    """A model in ONNX with its tokenizer, to tag many texts at once.

    Args:
        session: ONNX Runtime's session of the model.
        tokenizer: Its tokenizer.
        labels: Its labels in the order of their ids.
        threads: Number of batches that are computed at a time.
        min_score: Entities with a lower score are left out; one number, or numbers by label.
        default: The default of `min_score`.
    """

    batches_ahead = 4
    _source: tuple[Any, ...]  # the arguments of `from_pretrained`

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
        self._inputs = {entry.name for entry in session.get_inputs()}  # some models do not read pieces

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        file: str = "model.onnx",
        threads: int | None = None,
        providers: Sequence[Any] = ("CPUExecutionProvider",),
        min_score: NumberByLabel | None = None,
    ) -> OnnxTagger:
        """Load an exported folder.

        Args:
            folder: The folder.
            file: The model in it.
            threads: Number of batches that are computed at a time; by default one per processor.
            providers: Execution providers of ONNX Runtime, such as "CUDAExecutionProvider".
            min_score: Entities with a lower score are left out: one number from 0 to 1, or numbers by label. The
                default is `min_score` in config.json, or 0.

        Raises:
            ValueError: If a file is missing or broken, or labels are not numbered from 0.
        """
        folder = Path(folder)
        config = _loaded(folder / "config.json", lambda path: _settings(path, ARCHITECTURES))
        id2label = config.get("id2label")
        names = id2label if isinstance(id2label, dict) else {}
        labels: list[Any] = [names.get(str(index)) for index in range(len(names))]
        if not labels or not all(isinstance(label, str) for label in labels):
            raise ValueError(f"{folder}: the id2label of config.json does not number labels from 0; copy it again.")
        lookup = read_lookup(folder)
        _loaded(folder / "config.json", lambda _: check_fields(config, lookup.model_fields()))
        session = _loaded(folder / file, lambda path: _session(path, providers))
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        tagger = cls(session, lookup, labels, threads or processors, min_score, config.get("min_score"))
        tagger._source = (folder.absolute(), file, threads, providers)
        return tagger

    def __reduce__(self) -> Any:
        """Load the folder again where the tagger is unpickled, since sessions cannot be pickled."""
        return OnnxTagger.from_pretrained, (*self._source, self.min_score)

    def __repr__(self) -> str:
        return f"OnnxTagger({', '.join(self.session.get_providers())}, types: {', '.join(self.entity_labels)})"

    def label_words(self, words: Words, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Label words in batches of sentences of similar length; see `BaseTagger.label_words`."""
        labels = np.zeros(len(words.row), dtype=np.int64)
        log_probs = np.zeros((len(words.row), 2), dtype=np.float32)

        def label(batch: tuple[np.ndarray, np.ndarray]) -> None:
            mask, positions = batch
            inputs = {name: values for name, values in _inputs(words, mask, positions).items() if name in self._inputs}
            results = self.session.run(["labels", "path_log_probs"], inputs)
            labels[positions], log_probs[positions] = (values[mask] for values in results)

        batches = list(batches_of(words.counts, min(batch_size, SENTENCES)))
        if self.threads == 1 or len(batches) < 2:
            for batch in batches:
                label(batch)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(label, batches))
        return labels, log_probs


def read_lookup(folder: Path) -> WordLookup:
    """Load tokenizer.json and tokenizer_config.json, and piece_tokenizer.json if the tokenizer cuts words into pieces.

    Raises:
        ValueError: If a file is missing or broken.
    """
    policies = _loaded(folder / "tokenizer_config.json", lambda path: _settings(path, [None]))
    _loaded(folder / "tokenizer_config.json", lambda _: check_policies(policies))
    tokenizer = _loaded(folder / "tokenizer.json", lambda path: Tokenizer.from_file(str(path)))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # The text "[PAD]" is a text.
    pieces = None
    if policies.get("max_word_pieces"):
        pieces = _loaded(folder / "piece_tokenizer.json", lambda path: WordPieces(path.read_text(encoding="utf-8")))
    return WordLookup(tokenizer, policies, pieces)


def _loaded(path: Path, load: Callable[[Path], Any]) -> Any:
    try:
        return load(path)
    # The errors for missing and broken files, of tokenizers and of ONNX Runtime have no common type.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"{path} cannot be loaded ({reason}); copy the whole folder of the export.") from None


def _settings(path: Path, types: Collection[str | None]) -> dict[str, Any]:
    settings = dict(json.loads(path.read_text(encoding="utf-8")))
    check_settings(settings, types)
    return settings


def _session(path: Path, providers: Sequence[Any]) -> Any:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1  # Each thread computes a batch.
    options.enable_mem_pattern = False  # Batches have many shapes.
    options.log_severity_level = 3
    return InferenceSession(path, options, providers=list(providers))


def _inputs(words: Words, mask: np.ndarray, positions: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs of a batch, from its mask (B, T) and the indices of its words among all words.

    The graph computes each distinct word of a batch once: it reads the ids of distinct words, and their index for every
    word.
    """
    index = words.row[positions]
    rows: Any = slice(None)
    if len(index) < len(words.row):  # there are several batches
        rows, index = np.unique(index, return_inverse=True)
    word_index = np.zeros(mask.shape, dtype=np.int64)
    word_index[mask] = index
    inputs = {"input_ids": words.input_ids[rows], "word_index": word_index, "attention_mask": mask.astype(np.int64)}
    characters = words.char_ids[rows]
    inputs["char_ids"] = characters[:, : max(1, characters.any(0).sum())]
    return inputs if words.piece_ids is None else inputs | {"piece_ids": words.piece_ids[rows]}
