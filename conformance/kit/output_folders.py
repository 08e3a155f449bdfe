"""Folders for output files: created if they are missing, with a message, so that a typing mistake is noticed."""

from collections.abc import Callable
from pathlib import Path


def make_folder(folder: Path, tell: Callable[[str], None]) -> None:
    """Create the folder and its parents, and say so; `OSError` names the folder if it cannot be created."""
    if not folder.is_dir():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"the folder {folder} cannot be created: {error.strerror}") from None
        tell(f"created the folder {folder}")
