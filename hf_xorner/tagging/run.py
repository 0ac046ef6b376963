"""A run of tagging: chunk by chunk from the input to the output, in one process or several."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any, NamedTuple

from ..errors import DataError, first_line
from ..files import locked
from ..tagger import BATCHES_AHEAD, Tagger
from .chunks import Chunk, chunks
from .lines import STDIN
from .model import digest_of, load_tagger
from .options import CONLL, SAME, SKIP, TaggingOptions
from .parquet import add_column
from .partial import Partial, Piece, beside
from .plan import Plan, left_out_line, plan
from .processes import Gathering, Share, Spool, clear_away, run_path, signs_of_life
from .progress import Progress
from .rows import ParquetColumn
from .sources import Record, check_words
from .writing import added_field, written

_FAULTS = (ValueError, OSError, RuntimeError)


class Tally(NamedTuple):
    """What has been tagged, by this run and by those that it continued; what was passed over, and left out."""

    records: int
    words: int
    faults: int
    first_fault: str
    left_out: str


def tag_source(source: str, options: TaggingOptions, stdout: IO[bytes] | None = None) -> Tally | None:
    """Tag a source as a stream: one record out for each that comes in, in order, within memory that does not grow.

    The output appears as a whole when it is complete; until then, what there is of it stands beside, and a run with
    the same options goes on from it. In a process of `torchrun` or `accelerate launch` it is shared among all.

    Args:
        source: A file, a folder, ``-`` for standard input, or ``owner/name`` of the Hub.
        options: How it is tagged, and what is written.
        stdout: Where to write if the options name no output; by default standard output.

    Returns:
        What has been tagged; None in all processes but the first.

    Raises:
        DataError: For options that do not fit, and for the first faulty record unless faults are to be passed over.
        LockedError: If another run is writing the output.
    """
    share = Share.of_environment()
    if share.world > 1 and (not options.output or source == STDIN):
        what = "standard input is read" if source == STDIN else "standard output is written"
        raise DataError(f"{what} by one process alone; name a file, or start one process.")
    planned = plan(source, options)
    run = _Run(planned, source, options)
    if planned.output is None:
        return run.to_stdout(stdout or sys.stdout.buffer)
    with locked(beside(planned.output, ".lock"), planned.output, share.rank, share.world):
        if share.rank:
            run.helper(share)
            return None
        return run.to_output(share)


class _Run:
    """One process's part of a run."""

    def __init__(self, planned: Plan, source: str, options: TaggingOptions) -> None:
        self.plan, self.source, self.options = planned, source, options
        self._tagger: Tagger | None = None
        self.fault: Exception | None = None

    @property
    def tagger(self) -> Tagger:
        """The model, loaded when it is first wanted: what else is wrong is said sooner."""
        if self._tagger is None:
            self._tagger = load_tagger(self.options.model, self.options.device)
        return self._tagger

    def chunks(self) -> Iterator[Chunk]:
        """The input from its beginning."""
        parts = [(part.name, part.source) for part in self.plan.parts]
        # As many as the tagger reads ahead: a record's batch, and so the last digits of its scores, depends on nothing
        # but its chunk, whichever process tags it.
        return chunks(parts, self.options.batch_size * BATCHES_AHEAD)

    def identity(self) -> dict[str, Any]:
        """What an output is known by while it is not finished."""
        options = self.options
        names = ("field", "output_field", "split", "on_error", "batch_size")
        said = [getattr(options, name) for name in names]
        forms = sorted({(part.form.kind, part.form.format, part.form.compressed) for part in self.plan.parts})
        return {
            "model": digest_of(self.tagger),
            "device": self.tagger.model.device.type,
            "choice of options": [*said, *map(list, forms)],
        }

    # --- One process ---------------------------------------------------------------------------------------------

    def to_stdout(self, stdout: IO[bytes]) -> Tally:
        """Write to standard output."""
        progress = Progress(self.plan.size, self.options.disable_tqdm)
        tally = Tally(0, 0, 0, "", self._left_out())
        try:
            for chunk in self.chunks():
                piece = self.piece_of(chunk)
                stdout.write(piece.content)
                stdout.flush()
                progress.add(piece.records, piece.words, piece.position)
                tally = Tally(
                    tally.records + piece.records,
                    tally.words + piece.words,
                    tally.faults + piece.faults,
                    tally.first_fault or piece.first_fault,
                    tally.left_out,
                )
        finally:
            progress.close()
        return tally

    def to_output(self, share: Share) -> Tally:
        """Write the output, from what all processes have made."""
        assert self.plan.output is not None
        output = self.plan.output
        with ExitStack() as stack:
            stack.callback(clear_away, output)
            gathering = None
            if share.world > 1:
                gathering = Gathering(output, share.world, self.options.timeout)
                stack.callback(gathering.close)
                stack.enter_context(signs_of_life(run_path(output)))
            partial = Partial(output, [part.name for part in self.plan.parts], self.identity(), self.options.overwrite)
            stack.callback(partial.close)
            feed = self._continued(partial)
            partial.open()
            progress = Progress(self.plan.size, self.options.disable_tqdm)
            stack.callback(progress.close)
            progress.add(partial.state.records, partial.state.words, partial.state.position, fresh=False)
            try:
                if gathering is None:
                    for chunk in feed:
                        self._add(self.piece_of(chunk), partial, progress)
                else:
                    self._gather(feed, gathering, partial, progress)
            except _FAULTS as error:
                kept = f" ({partial.state.records:,} records before are kept in {partial.path}.)"
                raise DataError(f"{_sentence(error)}{kept if partial.state.records else ''}") from error
            self._finish(partial)
            state = partial.state
            return Tally(state.records, state.words, state.faults, state.first_fault, self._left_out())

    def _add(self, piece: Piece, partial: Partial, progress: Progress) -> None:
        partial.add(piece)
        progress.add(piece.records, piece.words, piece.position)

    def _continued(self, partial: Partial) -> Iterator[Chunk]:
        """The input from where a partial output ends; if that is of another input, from the beginning."""
        state = partial.state
        feed = self.chunks()
        if not state.chunks:
            return feed
        last = next((chunk for chunk in feed if chunk.number == state.chunks - 1), None)
        if last is not None and last.digest == state.digest and not (state.complete and next(feed, None)):
            return feed
        if not self.options.overwrite or self.source == STDIN:
            advice = "remove it" if self.source == STDIN else "remove it, or overwrite it"
            raise DataError(f"{partial.path}: was begun with another input; finish it with that, {advice}.")
        partial.clear()
        return self.chunks()

    def _finish(self, partial: Partial) -> None:
        """Put the output in its place; of Parquet, only values have been written so far."""
        partial.complete()
        for file, part in enumerate(self.plan.parts):
            if isinstance(part.source, ParquetColumn) and part.form.format == SAME:
                words = part.source.holds_words
                add_column(part.source.path, partial.place_of(file), added_field(words, part.form), words)
        partial.finish()

    def _left_out(self) -> str:
        return left_out_line(self.plan.left_out) if self.plan.left_out else ""

    # --- Several processes ---------------------------------------------------------------------------------------

    def helper(self, share: Share) -> None:
        """Do this process's share, for the first one to bring together."""
        assert self.plan.output is not None
        spool = Spool(self.plan.output, share.rank)
        with signs_of_life(spool.path):
            _ = self.tagger
            first = spool.wait_for_run(self.plan.output, self.options.timeout)
            feed = (chunk for chunk in self.chunks() if chunk.number >= first)
            for _ in self._shared(feed, share, spool, first):
                pass
            spool.close()
        if self.fault is not None:
            raise self.fault

    def _gather(self, feed: Iterator[Chunk], gathering: Gathering, partial: Partial, progress: Progress) -> None:
        """Do the first process's share, and bring all shares together."""
        assert self.plan.output is not None
        spool = Spool(self.plan.output, 0)
        spool.answer(gathering.run)
        total = partial.state.chunks
        gathering.begin(total)
        for chunk in self._shared(feed, Share(0, gathering.world), spool, partial.state.chunks):
            total = chunk.number + 1
            for piece in gathering.pieces(partial):
                self._add(piece, partial, progress)
        if spool.fault_at is not None:
            # Of several faults the first in the input is the one to be told, whoever meets it: read up to this one.
            total = spool.fault_at + 1
        for piece in gathering.pieces(partial, total):
            self._add(piece, partial, progress)

    def _shared(self, feed: Iterator[Chunk], share: Share, spool: Spool, first: int) -> Iterator[Chunk]:
        """Do the chunks that fall to a process; yield every one, so that something else may be done between them.

        A fault ends it, and stands in the spool.
        """
        number = first
        try:
            for chunk in feed:
                number = chunk.number
                if number % share.world == share.rank:
                    spool.add(self.piece_of(chunk))
                yield chunk
                number += 1
        except _FAULTS as error:
            spool.add_fault(number, _sentence(error))
            self.fault = error

    # --- The work itself -----------------------------------------------------------------------------------------

    def piece_of(self, chunk: Chunk) -> Piece:
        """Tag a chunk."""
        part = self.plan.parts[chunk.file]
        records = self._records(chunk)
        items = [record.item for record in records if record.item is not None]
        annotations = list(self.tagger.annotate(items, self.options.batch_size))
        found = iter(annotations)
        content = written(
            records,
            [None if record.item is None else next(found) for record in records],
            self.tagger.model.config.labels,
            part.form,
        )
        faults = [record.fault for record in records if record.fault]
        return Piece(
            chunk=chunk.number,
            file=chunk.file,
            digest=chunk.digest,
            position=chunk.position,
            records=len(items) + len(faults),
            words=sum(len(annotation.labels) for annotation in annotations),
            faults=len(faults),
            first_fault=next(iter(faults), ""),
            content=content,
        )

    def _records(self, chunk: Chunk) -> list[Record]:
        part = self.plan.parts[chunk.file]
        source, number = part.source, chunk.first
        records = []
        for raw in chunk.raws:
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


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else first_line(error)
