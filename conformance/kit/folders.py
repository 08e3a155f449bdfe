"""Folders for what is written: made where they are missing, and said to be, lest a slip of the pen go unseen."""

from collections.abc import Callable
from pathlib import Path


def make_folder(folder: Path, tell: Callable[[str], None]) -> None:
    """Make it, with those above it, and tell of it if it was not there; raises `OSError` that names it."""
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"the folder {folder} cannot be made: {error.strerror}") from None
        tell(f"made the folder {folder}")
