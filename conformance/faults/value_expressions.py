"""What a row of faults.yaml does with a value: paths into it, conditions on it, references to it, functions of it.

A path is a chain of steps: a member (`data.index`), a place in a list (`messages.-1`), all items (`messages.*`), the
items for which something holds (`blocks.[type=text]`), or what a string spells in JSON (`arguments.json()`). `.` is
the value itself. Steps lead through JSON, dataclasses, answers of aiohttp (`status`, `headers`, `body`) and objects.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from types import MappingProxyType
from typing import Any, Final, get_origin
from uuid import uuid4

import orjson
import yaml
from aiohttp import web

from conformance.faults.content import as_blocks, text_of
from conformance.faults.value_damage import without_nulls

Scope = Mapping[str, Any]
Steps = tuple[str, ...]
STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")
REFERENCE = re.compile(r"\$([a-z_][\w.()*\-]*)")
IN_TEXT = re.compile(r"\{\$([a-z_][^}]*)\}")
FRESH: Final = "fresh"
"""`$fresh` is an id that nobody has seen."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()


def parse_path(path: str) -> Steps:
    """The steps of a path."""
    return () if path == "." else tuple(STEP.findall(path))


# -- reading -----------------------------------------------------------------------------------------------------------


def find(value: Any, steps: Steps) -> Iterator[Any]:
    """Everything to which the steps lead."""
    if not steps:
        yield value
        return
    for item in _next(opened(value, steps[0]), steps[0]):
        yield from find(item, steps[1:])


def first(value: Any, steps: Steps) -> Any:
    return next(find(value, steps), MISSING)


def _next(value: Any, step: str) -> Iterator[Any]:
    if step == "json()":
        yield value
    elif step == "class()":
        yield (value if isinstance(value, type) else type(value)).__name__
    elif step == "*" and isinstance(value, list | tuple | Mapping):
        yield from value.values() if isinstance(value, Mapping) else value
    elif step.startswith("["):
        items = value if isinstance(value, list | tuple) else [value]
        yield from (item for item in items if _is_selected(item, step))
    elif _is_mapping(value):
        yield from (value[name] for name in (step, _number(step)) if name in value)
    elif isinstance(value, list | tuple):
        place = _number(step)
        yield from value[place:][:1] if place is not None and -len(value) <= place else ()
    elif hasattr(value, step):
        yield getattr(value, step)


def opened(value: Any, step: str) -> Any:
    """The value as the step needs it: a string of JSON read, an answer as its status, headers and body."""
    if step == "json()":
        return orjson.loads(value)
    return _described(value) if isinstance(value, web.Response) and not step.startswith("[") else value


def _described(answer: web.Response) -> dict[str, Any]:
    body: Any = answer.body if isinstance(answer.body, bytes) else b""
    is_json = answer.content_type == "application/json" and body
    parts = {"body": orjson.loads(body)} if is_json else {"text": body.decode(errors="replace")}
    return {"status": answer.status, "content_type": answer.content_type, "headers": dict(answer.headers), **parts}


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and not isinstance(value, web.BaseRequest)


def _number(step: str) -> int | None:
    return int(step) if step.lstrip("-").isdigit() else None


def _is_selected(item: Any, step: str) -> bool:
    path, _, wanted = step[1:-1].partition("=")
    return any(same(found, yaml.safe_load(wanted)) for found in find(item, parse_path(path)))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of one type: 1 is not 1.0, and not true."""
    return type(one) is type(other) and bool(one == other)


# -- writing -----------------------------------------------------------------------------------------------------------

Change = Callable[[Any], Any]


def changed(value: Any, steps: Steps, change: Change) -> Any:
    """The value with what the steps lead to changed. JSON is copied, objects that can be changed are changed."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if step == "json()":
        return orjson.dumps(changed(orjson.loads(value), rest, change)).decode()
    if isinstance(value, web.Response):
        return shaped(changed(_described(value), steps, change), web.Response)
    if isinstance(value, list | tuple):
        places = [place for place, item in enumerate(value) if _is_meant(step, place, item, len(value))]
        items = {place: changed(value[place], rest, change) for place in places}
        kept = [items.get(place, item) for place, item in enumerate(value)]
        return type(value)(item for item in kept if item is not MISSING)
    if step.startswith("["):
        return changed(value, rest, change) if _is_selected(value, step) else value
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, web.Request) and rest:
        return _asked(value, step, changed(dict(getattr(value, step)), rest, change))
    return _with_member(value, step, rest, change)


