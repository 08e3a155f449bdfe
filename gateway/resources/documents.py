"""Documents: a folder of Markdown that clients may read and nobody changes here."""

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import gateway.model as m
from gateway.errors import GatewayError, NotFound, TooLarge

from .workspace_paths import WorkspacePaths, entries_of

SUFFIX = ".md"
MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
TITLE_BYTES = 4096
"""How much of a document is read for its title."""


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document in the list: its path below the folder, and its title."""

    path: str
    title: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def category(self) -> str:
        """The first folder on the path; none for a document of the folder itself."""
        return self.path.partition("/")[0] if "/" in self.path else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its text."""

    entry: DocumentEntry
    content: str


class DocumentFolder:
    """The documents below one folder. Its methods wait for the disk: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths = WorkspacePaths(folder)

    def entries(self) -> Sequence[DocumentEntry]:
        """All documents: those of the folder itself first, then folder by folder, each in the order of names."""
        if not self._folder.is_dir():
            return []
        found = [DocumentEntry(path, _title_of(self._folder / path)) for path in self._below(self._folder)]
        return sorted(found, key=lambda one: (one.category, one.path))

    def read(self, path: str) -> Document:
        """The document; a path that the list does not have is not found."""
        try:
            place = self._paths.place(path)
        except GatewayError:
            raise _unknown(path) from None
        names = place.relative_to(self._folder).parts
        if "/".join(names) != path or not _is_document(place) or any(name.startswith(".") for name in names):
            raise _unknown(path)
        if place.stat().st_size > MAX_DOCUMENT_BYTES:
            raise TooLarge(f"'{path}' has more than {MAX_DOCUMENT_BYTES} bytes")
        text = place.read_text(encoding="utf-8", errors="replace")
        return Document(DocumentEntry(path, _title_in(text, place)), text)

    def _below(self, folder: Path) -> Iterator[str]:
        for entry in sorted(entries_of(folder), key=lambda one: one.name):
            place = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(place)
            elif place.suffix == SUFFIX:
                yield place.relative_to(self._folder).as_posix()


def _is_document(place: Path) -> bool:
    try:
        return place.suffix == SUFFIX and stat.S_ISREG(place.lstat().st_mode)
    except OSError:
        return False


def _title_of(place: Path) -> str:
    with place.open("rb") as file:
        return _title_in(file.read(TITLE_BYTES).decode("utf-8", "replace"), place)


def _title_in(text: str, place: Path) -> str:
    """The first heading; without one, the name of the file."""
    heading = next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), "")
    return heading or place.stem.replace("-", " ").replace("_", " ").capitalize()


def _unknown(path: str) -> NotFound:
    return NotFound(f"there is no document '{path[:200]}'", reason=m.FaultReason.DOCUMENT_NOT_FOUND)
