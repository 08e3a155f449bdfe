"""A dialect without code of its own: its table says its routes, its messages, its bodies and its frames."""

from functools import partial
from pathlib import Path

import orjson

import gateway.model as m
from gateway.json_values import JsonValue
from gateway.ports import NO_FRAMES, Dialect, DialectTable, Frame, Frames, Framing, Projector, StreamOptions
from mappings.language import PlainTable, ProjectorBase, SupportLevel, read_plain_table

from .inbound import recorded_commands
from .routes import PlainSettings, routes

__all__ = ["PlainProjector", "plain_dialect"]
UNSUPPORTED = (SupportLevel.DROPPED, SupportLevel.REJECTED)


def make_projector(framing: Framing, table: DialectTable, options: StreamOptions) -> Projector:
    return PlainProjector(table, framing)


class PlainProjector(ProjectorBase):
    """Writes each record as the table spells it; of sub-agents only if the table says that it carries them."""

    def __init__(self, table: DialectTable, framing: Framing) -> None:
        self._encoder = table.encoder(framing)
        self._has_ids = framing == "sse"
        self._tells_scopes = table.support["subagents"] not in UNSUPPORTED

    def feed(self, record: m.Record) -> Frames:
        if record.scope_id != m.ROOT and not self._tells_scopes:
            return NO_FRAMES
        frames = self._encoder.record(record, None, record.seq)
        return self._with_ids(frames, record.seq) if frames and self._has_ids else frames

    def _with_ids(self, frames: Frames, seq: int) -> Frames:
        """Each event gets an id: the number of its record; before the last event of a record, also its own number."""
        if len(frames) == 1:
            return (_with_id(frames[0], str(seq)),)
        last = len(frames)
        return tuple([_with_id(frame, str(seq) if number == last else f"{seq}.{number}")
                      for number, frame in enumerate(frames, 1)])


def _with_id(frame: Frame, cursor: str) -> Frame:
    return Frame(b"id: %s\n" % cursor.encode() + frame.body, frame.name, cursor)


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
    found = next(((route, action) for route in table.routes for action in route.actions
                 if action.input and action.stream and route.method != "GET"), None)
    lines: list[str] = []
    if made is not None:
        call = f"curl -s{key} -X {made[0].method} {address}{made[0].path} -d '{{}}'"
        lines.append(f"S=$({call} | cut -d'\"' -f4); echo $S" if _shows_id_first(table, made[1].object) else call)
    if found is not None:
        body = orjson.dumps(_sample(table.shape.inputs[found[1].input[0]].wire)).decode()
        path = found[0].path.replace("{session}", "$S")
        lines.append(f"curl -sN{key} -X {found[0].method} {address}{path} -d '{body}'")
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