def _is_meant(step: str, place: int, item: Any, size: int) -> bool:
    return step == "*" or (_is_selected(item, step) if step.startswith("[") else _number(step) in (place, place - size))


def _asked(request: web.Request, part: str, members: dict[str, str]) -> web.Request:
    """The request with another query or other headers."""
    if part == "headers":
        return request.clone(headers=members)
    return request.clone(rel_url=request.rel_url.with_query(members))


def _with_member(value: Any, name: str, rest: Steps, change: Change) -> Any:
    is_mapping = isinstance(value, Mapping)
    names = list(value) if is_mapping and name == "*" else [name]
    for each in names:
        old = value.get(each, MISSING) if is_mapping else getattr(value, each, MISSING)
        if rest and old is MISSING:
            continue
        new = changed(old, rest, change)
        if is_mapping:
            kept = {key: item for key, item in value.items() if key != each or new is not MISSING}
            value = kept if new is MISSING else kept | {each: new}
        elif _is_frozen(value):
            value = replace(value, **{each: new})
        else:
            setattr(value, each, new)
    return value


def _is_frozen(value: Any) -> bool:
    return is_dataclass(value) and bool(getattr(value, "__dataclass_params__").frozen)  # noqa: B009 - mypy has no name for it


def shaped(value: Any, kind: Any) -> Any:
    """A value of YAML as the type that the server works with: bytes, a tuple, a set, a dataclass, an answer."""
    kind = get_origin(kind) or kind
    if kind is Any or not isinstance(kind, type) or isinstance(value, kind):
        return value
    if issubclass(kind, web.StreamResponse) and isinstance(value, dict):
        return _answer(dict(value))
    if kind is bytes and isinstance(value, str):
        return value.encode()
    if kind in (tuple, set) and isinstance(value, list):
        return kind(value)
    return kind(**value) if is_dataclass(kind) and isinstance(value, dict) else value


def _answer(parts: dict[str, Any]) -> web.Response:
    if "body" in parts:
        parts |= {"body": orjson.dumps(parts["body"]), "content_type": parts.get("content_type", "application/json")}
    headers = {name: text for name, text in (parts.pop("headers", None) or {}).items() if name != "Content-Type"}
    parts["headers"] = {name: text for name, text in headers.items() if name != "Content-Length"}
    return web.Response(**parts)


# -- conditions and references -----------------------------------------------------------------------------------------

IS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "present": lambda value: value is not MISSING,
        "absent": lambda value: value is MISSING,
        "filled": lambda value: value is not MISSING and bool(value),
        "empty": lambda value: value is MISSING or not value,
        "text": lambda value: isinstance(value, str),
        "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
        "list": lambda value: isinstance(value, list | tuple),
        "object": lambda value: isinstance(value, dict),
    }
)
TESTS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "is": lambda value, wanted: IS[wanted](value),
        "in": lambda value, wanted: any(same(value, item) for item in wanted),
        "has": lambda value, wanted: value is not MISSING and value is not None and wanted in value,
        "starts": lambda value, wanted: (
            isinstance(value, str | bytes) and value.startswith(shaped(wanted, type(value)))
        ),
        "ends": lambda value, wanted: isinstance(value, str | bytes) and value.endswith(shaped(wanted, type(value))),
        "matches": lambda value, wanted: isinstance(value, str) and re.fullmatch(wanted, value) is not None,
        "over": lambda value, wanted: _size(value) > wanted,
        "under": lambda value, wanted: _size(value) < wanted,
    }
)


def _size(value: Any) -> float:
    return len(value) if hasattr(value, "__len__") else float(value)


