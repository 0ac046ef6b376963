"""A spaCy component that sets entities: `nlp.add_pipe("hf_xorner", config={"model": "my_tagger"})`.

spaCy imports this module for every pipeline, so PyTorch and the model are only loaded with the first text.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch

if TYPE_CHECKING:
    from ..entities import Entities
    from ..tagger import Tagger

#: The extension of spans that holds their scores.
SCORE = "score"


@Language.factory("hf_xorner", assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", f"span._.{SCORE}"])
class TaggerComponent(Pipe):
    """A component that sets the entities of documents; each document is tagged as one sentence of spaCy's tokens.

    The model does not read tokens of white space, since training data never contain blank words; within an entity, they
    are part of its span. A worker process of `nlp.pipe(…, n_process=2)` runs PyTorch with one thread.

    Args:
        nlp: The pipeline, which is not used.
        name: The name of the component in the pipeline.
        model: A folder, a repository on the Hub, or "english", "english-open" or "multilingual" for a model of the
            package, which is loaded with the first text. A saved pipeline contains the model, and loads this copy.
        spans_key: Set `doc.spans[spans_key]` instead of `doc.ents`.
        min_score: Leave out entities with a lower score: one number, or numbers by label. The default is `min_score` in
            the model's config, or 0.
        overwrite: Remove entities (or spans) that were set before. By default they are kept, and new entities that
            overlap them, or a blocked token, are left out.
        device: A device such as "cpu" or "cuda:0".

    Attributes:
        labels: The labels of entities; empty before the model is loaded.
    """

    def __init__(
        self,
        nlp: Language | None,
        name: str,
        model: str = "english",
        spans_key: str | None = None,
        min_score: float | dict[str, float] | None = None,
        overwrite: bool = False,
        device: str | None = None,
    ) -> None:
        self.name, self.model, self.device = name, model, device
        self.spans_key, self.min_score, self.overwrite = spans_key, min_score, overwrite
        self._tagger: Tagger | None = None
        self._process = os.getpid()
        if not Span.has_extension(SCORE):
            Span.set_extension(SCORE, default=None)

    @property
    def tagger(self) -> "Tagger":
        """The tagger, which is loaded at the first use."""
        if self._tagger is None:
            self._load(self.model)
        if os.getpid() != self._process:
            # OpenMP does not support threads in a forked process, and several processes already share the cores.
            import torch

            torch.set_num_threads(1)
            self._process = os.getpid()
        assert self._tagger is not None
        return self._tagger

    def _load(self, source: str) -> None:
        from ..tagger import Tagger

        self._tagger = Tagger.from_pretrained(source, self.device, min_score=self.min_score)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of entities; empty before the model is loaded."""
        return () if self._tagger is None else tuple(self._tagger.entity_labels)

    def __call__(self, doc: Doc) -> Doc:
        """Set the entities of one document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the entities of documents, `batch_size` at a time."""
        for batch in minibatch(stream, batch_size):
            try:
                self._annotate(batch)
            except Exception as error:
                self.get_error_handler()(self.name, self, batch, error)
            else:
                yield from batch

    def score(self, examples: Iterable[Example], **options: Any) -> dict[str, Any]:
        """Score the entities of documents for `nlp.evaluate`; spans of `spans_key` have no scores."""
        return get_ner_prf(examples) if self.spans_key is None else {}

    def _annotate(self, docs: Sequence[Doc]) -> None:
        tokens = [[token for token in doc if not token.is_space] for doc in docs]
        tagged = self.tagger.pipe([[token.text for token in row] for row in tokens])
        for doc, row, entities in zip(docs, tokens, tagged, strict=True):
            self._set(doc, [token.i for token in row], entities)

    def _set(self, doc: Doc, indices: list[int], entities: "Entities") -> None:
        """Set the entities of a document; `indices` are those of the words' tokens."""
        occupied = set() if self.overwrite else self._taken(doc)
        spans = []
        for entity in entities:
            span = Span(doc, indices[entity.word_start], indices[entity.word_end - 1] + 1, label=entity.label)
            if occupied.isdisjoint(range(span.start, span.end)):
                span._.set(SCORE, entity.score)
                spans.append(span)
        if self.spans_key is not None:
            if self.overwrite or self.spans_key not in doc.spans:
                doc.spans[self.spans_key] = spans
            else:
                doc.spans[self.spans_key].extend(spans)
        elif self.overwrite:
            doc.set_ents(spans)
        else:
            inside = {index for span in spans for index in range(span.start, span.end)}
            # Tokens without annotation are now marked as outside of entities.
            outside = [doc[token.i : token.i + 1] for token in doc if not token.ent_iob and token.i not in inside]
            doc.set_ents(spans, outside=outside, default="unmodified")

    def _taken(self, doc: Doc) -> set[int]:
        """Return the tokens of entities or spans that were set before, for `doc.ents` also blocked tokens."""
        if self.spans_key is None:
            return {token.i for token in doc if token.ent_iob_ in ("B", "I")}
        return {index for span in doc.spans.get(self.spans_key, ()) for index in range(span.start, span.end)}

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the model; the settings are in the config of the pipeline."""
        self.tagger.save_pretrained(path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "TaggerComponent":
        """Load the model that `to_disk` saved."""
        self._load(str(path))
        return self
