"""Makes folders and files that only their owner can read, whatever the umask of the process."""

import os
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def make_private_folder(folder: Path) -> None:
    """Make the folder and missing folders above it; only their owner can enter them."""
    for missing in reversed([one for one in folder.parents if not one.exists()]):
        missing.mkdir(mode=FOLDER, exist_ok=True)
    folder.mkdir(mode=FOLDER, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=private_opener)`; a new file belongs to its owner alone."""
    return os.open(path, flags, FILE)
