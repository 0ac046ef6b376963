"""What may be said about a run of tagging."""

from dataclasses import dataclass
from dataclasses import field as option

from ..errors import DataError

AUTO = "auto"
INPUTS = ("text", "columns", "jsonl", "parquet")
SPANS, CONLL, SAME = "spans", "conll", "same"
OUTPUTS = (SPANS, CONLL, SAME)
STOP, SKIP = "stop", "skip"


@dataclass
class TaggingOptions:
    """How a source is tagged, and what comes of it."""

    model: str = option(metadata={"help": "The model: a folder, or a repository of the Hub."})
    output: str | None = option(
        default=None, metadata={"help": "The file to write, or the folder for a folder; by default standard output."}
    )
    format: str = option(
        default=AUTO,
        metadata={
            "help": "What is written: spans (JSON Lines of texts and entities), conll (word and tag a line), or same "
            "(the input with a column or field more); by default what the names of output and input say."
        },
    )
    input_format: str = option(default=AUTO, metadata={"help": f"What is read: {', '.join(INPUTS)}."})
    field: str | None = option(
        default=None, metadata={"help": "The field of the texts or words, or the number of the column of the words."}
    )
    split: str | None = option(default=None, metadata={"help": "The split of a data set of the Hub."})
    output_field: str | None = option(
        default=None,
        metadata={"help": "The field that is added; by default predicted_entities to texts, predicted_tags to words."},
    )
    on_error: str = option(
        default=STOP,
        metadata={"help": f"At a faulty line: {STOP}, or {SKIP} to give it no entities and count it."},
    )
    overwrite: bool = option(default=False, metadata={"help": "Replace an output, or a partial one that does not fit."})
    batch_size: int = option(default=64, metadata={"help": "Texts of a batch."})
    device: str | None = option(
        default=None, metadata={"help": "Where the model runs; by default a GPU if there is one."}
    )
    timeout: float = option(
        default=300.0, metadata={"help": "Seconds without a sign of life after which a process is given up by others."}
    )
    disable_tqdm: bool = option(default=False, metadata={"help": "Show no progress, not even in a terminal."})

    def __post_init__(self) -> None:
        for name, allowed in (
            ("format", (AUTO, *OUTPUTS)),
            ("input_format", (AUTO, *INPUTS)),
            ("on_error", (STOP, SKIP)),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise DataError(f"{name}={value!r} is unknown; choose one of {', '.join(allowed)}.")
        if self.batch_size < 1:
            raise DataError(f"batch_size={self.batch_size} is no number of texts; give 1 or more.")
        if not self.timeout > 0:
            raise DataError(f"timeout={self.timeout} is no time to wait; give seconds above 0.")
