"""Source code for the usual frame: every value at its place and of its type. What is unusual goes a slower way.

A frame is read for every word that an agent says, so the members of a row are fetched by code that is made for the row
when its table is loaded, and not by walking its paths.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gateway.json_values import JsonObject

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
    "content": "type({0}) is str or (type({0}) is list and all([type(block) is dict for block in {0}]))",
}
"""Types whose check is one expression; bindings of other types go the slower way."""


def compile_getter(path: Path, missing: object) -> Callable[[Any], Any]:
    """A function from a frame to what stands at the path, or `missing`."""
    names: dict[str, Any] = {"missing": missing}
    lines = ["def get(frame):", "    try:", f"        return frame{_index(path)}",
             "    except (KeyError, TypeError, IndexError):", "        return missing"]
    exec("\n".join(lines), names)  # noqa: S102 - made of a path that is quoted
    made: Callable[[Any], Any] = names["get"]
    return made


def compile_test(conditions: Sequence[tuple[Path, frozenset[object] | type]]) -> Callable[[Any], bool]:
    """Whether at each path stands one of these words, or a value of this type."""
    names: dict[str, Any] = {f"w{index}": wanted for index, (_, wanted) in enumerate(conditions)}
    tests = [f"frame{_index(path)} in w{index}" if isinstance(wanted, frozenset) else
             f"type(frame{_index(path)}) is w{index}" for index, (path, wanted) in enumerate(conditions)]
    lines = ["def test(frame):", "    try:", f"        return {' and '.join(tests) or 'True'}",
             "    except (KeyError, TypeError, IndexError):", "        return False"]
    exec("\n".join(lines), names)  # noqa: S102 - made of paths that are quoted
    made: Callable[[Any], bool] = names["test"]
    return made


Find = Callable[[str, Any], Any]
FinderForm = tuple[Sequence[tuple[Path, Any]], Path | None, dict[str, Callable[[Any], Any]]]
"""Of one form of envelopes: its constants, the first place of a frame's name, and what chooses among rows of a name."""


def compile_finder(forms: Sequence[FinderForm], slowly: Find) -> Find:
    """A function from a frame to its row; `slowly` finds the row of a frame that is not as it usually is."""
    names: dict[str, Any] = {f"rows{index}": rows for index, (_, _, rows) in enumerate(forms)} | {"slowly": slowly}
    paths = list(dict.fromkeys(path for constants, _, _ in forms for path, _ in constants))
    source = ["def find(name, frame):", "    try:"]
    for index, path in enumerate(paths):
        source += [f"        c{index} = frame{_index(path)}",
                   f"        if type(c{index}) is not str:", "            return slowly(name, frame)"]
    for index, (constants, wire, _) in enumerate(forms):
        test = " and ".join(f"c{paths.index(path)} == {value!r}" for path, value in constants) or "True"
        source += [f"        if {test}:"]
        if wire is not None:
            source += [f"            choose = rows{index}.get(frame{_index(wire)})",
                       "            row = None if choose is None else choose(frame)",
                       "            if row is not None:", "                return row"]
        source += ["            return slowly(name, frame)"]
    source += ["    except (KeyError, TypeError, IndexError):", "        pass", "    return slowly(name, frame)"]
    exec("\n".join(source), names)  # noqa: S102 - made of paths and constants that are quoted
    made: Find = names["find"]
    return made


def _index(path: Path) -> str:
    return "".join(f"[{key!r}]" for key in path)


def compile_check(constants: Sequence[tuple[Path, object]]) -> Callable[[Any], bool]:
    """A function that tells whether a frame has all of these constants at their places."""
    names: dict[str, Any] = {f"c{index}": value for index, (_, value) in enumerate(constants)}
    checks = [f"frame{''.join(f'[{key!r}]' for key in path)} == c{index}" for index, (path, _) in enumerate(constants)]
    lines = ["def check(frame):", "    try:", f"        return {' and '.join(checks) or 'True'}",
             "    except (KeyError, TypeError, IndexError):", "        return False"]
    exec("\n".join(lines), names)  # noqa: S102 - made of paths that are quoted
    made: Callable[[Any], bool] = names["check"]
    return made


class Fetched(NamedTuple):
    """A binding that usually stands at one place: its path, its type, and where it goes in the bindings."""

    path: Path
    type: str
    name: str
    steps: tuple[str, ...]
    invert: Callable[[Any], Any] | None
    may_be_null: bool = False
    """Whether it is null where nothing stands there."""


def compile_reader(fetched: Sequence[Fetched], slowly: Read, body: Path | None = None) -> Read:
    """A function from a frame to its bindings; `slowly` reads a frame that is not as it usually is.

    `body` is the way to what must be an object.
    """
    names: dict[str, Any] = {f"i{index}": one.invert for index, one in enumerate(fetched)} | {"slowly": slowly}
    lines, parents = list[str](), dict[Path, str]()
    values = [f"v{index} = {_value(one, _parent(one.path[:-1], parents, lines))}" for index, one in enumerate(fetched)]
    checks = [] if body is None else [f"type({_parent(body, parents, lines)}) is dict"]
    checks += [_check(f"v{index}", one) for index, one in enumerate(fetched)]
    source = ["def read(frame):", "    try:", *(f"        {line}" for line in (*lines, *values)),
              f"        if {' and '.join(checks) or 'True'}:", f"            return {_bindings(fetched)}",
              "    except (AttributeError, KeyError, TypeError, IndexError, ValueError):", "        pass",
              "    return slowly(frame)"]
    exec("\n".join(source), names)  # noqa: S102 - made of paths that are quoted, never of what a frame holds
    made: Read = names["read"]
    return made


def _parent(path: Path, parents: dict[Path, str], lines: list[str]) -> str:
    """The variable of what stands at the path, which is fetched once."""
    if not path:
        return "frame"
    if path not in parents:
        above = _parent(path[:-1], parents, lines)
        parents[path] = f"p{len(parents)}"
        lines.append(f"{parents[path]} = {above}[{path[-1]!r}]")
    return parents[path]


def _value(one: Fetched, parent: str) -> str:
    key = one.path[-1]
    return f"{parent}.get({key!r})" if one.may_be_null and isinstance(key, str) else f"{parent}[{key!r}]"


def _check(value: str, one: Fetched) -> str:
    check = IS_OF_TYPE[one.type].format(value)
    return f"({value} is None or ({check}))" if one.may_be_null else f"({check})"


def _bindings(fetched: Sequence[Fetched]) -> str:
    """The dictionary of the bindings, as source code."""
    built: dict[str, Any] = {}
    for index, one in enumerate(fetched):
        inner = built
        for step in (one.name, *one.steps)[:-1]:
            inner = inner.setdefault(step, {})
        inner[(one.name, *one.steps)[-1]] = _inverted(index, one)
    return _source(built)


def _inverted(index: int, one: Fetched) -> str:
    if one.invert is None:
        return f"v{index}"
    return f"None if v{index} is None else i{index}(v{index})" if one.may_be_null else f"i{index}(v{index})"


def _source(built: JsonObject) -> str:
    parts = [f"{name!r}: {_source(value) if isinstance(value, dict) else value}" for name, value in built.items()]
    return "{" + ", ".join(parts) + "}"