def holds(wanted: Any, found: Sequence[Any], scope: Scope) -> bool:
    """Whether something of what was found is what is wanted: a value, {test: value} of TESTS, or {not: either}."""
    candidates = found or [MISSING]
    name, argument = next(iter(wanted.items())) if isinstance(wanted, dict) and len(wanted) == 1 else ("", None)
    if name == "not":
        return not holds(argument, found, scope)
    if test := TESTS.get(name):
        return any(test(value, resolved(argument, scope)) for value in candidates)
    return any(same(value, resolved(wanted, scope)) for value in candidates)


def resolved(value: Any, scope: Scope) -> Any:
    """The value with `$name.path` and `{$name.path}` in texts replaced by what the scope has there."""
    if isinstance(value, dict):
        members = {name: resolved(item, scope) for name, item in value.items()}
        return {name: item for name, item in members.items() if item is not MISSING}
    if isinstance(value, list):
        return [item for item in (resolved(item, scope) for item in value) if item is not MISSING]
    if not isinstance(value, str) or "$" not in value:
        return value
    if match := REFERENCE.fullmatch(value):
        return _referred(match[1], scope)
    return IN_TEXT.sub(lambda match: str(_referred(match[1], scope)), value)


def _referred(path: str, scope: Scope) -> Any:
    return uuid4().hex if path == FRESH else first(scope, parse_path(path))


def references(value: Any) -> Iterator[str]:
    """The names that a value refers to; of a text that begins with `$` and is no reference, the whole text."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from references(item)
    elif isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole is None and value.startswith("$"):
            yield value
        for path in [whole[1]] if whole else IN_TEXT.findall(value):
            yield path.partition(".")[0]


# -- functions ---------------------------------------------------------------------------------------------------------


FUNCTIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "upper": lambda value: value.upper(),
        "strip": lambda value: value.strip(),
        "rstrip": lambda value: value.rstrip(),
        "last_first": lambda value: value[-1:] + value[:-1],
        "reverse": lambda value: value[::-1],
        "string": str,
        "json": lambda value: orjson.dumps(value).decode(),
        "number": int,
        "text": text_of,
        "blocks": as_blocks,
        "without_nulls": without_nulls,
        "keys": list,
        "values": lambda value: list(value.values()),
    }
)
FUNCTIONS_WITH: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "plus": lambda value, other: value + shaped(other, type(value)),
        "after": lambda value, other: shaped(other, type(value)) + value,
        "times": lambda value, other: value * other,
        "over": lambda value, other: value // other,
        "first": lambda value, count: value[:count],
        "last": lambda value, count: value[-count:],
        "from": lambda value, count: value[count:],
        "without_prefix": lambda value, prefix: value.removeprefix(shaped(prefix, type(value))),
        "without_suffix": lambda value, suffix: value.removesuffix(shaped(suffix, type(value))),
        "without_lines": lambda value, prefix: b"".join(
            line for line in value.splitlines(keepends=True) if not line.startswith(prefix.encode())
        ),
        "up_to": lambda value, mark: value.partition(shaped(mark, type(value)))[0],
        "slice": lambda value, bounds: value[slice(*bounds)],
        "at_least": max,
        "sub": lambda value, pair: re.sub(pair[0], pair[1], value),
        "replace": lambda value, pair: value.replace(*(shaped(part, type(value)) for part in pair)),
        "lookup": lambda value, table: table.get(value, value),
        "or": lambda value, other: value or other,
        "and": lambda value, other: value and other,
        "wrap": lambda value, name: {name: value},
        "unwrap": lambda value, path: first(value, parse_path(path)),
        "merge": lambda value, other: {**value, **other},
        "below": lambda value, other: {**other, **value},
    }
)


def applied(function: Any, scope: Scope, value: Any) -> Any:
    """A function of FUNCTIONS by its name, or one of FUNCTIONS_WITH as {name: argument}; nothing stays nothing."""
    if value is MISSING:
        return value
    if isinstance(function, str):
        return FUNCTIONS[function](value)
    ((name, argument),) = function.items()
    return FUNCTIONS_WITH[name](value, resolved(argument, scope))
