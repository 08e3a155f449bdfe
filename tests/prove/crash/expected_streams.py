"""What the log tells a reader of each dialect: its records through the dialect's own projector, for the judge."""

from collections.abc import Iterator, Sequence

import gateway.model as m
from gateway.ports import Frames, StreamOptions
from tests.support.dialect_parts import part
from tests.support.dialect_tables import dialect, table


def expected_stream(records: Sequence[m.Record], stream: str) -> list[str]:
    """What a stream of this name tells; the first word is the dialect, and those that follow say which turn of it."""
    name, *words = stream.split()
    if not records:
        return []
    view = m.fold(records[0].session_id, records)
    lines: list[str] = part(name, "crash_client").expected_lines(records, view, *words)
    return lines


def projected_frames(
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


def start_of(records: Sequence[m.Record], turn_id: str) -> int | None:
    """The number of the record before the first of the turn."""
    return next((r.seq - 1 for r in records if r.turn_id == turn_id and isinstance(r.event, m.TurnStarted)), None)
