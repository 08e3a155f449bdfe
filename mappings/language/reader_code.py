"""Source code for the usual frame: every value at its place and of its type. What is unusual goes a slower way.

A frame is read for every word that an agent says, so the members of a row are fetched by code that is made for the row
when its table is loaded, and not by walking its paths.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
Read = Callable[[Any], dict[str, Any]]
IS_OF_TYPE = {
    "any": "{0} is not None",
    "text": "type({0}) is str",
    "id": "type({0}) is str and {0}",
    "int": "type({0}) is int",
    "number": "type({0}) in (int, float)",
    "bool": "type({0}) is bool",
    "object": "type({0}) is dict",
    "list": "type({0}) is list",
}
"""Types whose check is one expression; bindings of other types go the slower way."""


class Fetched(NamedTuple):
    """A binding that stands at one place: its path, its type, and where it goes in the bindings."""

    path: Path
    type: str
    name: str
    steps: tuple[str, ...]
    invert: Callable[[Any], Any] | None


def compile_reader(fetched: Sequence[Fetched], slowly: Read) -> Read:
    """A function from a frame to its bindings; `slowly` reads a frame that is not as it usually is."""
    prefix = _common_prefix([one.path[:-1] for one in fetched])
    names: dict[str, Any] = {f"i{index}": one.invert for index, one in enumerate(fetched)} | {"slowly": slowly}
    lines = ["def read(frame):", "    try:", f"        at = frame{_index(prefix)}"]
    lines += [f"        v{index} = at{_index(one.path[len(prefix):])}" for index, one in enumerate(fetched)]
    checks = [f"({IS_OF_TYPE[one.type].format(f'v{index}')})" for index, one in enumerate(fetched)]
    lines += [f"        if {' and '.join(checks) or 'True'}:", f"            return {_bindings(fetched)}",
              "    except (KeyError, TypeError, IndexError, ValueError):", "        pass", "    return slowly(frame)"]
    exec("\n".join(lines), names)  # noqa: S102 - made of paths that are quoted, never of what a frame holds
    made: Read = names["read"]
    return made


def _index(path: Path) -> str:
    return "".join(f"[{key!r}]" for key in path)


def _bindings(fetched: Sequence[Fetched]) -> str:
    """The dictionary of the bindings, as source code."""
    built: dict[str, Any] = {}
    for index, one in enumerate(fetched):
        inner = built
        for step in (one.name, *one.steps)[:-1]:
            inner = inner.setdefault(step, {})
        inner[(one.name, *one.steps)[-1]] = f"i{index}(v{index})" if one.invert else f"v{index}"
    return _source(built)


def _source(built: dict[str, Any]) -> str:
    parts = [f"{name!r}: {_source(value) if isinstance(value, dict) else value}" for name, value in built.items()]
    return "{" + ", ".join(parts) + "}"


def _common_prefix(paths: Sequence[Path]) -> Path:
    first = min(paths, key=len, default=())
    for length in range(len(first), 0, -1):
        if all(path[:length] == first[:length] for path in paths):
            return first[:length]
    return ()
