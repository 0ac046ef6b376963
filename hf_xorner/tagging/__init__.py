"""Tag files, folders and datasets of any size as streams, in one process or several, with resuming."""

from .plan import TaggingOptions
from .run import Tally, tag_source

__all__ = ["TaggingOptions", "Tally", "tag_source"]
