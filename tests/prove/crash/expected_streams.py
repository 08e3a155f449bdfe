"""What the log tells a reader of each dialect: its records through the dialect's own projector, for the judge."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

import gateway.model as m
from adapters.cas.server.stream_options import session_stream_options
from adapters.zenflux.server.stream_options import socket_options
from gateway.ports import Frames, StreamOptions
from tests.support.dialect_tables import dialect, table


def expected_stream(records: Sequence[m.Record], stream: str) -> list[str]:
    """What a stream of this name tells; the first word is the dialect, and those that follow say which turn of it."""
    name, *words = stream.split()
    if not records:
        return []
    return TELLINGS[name](records, m.fold(records[0].session_id, records), *words)


def _frames(
    name: str, options: StreamOptions, records: Sequence[m.Record], after: int = 0,
) -> Iterator[tuple[m.Record, Frames]]:
    """Each record with its frames; a dialect that needs no more than the turn is fed from its start."""
    its = dialect(name)
    projector = its.projector(table(name), options)
    for record in records:
        if its.replay_from == "turn" and record.seq <= after:
            continue
        frames = projector.feed(record)
        if record.seq > after:
            yield record, frames


def _cas(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    options = session_stream_options(view, None, as_list=False)
    return [frame.body.decode().strip() for _, frames in _frames("cas", options, records) for frame in frames]


def _blade(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    options = dialect("blade").default_options
    return [
        blade_thing(frame.name, orjson.loads(frame.body))
        for _, frames in _frames("blade", options, records) for frame in frames
    ]


def blade_thing(name: str, payload: Any) -> str:
    return f"{name} {json.dumps(payload, sort_keys=True)}"


def _zenflux(records: Sequence[m.Record], view: m.SessionView, turn_id: str) -> list[str]:
    begins = _begins(records, turn_id)
    if begins is None:
        return []
    options = socket_options(dialect("zenflux").settings(), view)  # type: ignore[misc, arg-type]
    told: list[str] = []
    for record, frames in _frames("zenflux", options, records, begins):
        told += [frame.body.decode() for frame in frames]
        if isinstance(record.event, m.TurnEnded):
            return told
    return told


def _aap(records: Sequence[m.Record], view: m.SessionView, mark: str, piece: str) -> list[str]:
    """A piece is what one request streams: up to where the turn yields, or from there to where it yields again."""
    turn_id = turn_of(records, mark)
    begins = _begins(records, turn_id) if turn_id else None
    if begins is None:
        return []
    pieces: list[list[str]] = [[]]
    for record, frames in _frames("aap", dialect("aap").default_options, records, begins):
        pieces[-1] += [frame.body.decode().strip() for frame in frames]
        if isinstance(record.event, m.TurnSuspended):
            pieces.append([])
        elif isinstance(record.event, m.TurnEnded):
            break
    return pieces[int(piece)] if int(piece) < len(pieces) else []


def turn_of(records: Sequence[m.Record], mark: str) -> str | None:
    """The turn of this id, or the one that a message with this word in it began."""
    for record in records:
        event = record.event
        if record.turn_id == mark:
            return mark
        if isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage) and mark in m.text_of(
            event.command.content,
        ).split():
            return record.turn_id
    return None


def _begins(records: Sequence[m.Record], turn_id: str) -> int | None:
    return next((r.seq - 1 for r in records if r.turn_id == turn_id and isinstance(r.event, m.TurnStarted)), None)


TELLINGS: dict[str, Callable[..., list[str]]] = {"cas": _cas, "blade": _blade, "zenflux": _zenflux, "aap": _aap}
