"""What the log tells a reader of each dialect: its records through the dialect's own projector, for the judge."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

import gateway.model as m
from adapters.cas.server.stream_options import session_stream_options
from adapters.zenflux.server.stream_options import socket_options
from gateway.http import split_frame
from tests.support.dialect_tables import dialect, table


def expected_stream(records: Sequence[m.Record], stream: str) -> list[str]:
    """What a stream of this name tells; the first word is the dialect, and those that follow say which turn of it."""
    name, *words = stream.split()
    if not records:
        return []
    return TELLINGS[name](records, m.fold(records[0].session_id, records), *words)


def _frames(
    name: str, options: str, records: Sequence[m.Record], after: int = 0,
) -> Iterator[tuple[m.Record, tuple[bytes, ...]]]:
    """Each record with its frames; a dialect that needs no more than the turn is fed from its start."""
    its = dialect(name)
    settings: Any = its.projector(table(name), options)
    for record in records:
        if its.replay_from == "turn" and record.seq <= after:
            continue
        frames = settings.feed(record)
        if record.seq > after:
            yield record, frames


def _cas(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    reading = session_stream_options(view, None, as_list=False)
    return [frame.decode().strip() for _, frames in _frames("cas", reading.word, records) for frame in frames]


def _blade(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    return [blade_thing(*_parted(frame)) for _, frames in _frames("blade", "", records) for frame in frames]


def _parted(frame: bytes) -> tuple[str, Any]:
    name, payload = split_frame(frame)
    return name, orjson.loads(payload)


def blade_thing(name: str, payload: Any) -> str:
    return f"{name} {json.dumps(payload, sort_keys=True)}"


def _zenflux(records: Sequence[m.Record], view: m.SessionView, turn_id: str) -> list[str]:
    begins = _begins(records, turn_id)
    if begins is None:
        return []
    options = socket_options(dialect("zenflux").settings(), view)  # type: ignore[misc, arg-type]
    told: list[str] = []
    for record, frames in _frames("zenflux", options, records, begins):
        told += [frame.decode() for frame in frames]
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
    for record, frames in _frames("aap", "delta", records, begins):
        pieces[-1] += [frame.decode().strip() for frame in frames]
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
