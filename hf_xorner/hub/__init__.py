"""Model cards, checks before publishing, and publishing on the Hub."""

from .checks import Checked, ModelFile, Unfit, check_folder
from .publish import Published, publish, ready_to_publish

__all__ = ["Checked", "ModelFile", "Published", "Unfit", "check_folder", "publish", "ready_to_publish"]
