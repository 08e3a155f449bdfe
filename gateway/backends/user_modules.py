"""Modules of the user: found beside config.yaml or installed, and loaded again when their files have changed."""

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from gateway.errors import GatewayError, NotFound, translate_exceptions
from gateway.yaml_positions import Position, Problem, Problems

FileStamp = tuple[int, ...]
"""Identifies the state of a file; empty if the file does not exist."""


@dataclass(frozen=True)
class UserModule:
    """A module and its files with their state when they were read; files beside it that it imports are among them."""

    module: ModuleType
    file_stamps: Mapping[Path, FileStamp]

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(self.file_stamps)

    @property
    def is_stale(self) -> bool:
        """Whether the module was loaded again, or a file has changed since it was read."""
        return self is not _LOADED.get(self.module.__name__) or any(
            _stamp(file) != stamp for file, stamp in self.file_stamps.items()
        )


_LOADED: dict[str, UserModule] = {}
"""The modules that were loaded here, by name; only these are loaded again."""


def load_user_module(name: str, base: Path) -> UserModule:
    """The module as its files are now. Raises `NotFound`, or `Problems` if its code cannot be run."""
    base = base.absolute()
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    importlib.invalidate_caches()
    known = _LOADED.get(name)
    if known and known.module is sys.modules.get(name) and not known.is_stale and _is_found_from(known, name, base):
        return known
    aside = _unload(known, name) if known else {}
    try:
        # a module's code may raise anything
        with translate_exceptions({Exception: _ModuleFailed, SystemExit: _ModuleFailed}):
            source = _read(name, base)
    except _ModuleFailed as broken:
        sys.modules.update(aside)
        raise _module_problem(broken.__cause__, name) from broken
    _LOADED[name] = source
    return source


class _ModuleFailed(GatewayError):
    """The code of a module raised an exception."""


def _is_found_from(known: UserModule, name: str, base: Path) -> bool:
    """Whether the loaded module is the one that would be found from this folder."""
    beside = base / f"{name}.py"
    return not beside.is_file() or beside in known.file_stamps


def _unload(known: UserModule, name: str) -> dict[str, ModuleType]:
    """Unload the module and the modules beside it that it imports, so that their files are read again."""
    package = name.rpartition(".")[0]
    for file in known.files:
        with suppress(OSError):  # the time stamp in compiled files has whole seconds only
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
    names = [name, *(f"{package}.{file.stem}".lstrip(".") for file in known.files[1:])]
    return {one: sys.modules.pop(one) for one in names if one in sys.modules}


def _read(name: str, base: Path) -> UserModule:
    stood = sys.modules.get(name)
    spec = stood.__spec__ if stood else _find_spec(name)
    file = Path(spec.origin) if spec and spec.origin and spec.has_location else None
    beside = base / f"{name}.py"
    if stood and beside.is_file() and file != beside:
        raise NotFound(f"the name '{name}' is taken by {file or 'a built-in module'}; give {beside.name} another one")
    stamps = {one: _stamp(one) for one in module_files(name, file, base)} if file else {}
    return UserModule(importlib.import_module(name), stamps)


def _find_spec(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        if not error.name or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise NotFound(f"No module named '{name}' beside the settings or among the installed")
    return spec


def _module_problem(error: BaseException | None, name: str) -> Exception:
    """The problem of a module, at the line that caused it."""
    if isinstance(error, NotFound):
        return error
    words = error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
    return Problems([Problem(_place(error, name), f"module '{name}' cannot be read: {words}")])


def _place(error: BaseException | None, name: str) -> Position:
    """The position of the exception: the innermost line of the user's code."""
    if isinstance(error, SyntaxError) and error.filename:
        return Position(error.filename, error.lineno or 1, error.offset or 1)
    steps = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__ if error else None)]
    own = [step for step in steps if step[0] != __file__ and not step[0].startswith("<frozen importlib")
           and Path(step[0]).parts[-2:-1] != ("importlib",)]
    return Position(*own[-1]) if own else Position(name)


# -- the files of a module --------------------------------------------------------------------------------------------

def module_files(name: str, file: Path, base: Path) -> list[Path]:
    """The module's file, and the files beside it that it imports, directly or indirectly.

    Beside it means in its package, or, for a module without a package, in the folder of the settings.
    """
    package, found, left = name.rpartition(".")[0], list[Path](), [file]
    while left:
        one = left.pop()
        if one in found:
            continue
        found.append(one)
        if package or file.parent == base:
            left += (beside for word in _siblings(one, package) if (beside := file.with_name(f"{word}.py")).is_file())
    return found


def _siblings(file: Path, package: str) -> Iterator[str]:
    """The names of modules of the same package that the file imports."""
    for name in _imports(file, package):
        room, _, word = name.rpartition(".")
        if room == package:
            yield word


def _imports(file: Path, package: str) -> Iterable[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # the import raises the error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= 1:
            start = ".".join(filter(None, (package if node.level else "", node.module)))
            yield start
            yield from (f"{start}.{name.name}" for name in node.names)


def _stamp(file: Path) -> FileStamp:
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
