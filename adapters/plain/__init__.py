"""A dialect without code of its own: its table says its routes, its messages, its bodies and its frames."""

from functools import partial
from pathlib import Path

import orjson

from gateway.json_values import JsonValue
from gateway.ports import Dialect, Framing
from mappings.language import PlainTable, read_plain_table

from .inbound import recorded_commands
from .projector import PlainProjector, make_projector
from .routes import PlainSettings, routes

__all__ = ["PlainProjector", "plain_dialect"]


def plain_dialect(path: Path) -> Dialect:
    """The dialect of the table in this file; mistakes of the table are reported when it is loaded."""
    table = read_plain_table(path)
    name = path.stem
    framing: Framing = "json" if table.shape.transport == "websocket" else "sse"
    return Dialect(
        name=name,
        mount=f"/{name}" if table.shape.mount is None else table.shape.mount,
        projector=partial(make_projector, framing),
        routes=partial(routes, table),
        settings=PlainSettings,
        examples=partial(_examples, table),
        framings=(framing,),
        replay_from="turn",
        messages=table.messages,
        objects=table.objects,
        recorded_commands=partial(recorded_commands, table.routes),
    )


def _examples(table: PlainTable, address: str, agent: str, key: str) -> list[str]:
    """Lines that can be pasted, in this order: one makes a session, the other talks in it."""
    made = next(((route, action) for route in table.routes for action in route.actions
                 if action.session == "create" and not action.input), None)
    said = next(((route, action) for route in table.routes for action in route.actions
                 if action.input and action.stream and route.method != "GET"), None)
    lines: list[str] = []
    if made is not None:
        call = f"curl -s{key} -X {made[0].method} {address}{made[0].path} -d '{{}}'"
        lines.append(f"S=$({call} | cut -d'\"' -f4); echo $S" if _shows_id_first(table, made[1].object) else call)
    if said is not None:
        body = orjson.dumps(_sample(table.shape.inputs[said[1].input[0]].wire)).decode()
        path = said[0].path.replace("{session}", "$S")
        lines.append(f"curl -sN{key} -X {said[0].method} {address}{path} -d '{body}'")
    return lines


def _shows_id_first(table: PlainTable, row: str | None) -> bool:
    shown = table.shape.objects.get(row) if row is not None else None
    return isinstance(shown, dict) and next(iter(shown.values()), None) == "$session_id"


def _sample(wire: JsonValue) -> JsonValue:
    """A message that says hello: its text instead of what the template binds, and nothing that may be left out."""
    if isinstance(wire, dict):
        return {key: _sample(value) for key, value in wire.items() if "| optional" not in str(value)}
    if isinstance(wire, list):
        return [_sample(value) for value in wire]
    return "hello" if isinstance(wire, str) and wire.startswith("$") else wire
