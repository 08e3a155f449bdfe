"""The routes of a plain dialect: which requests there are, what they do, and which names their bodies may use.

A dialect is plain if its table says all of it: `transport`, `routes`, and rows for what is sent either way.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gateway.json_values import JsonObject, JsonValue
from gateway.yaml_positions import read_yaml, suggest

from .expressions import Node, Object, Slot, nested_row, slots
from .parsed_table import ParsedTable, ProblemCollector, parse_table
from .shape import RouteShape, TableShape, shape_table
from .value_types import parse_type

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SESSION = "session"
"""The part of a path that names a session: `/talks/{session}`."""
ROUTE_PATTERN = rf"({'|'.join(METHODS)}) (/\S*)"
_ROUTE = re.compile(ROUTE_PATTERN)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

TOOL_NAMES = ("name", "title", "description", "parameters")
AGENT_NAMES = ("name", "title", "description", "version", "model", "tools")
MESSAGE_NAMES = ("role", "content", "text", "at", "message_id", "turn_id", "call_id", "is_error", "model")
SESSION_NAMES = (
    "session_id", "agent", "title", "status", "created_at", "updated_at", "metadata", "options", "client_tools",
    "permissions", "turn_id", "messages", "answers", "text", "stop_reason",
)
SEED_NAMES = ("role", "content", "call_id")
PERMISSION_NAMES = ("name", "permission", "trust")
ITEMS: Mapping[str, tuple[str, ...]] = {
    "agents": AGENT_NAMES, "answers": MESSAGE_NAMES, "client_tools": TOOL_NAMES, "history": SEED_NAMES,
    "messages": MESSAGE_NAMES, "permissions": PERMISSION_NAMES, "sessions": SESSION_NAMES, "tools": TOOL_NAMES,
}
"""The names of the items of a list, by the name of the list: for rows that `each` names."""
PAGE_NAMES = ("sessions", "next")
OF_CREATION = ("agent", "title", "metadata", "options", "client_tools", "permissions", "history")
OF_QUERY = ("limit", "after")


@dataclass(frozen=True)
class Route:
    """A request: its method, its path below the mount, and what it does, or the several things that it may do."""

    key: str
    method: str
    path: str
    actions: tuple[RouteShape, ...]

    @property
    def has_session(self) -> bool:
        return SESSION in _PLACEHOLDER.findall(self.path)


class PlainTable(NamedTuple):
    """What a table says of itself before it is loaded: enough to make a dialect of it."""

    shape: TableShape
    routes: tuple[Route, ...]
    messages: tuple[str, ...]
    objects: Mapping[str, tuple[str, ...]]


def read_plain_table(path: Path) -> PlainTable:
    """The table in this file; mistakes are left to `load_table`, which reports them."""
    document = read_yaml(path)
    shaped = shape_table(document)
    draft = parse_table(shaped, ProblemCollector(document))
    routes = tuple(parse_routes(shaped.table))
    messages = dict.fromkeys(name for route in routes for action in route.actions for name in action.input)
    return PlainTable(shaped.table, routes, tuple(messages), _object_names(draft, routes))


def parse_routes(shape: TableShape) -> Iterator[Route]:
    """The routes whose keys can be read."""
    for key, actions in shape.routes.items():
        if found := _ROUTE.fullmatch(key):
            yield Route(key, found[1], found[2], tuple(actions))


# -- names ------------------------------------------------------------------------------------------------------------

def names_shown(route: Route, action: RouteShape) -> tuple[str, ...]:
    """The names that the answer to a request may use."""
    if action.session == "list":
        return PAGE_NAMES
    return (*SESSION_NAMES, "agents") if route.has_session or action.session == "create" else ("agents",)


def _object_names(draft: ParsedTable, routes: Iterable[Route]) -> dict[str, tuple[str, ...]]:
    """For each row that a route uses, those of its names that are bound wherever it is used."""
    known: dict[str, set[str]] = {}

    def use(row: str | None, names: Iterable[str]) -> None:
        node = draft.objects.get(row) if row is not None else None
        if row is None or node is None:
            return
        before = known.get(row)
        known[row] = set(names) if before is None else before & set(names)
        if known[row] == before:
            return
        for slot, _ in slots(node):
            for inner in filter(None, map(nested_row, slot.filters)):
                use(inner[1], ITEMS.get(slot.name, (name.name for name, _ in slots(draft.objects[inner[1]])))
                    if inner[1] in draft.objects else ())

    for route in routes:
        for action in route.actions:
            use(action.object, names_shown(route, action))
            use(action.body, OF_CREATION)
            use(action.query, OF_QUERY)
            use(action.ping, ())
    return {row: tuple(dict.fromkeys(slot.name for slot, _ in slots(draft.objects[row]) if slot.name in names))
            for row, names in known.items()}


# -- values of a query ------------------------------------------------------------------------------------------------

def query_values(row: str, node: Node, types: Mapping[str, object], query: Mapping[str, str]) -> JsonObject:
    """The texts of a query as values of the types that the row's names have; what does not fit stays a text."""
    own = types.get(row)
    declared = {**types, **(own if isinstance(own, dict) else {})}
    kinds = {key: declared.get(str(child).removeprefix("$")) for key, child in
             (node.items if isinstance(node, Object) else ()) if isinstance(child, Slot)}
    return {key: _converted(text, kinds.get(key)) for key, text in query.items()}


