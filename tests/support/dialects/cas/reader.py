"""A CAS client's ears, written from the protocol alone; and a session read from a log that no engine wrote."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import orjson

import gateway.model as m
from adapters.cas.server.history import EventHistory
from adapters.cas.server.stream_options import StreamOptions
from gateway.engine import Hub
from gateway.ports import Chunk
from gateway.storage.log import MemoryLog
from tests.support.dialect_tables import dialect, table
from tests.support.engine.engine_fixture import CountingMetrics, Streams

PASSING = ("event_start", "event_delta", "agent.message_start", "agent.message_delta", "agent.message_stop",
           "agent.content_block_start", "agent.content_block_delta", "agent.content_block_stop")
"""Frames that are never kept."""


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    id: str
    type: str
    body: dict[str, Any]

    @property
    def is_kept(self) -> bool:
        return self.type not in PASSING

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.body["content"])


def read_stream(stream: bytes) -> list[Frame]:
    """The frames of a stream; each has its three lines, and its data repeat the other two."""
    found = [_frame(block) for block in stream.decode().split("\n\n")]
    return [frame for frame in found if frame is not None]


@lru_cache(maxsize=4096)
def _frame(block: str) -> Frame | None:
    """Read once, however often a stream is read again from another place."""
    lines = [line for line in block.split("\n") if line and not line.startswith(":")]
    if not lines:
        return None
    assert [line.split(": ")[0] for line in lines] == ["id", "event", "data"], lines
    fields = dict(line.split(": ", 1) for line in lines)
    body = orjson.loads(fields["data"])
    assert (body["id"], body["type"]) == (fields["id"], fields["event"])
    return Frame(fields["id"], fields["event"], body)


def kept(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    return [frame.body for frame in frames if frame.is_kept]


class StoredSession:
    """A log with one session in it, and the hub that reads it: what a handler would be given, without the engine."""

    def __init__(self, records: Sequence[m.Record]) -> None:
        self.log = MemoryLog()
        for record in records:
            self.log.append(record)
        self.view: m.SessionView = m.fold(records[0].session_id, records)
        cas = dialect("cas")
        self.hub = Hub(
            log=self.log, sessions=self, streams=Streams(lambda name, options: cas.projector(table("cas"), options),
            of_turns=["cas"]), clock=lambda: 0.0, observer=CountingMetrics(), max_lag=lambda: 10**6,
        )

    def is_idle(self, session_id: str) -> bool:
        return True

    def has_unstored_records(self, session_id: str) -> bool:
        return False

    def turn_start(self, session_id: str, cursor: int) -> int:
        return self.view.turn_start(cursor)

    async def read(
        self, owner: str, session_id: str, name: str, options: StreamOptions, *, after: int = 0,
        upto: int | None = None,
    ) -> AsyncIterator[Chunk]:
        return self.hub.read(session_id, name, options, after, self.view.head if upto is None else upto)

    async def records(
        self, owner: str, session_id: str, after: int = 0, limit: int | None = None
    ) -> Sequence[m.Record]:
        return await self.log.read(session_id, after, limit)

    def history(self, reading: StreamOptions) -> EventHistory:
        house: Any = SimpleNamespace(sessions=self, dialect="cas")
        return EventHistory(house, "", self.view, reading)

    async def stream(self, reading: StreamOptions, after: int = 0) -> list[Frame]:
        chunks = [chunk async for chunk in await self.read("", self.view.session_id, "cas", reading, after=after)]
        return read_stream(b"".join(frame.body for chunk in chunks for frame in chunk.frames))

    async def listed(self, reading: StreamOptions, **window: Any) -> list[dict[str, Any]]:
        window = {"after": None, "before": None, "limit": 10**6, "oldest_first": True, **window}
        return [orjson.loads(told.body) for told in await self.history(reading).fetch(**window)]
