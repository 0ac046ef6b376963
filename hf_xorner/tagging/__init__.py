"""Tag files, folders and Hub data sets of any size as streams, in several processes, and go on where a run ended."""

from .options import TaggingOptions
from .run import Tally, tag_source

__all__ = ["TaggingOptions", "Tally", "tag_source"]
