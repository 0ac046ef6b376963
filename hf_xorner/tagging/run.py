"""Tag an input chunk by chunk into its output."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from tqdm import tqdm

from ..entities import BATCHES_AHEAD
from ..errors import DataError, first_line
from ..files import locked
from ..tagger import Tagger
from .output import Counts, Output, partial_of
from .plan import SKIP, Part, TaggingOptions, plan_tagging
from .read import STDIN_NAME, ParquetColumn, Record, Source, check_words
from .write import CONLL, SAME, add_column, added_field, written

_FAULTS = (ValueError, OSError, RuntimeError)
#: Bytes of raw records that close a chunk, so that long documents do not accumulate.
_LARGEST = 1 << 20
# Fields of a config that do not change the model.
_PROVENANCE = ("_name_or_path", "transformers_version", "auto_map")
_POLICIES = ("characters", "casing", "digits", "fallback")
_END = object()


@dataclass
class Tally(Counts):
    """The counts of a process, including those of runs that it continued.

    Attributes:
        ignored: A sentence that names the files of a folder that were ignored, or an empty string.
        outputs: The files that were written.
    """

    ignored: str = ""
    outputs: list[Path] = field(default_factory=list)


class Chunk(NamedTuple):
    """Consecutive records that are tagged together.

    Attributes:
        raw_records: The raw records.
        first: The line or row of the first of them.
        digest: A digest of the input up to the end of the chunk.
        position: Bytes of the input read so far.
    """

    raw_records: list[Any]
    first: int
    digest: str
    position: int


def tag_source(source: str, options: TaggingOptions, stdout: IO[bytes] | None = None) -> Tally:
    """Tag a source as a stream: one record is written for each that is read, in order, in constant memory.

    A file appears when it is complete; until then a run with the same options continues it. A process of `torchrun` or
    `accelerate launch` tags only its share: see `plan_tagging`.

    Args:
        source: A file, a folder, ``-`` for standard input, or ``owner/name`` of the Hub.
        options: The options of the run.
        stdout: The stream to write to if the options name no output; by default standard output.

    Raises:
        DataError: For invalid options, and for the first faulty record unless such records are skipped.
        LockedError: If another run is writing the output.
    """
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    parts, ignored = plan_tagging(source, options, rank, world)
    run = _Run(options, [part.source for part in parts])
    run.tally.ignored = ignored
    try:
        for part in parts:
            if part.output is None:
                run.write_stream(part, stdout or sys.stdout.buffer)
            else:
                run.write_file(part, part.output)
                run.tally.outputs.append(part.output)
    finally:
        run.bar.close()
    return run.tally


class _Run:
    """The model, the counts and the progress bar of a run."""

    def __init__(self, options: TaggingOptions, sources: Sequence[Source]) -> None:
        self.options = options
        self.tally = Tally()
        # As many records as the tagger reads ahead: the batch of a record, and so the last digits of its scores,
        # depends on its chunk alone, whichever process tags it.
        self.chunk_size = options.batch_size * BATCHES_AHEAD
        sizes = [source.size for source in sources]
        self.in_bytes = None not in sizes
        self.bar = tqdm(
            total=sum(size or 0 for size in sizes) if self.in_bytes else None,
            unit="B" if self.in_bytes else " texts",
            unit_scale=True,
            disable=True if options.disable_tqdm else None,
            mininterval=0.5,
        )
        self.start, self.tagged_words, self.bytes_before = time.monotonic(), 0, 0

    @cached_property
    def tagger(self) -> Tagger:
        """The model, loaded at the first use, so that other errors are raised sooner."""
        device = self.options.device
        if device is None and torch.cuda.is_available():
            device = f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
        return Tagger.from_pretrained(self.options.model, device, min_score=self.options.least_score)

    def write_stream(self, part: Part, stream: IO[bytes]) -> None:
        """Tag an input into an open stream."""
        for chunk in read_chunks(part.source, self.chunk_size):
            content, counts = self._tag(part, chunk)
            stream.write(content)
            stream.flush()
            self._count(counts, chunk.position)

    def write_file(self, part: Part, path: Path) -> None:
        """Tag an input, or a shard of it, into a file."""
        with ExitStack() as stack:
            stack.enter_context(locked(partial_of(path, ".lock"), path))
            output = Output(path, self._identity(part), self.options.overwrite, part.manifest, part.source.size)
            stack.callback(output.close)
            if output.is_complete:
                self._count(output.state, output.state.position, tagged=False)
            else:
                self._complete(part, output)
        self.bytes_before += part.source.size or 0

    def _complete(self, part: Part, output: Output) -> None:
        shard = self._shard(part)
        feed = self._continued(part, output, shard)
        output.open()
        self._count(output.state, output.state.position, tagged=False)
        try:
            for chunk in feed:
                content, counts = self._tag(part, chunk)
                output.add(content, counts, chunk.digest, chunk.position)
                self._count(counts, chunk.position)
            if not output.state.chunks:
                output.add(written([], [], [], part.form), Counts())
        except _FAULTS as error:
            count = output.state.records
            kept = f" ({count:,} records before are kept in {output.partial}.)" if count else ""
            sentence = str(error) if isinstance(error, ValueError) else first_line(error)
            raise DataError(f"{sentence}{kept}") from error
        source, form = part.source, part.form
        if not isinstance(source, ParquetColumn) or form.format != SAME:
            output.finish()
            return
        words = source.holds_words
        first = sum(len(chunk.raw_records) for chunk in islice(read_chunks(source, self.chunk_size), shard.start))
        output.finish(
            lambda values, target: add_column(source.path, values, target, added_field(words, form), words, first)
        )

    def _identity(self, part: Part) -> dict[str, Any]:
        """Return the description of a run by which its output is continued."""
        options, form = self.options, part.form
        names = ("field", "output_field", "split", "on_error", "min_score", "batch_size")
        return {
            "model": digest_of(self.tagger),
            "device": self.tagger.model.device.type,
            "choice of options": [*(getattr(options, name) for name in names), form.kind, form.format, form.compressed],
        }

    def _shard(self, part: Part) -> slice:
        """Return the range of the chunks of a shard; the input is read once to count them."""
        number, shards = part.shard
        if shards == 1:
            return slice(0, None)
        count = sum(1 for _ in read_chunks(part.source, self.chunk_size))
        return slice(count * number // shards, count * (number + 1) // shards)

    def _continued(self, part: Part, output: Output, shard: slice) -> Iterator[Chunk]:
        """Return the chunks of a shard that are not in a partial output."""
        feed = islice(read_chunks(part.source, self.chunk_size), shard.start, shard.stop)
        done = output.state.chunks
        last = next(islice(feed, done - 1, None), None) if done else None
        if not done or (last is not None and last.digest == output.state.digest):
            return feed
        can_restart = part.source.name != STDIN_NAME
        if not (can_restart and self.options.overwrite):
            advice = "remove it, or set overwrite" if can_restart else "or remove it"
            raise DataError(f"{output.partial}: was begun with another input; finish it with that one, {advice}.")
        output.restart()
        return islice(read_chunks(part.source, self.chunk_size), shard.start, shard.stop)

    def _tag(self, part: Part, chunk: Chunk) -> tuple[bytes, Counts]:
        records = self._records(part, chunk)
        items = [record.item for record in records if record.item is not None]
        annotations = list(self.tagger.annotate(items, self.options.batch_size))
        found = iter(annotations)
        matched = [None if record.item is None else next(found) for record in records]
        faults = [record.fault for record in records if record.fault]
        words = sum(len(annotation.labels) for annotation in annotations)
        counts = Counts(len(items) + len(faults), words, len(faults), next(iter(faults), ""))
        return written(records, matched, self.tagger.model.config.labels, part.form), counts

    def _records(self, part: Part, chunk: Chunk) -> list[Record]:
        source, number = part.source, chunk.first
        records = []
        for raw in chunk.raw_records:
            try:
                record = source.record(raw, number)
                if part.form.format == CONLL and isinstance(record.item, list):
                    check_words(record.item, f"{source.name}:{number}")
            except DataError as error:
                if self.options.on_error != SKIP:
                    raise
                record = Record(None, raw, str(error))
            records.append(record)
            number += source.lines_of(raw)
        return records

    def _count(self, counts: Counts, position: int, tagged: bool = True) -> None:
        """Add counts, and move the bar."""
        self.tally.add(counts)
        self.tagged_words += counts.words if tagged else 0
        if not self.bar.disable:
            rate = self.tagged_words / max(time.monotonic() - self.start, 1e-3)
            self.bar.set_postfix_str(f"{self.tally.records:,} texts, {rate:,.0f} words/s", refresh=False)
        self.bar.update((self.bytes_before + position if self.in_bytes else self.tally.records) - self.bar.n)


def read_chunks(source: Source, most: int) -> Iterator[Chunk]:
    """Iterate over an input in chunks; an empty input has none.

    Args:
        source: The input.
        most: The most records of a chunk.
    """
    digest = blake2b(digest_size=16)
    first, size = source.first, 0
    raw_records: list[Any] = []
    for raw in chain(source.raw_records(), (_END,)):
        if raw is not _END:
            raw_records.append(raw)
            content = raw if isinstance(raw, bytes) else repr(raw).encode()
            digest.update(content)
            size += len(content)
        if raw_records and (raw is _END or len(raw_records) == most or size >= _LARGEST):
            yield Chunk(raw_records, first, digest.hexdigest(), source.position())
            first += sum(source.lines_of(one) for one in raw_records)
            raw_records, size = [], 0


def digest_of(tagger: Tagger) -> str:
    """Return a digest of a model and its tokenizer, independent of the place where they are stored."""
    digest = blake2b(digest_size=16)
    config = {name: value for name, value in tagger.model.config.to_dict().items() if name not in _PROVENANCE}
    tokenizer = tagger.tokenizer
    policies = {name: tokenizer.init_kwargs.get(name) for name in _POLICIES}
    digest.update(json.dumps([config, policies], sort_keys=True, default=str).encode(errors="surrogatepass"))
    digest.update(tokenizer.backend_tokenizer.to_str().encode())
    if tokenizer.pieces is not None:
        digest.update(tokenizer.pieces.tokenizer.to_str().encode())
    for name, values in tagger.model.state_dict().items():
        digest.update(name.encode())
        digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
