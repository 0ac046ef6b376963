"""Model cards, checks before publishing, and publishing on the Hub."""

from .checks import Checked, check_folder
from .upload import prepare_repository, publish

__all__ = ["Checked", "check_folder", "prepare_repository", "publish"]