def _converted(text: str, spelled: object) -> JsonValue:
    kind = parse_type(spelled) if isinstance(spelled, str) else None
    name = kind.name if kind else ""
    if name == "bool":
        return {"true": True, "false": False}.get(text, text)
    if name in ("int", "number") and re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if name == "number" and re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text):
        return float(text)
    return text


# -- mistakes ---------------------------------------------------------------------------------------------------------

def check_routes(draft: ParsedTable, name: str, findings: ProblemCollector) -> None:
    """Add what is wrong with the routes; `name` is that of the table's file, by which its dialect is found."""
    shape = draft.shape
    if shape.routes and shape.dialect not in (name, *draft.broken):
        findings.add(("dialect",), f"the dialect '{shape.dialect}' is in a file called '{name}.yaml'",
                     "a dialect without code is found by the name of its file")
    if shape.routes and shape.transport is None:
        findings.add(("routes",), "a table with routes says its transport", "transport: sse, websocket or rest+sse",
                     key=True)
    if shape.transport is not None and not shape.routes:
        findings.add(("transport",), "a table with a transport has routes", key=True)
    routes = {route.key: route for route in parse_routes(shape)}
    places: dict[tuple[str, str], str] = {}
    for key in shape.routes:
        if key not in routes:
            hint = f"a route is a method ({', '.join(METHODS)}) and a path: 'POST /talks/{{session}}/lines'"
            findings.add(("routes", key), f"'{key}' is no route", hint, key=True)
            continue
        route = routes[key]
        place = route.method, _PLACEHOLDER.sub("{}", route.path)
        if place in places:
            findings.add(("routes", key), f"'{key}' and '{places[place]}' are the same request", key=True)
        places.setdefault(place, key)
        _check_route(route, draft, findings)


def _check_route(route: Route, draft: ParsedTable, findings: ProblemCollector) -> None:
    at = ("routes", route.key)
    for name in _PLACEHOLDER.findall(route.path):
        if name != SESSION:
            findings.add(at, f"nobody knows '{{{name}}}' of '{route.key}'", "a path may name {session}", key=True)
    if len(route.actions) > 1 and not all(action.input for action in route.actions):
        findings.add(at, "of several things that a request may do, each must have an input of its own")
    for index, action in enumerate(route.actions):
        here = at if len(route.actions) == 1 else (*at, index)
        for message, what in _mistakes(route, action, draft):
            findings.add((*here, what) if what else here, *message.split("; ", 1), key=not what)


def _mistakes(route: Route, action: RouteShape, draft: ParsedTable) -> Iterator[tuple[str, str]]:
    """The problem, and the key of the route that has it."""
    for key, row in (("object", action.object), ("body", action.body), ("query", action.query), ("ping", action.ping)):
        if row is not None and row not in draft.objects and "objects" not in draft.broken:
            yield f"there is no object '{row}'; {suggest(row, draft.objects)}".removesuffix("; "), key
    for name in action.input:
        if name not in draft.inputs and "inputs" not in draft.broken:
            yield f"there is no input '{name}'; {suggest(name, draft.inputs)}".removesuffix("; "), "input"
        elif name in draft.inputs and draft.inputs[name].given.items:
            yield f"'{name}' has no 'wire', and there is no code that gives its fields", "input"
        elif name in draft.inputs and draft.inputs[name].wire is None and len(action.input) > 1:
            yield f"'{name}' has no 'wire', so that it cannot be distinguished from others", "input"
    needs_session = action.session in ("get", "delete") or ((action.input or action.stream) and action.session is None)
    if needs_session and not route.has_session:
        yield "it is about a session, and its path names none; write '{session}' into the path", ""
    if action.session in ("create", "list") and route.has_session:
        yield f"'{action.session}' is about no session that is there already; leave '{{session}}' out", "session"
    if action.session in ("list", "get", "delete") and (action.input or action.stream):
        yield f"'{action.session}' takes no input and has no stream", "session"
    if action.session in ("list", "get") and action.object is None:
        yield f"'{action.session}' needs an object to answer with", "session"
    if action.body is not None and action.session != "create":
        yield "only a request that creates a session reads a body; other bodies are inputs", "body"
    if action.query is not None and action.session != "list" and action.stream is None:
        yield "only a list and a stream read a query", "query"
    if action.stream is not None and action.object is not None:
        yield "the answer is a stream or an object, not both", "stream"
    if route.method == "GET" and action.input and draft.shape.transport != "websocket":
        yield "a GET has no body, so that it has no input", "input"
    if draft.shape.transport == "websocket" and action.stream is not None and route.method != "GET":
        yield "a WebSocket begins with a GET", "stream"
    if draft.shape.transport == "websocket" and action.stream == "turn":
        yield "a WebSocket is open beyond a turn; write 'session'", "stream"
    if not (action.session or action.input or action.stream or action.object):
        yield "it does nothing; it has session, input, stream or object", ""
