"""Paths below one folder: none leads outside of it or through a link."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TypeVar

from gateway.errors import Conflict, Invalid, NotFound

UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_NAME, MAX_DEPTH = 255, 32


class WorkspacePaths:
    """Resolves paths below a root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, path: str) -> Path:
        """The place of a path; raises if it is outside the root or behind a link."""
        place = self.root
        for component in path_components(path):
            place = place / component
            with suppress(OSError):
                if stat.S_ISLNK(os.lstat(place).st_mode):
                    raise NotFound(f"there is no '{path}'")
        return place

    def file_place(self, path: str) -> Path:
        """The place of a file that exists or may be created."""
        place = self.place(path)
        if place == self.root or place.is_dir():
            raise Conflict(f"'{path}' is a folder")
        return place

    def known(self, path: str) -> Path:
        """The place of a file or folder that may be changed."""
        place = self.place(path)
        if place == self.root:
            raise Invalid("the workspace itself stays as it is")
        if not place.exists():
            raise NotFound(f"there is no '{path}'")
        return place

    def name(self, place: Path) -> str:
        return str(place.relative_to(self.root))


def path_components(path: str) -> list[str]:
    """The names of a path inside a workspace; raises `Invalid` if it leads elsewhere."""
    if path.startswith(("/", "~")) or "\\" in path:
        raise Invalid(f"'{path}' is not a path inside the workspace")
    components = [check_name(component) for component in path.split("/") if component not in ("", ".")]
    if len(components) > MAX_DEPTH:
        raise Invalid(f"a path has {MAX_DEPTH} steps at most")
    return components


def check_name(name: str) -> str:
    """Check that a name can be part of a path."""
    if name == ".." or UNFIT.search(name) or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        raise Invalid(f"{name[:80]!r} cannot stand in a path")
    return name


P = TypeVar("P", bound=PurePath)


def copy_names(place: P, *, is_folder: bool) -> Iterator[P]:
    """The places where a copy may be, the best one first."""
    stem, suffix = (place.name, "") if is_folder else (place.stem, place.suffix)
    names = (f"{stem} copy{suffix}" if number == 1 else f"{stem} copy {number}{suffix}" for number in range(1, 1000))
    return (place.with_name(name) for name in names)


def free_copy_path(place: Path) -> Path:
    """A free place for a copy."""
    return next(free for free in copy_names(place, is_folder=place.is_dir()) if not free.exists())


def entries_of(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Whether this is a folder or a file, and no link, socket or device."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
                yield entry


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, however deep."""
    if not folder.is_dir():
        return
    for entry in entries_of(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(Path(entry.path))
        else:
            yield Path(entry.path)
