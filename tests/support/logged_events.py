"""The events that the server writes to its log, read from the source: name, levels, and the names of their fields."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
"""A method of a logger, and the level of its lines."""
LOGGERS = frozenset(("log", "_log", "sampled", "_sampled"))
"""What loggers are called in the source."""
NO_FIELDS = frozenset(("exc_info",))
"""Arguments that become the field `exception`."""


@dataclass
class LoggedEvent:
    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def logged_events(*rooms: Path) -> dict[str, LoggedEvent]:
    """All events of the modules in these folders, by name; a name that cannot be read is an error with its place."""
    events: dict[str, LoggedEvent] = {}
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        for call in _calls(ast.parse(path.read_text(encoding="utf-8"))):
            for name, levels in zip(names := _names(call, path), _levels_of_each(call, len(names)), strict=True):
                event = events.setdefault(name, LoggedEvent())
                event.levels |= levels
                event.fields |= {field for word in call.keywords for field in _fields(word)} - NO_FIELDS
    return events


def _calls(module: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _levels(node.func):
            yield node


def _levels(called: ast.expr) -> set[str]:
    """The levels of `log.info(…)` or `(log.warning if fault else log.info)(…)`; empty for other calls."""
    if isinstance(called, ast.IfExp):
        return _levels(called.body) | _levels(called.orelse)
    if not isinstance(called, ast.Attribute) or called.attr not in LEVELS:
        return set()
    owner = called.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return {LEVELS[called.attr]} if name in LOGGERS else set()


def _fields(word: ast.keyword) -> set[str]:
    """The field of `name=value`, or the keys of the dicts in `**({"name": value} if … else {})`."""
    if word.arg is not None:
        return {word.arg}
    dicts = [node for node in ast.walk(word.value) if isinstance(node, ast.Dict)]
    keys = [key.value for one in dicts for key in one.keys if isinstance(key, ast.Constant)]
    return {key for key in keys if isinstance(key, str)}


def _levels_of_each(call: ast.Call, names: int) -> list[set[str]]:
    """The levels of each name: `(log.warning if x else log.info)("a" if x else "b")` chooses both together."""
    if names == 1 or not isinstance(call.func, ast.IfExp):
        return [_levels(call.func)] * names
    return [_levels(call.func.body), _levels(call.func.orelse)]


def _names(call: ast.Call, path: Path) -> list[str]:
    first = call.args[0] if call.args else None
    named = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
    names = [one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(names) != len(named):
        raise ValueError(f"{path}:{call.lineno}: expected the name of an event as a string, found {ast.unparse(call)}; "
                         "write the name out, so that the page of the log can be compared with it")
    return names
