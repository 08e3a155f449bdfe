"""An agent that says nothing, notices in its place, logs that take their time, and what somebody who watches reads."""

import asyncio
from collections.abc import AsyncGenerator, Container, Sequence

import gateway.model as m
from gateway.engine import Cursor, Session
from gateway.errors import GatewayError
from gateway.ports import BackendEvent, LogListener, Turn
from gateway.storage.log import MemoryLog


async def silent(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    return
    yield


def post(session: Session, count: int = 1) -> None:
    for _ in range(count):
        session.append(m.NoticePosted(topic="t", title="x"))


async def read(cursor: Cursor) -> list[int]:
    """The numbers of the records in what is ready now."""
    async with asyncio.timeout(30):
        return [int(frame.body.split()[0]) for chunk in await cursor.chunks() for frame in chunk.frames]


class SlowLog(MemoryLog):
    """A log that tells of what it has only later, while it is `quiet`, and is read slowly, where it is `slow`."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet = self.slow = False
        self.may_read = asyncio.Event()
        self._untold: list[m.Record] = []

    def attach(self, listener: LogListener) -> None:
        super().attach(self)
        self._told = listener

    def committed(self, records: Sequence[m.Record]) -> None:
        self._untold.extend(records)
        if not self.quiet:
            self.tell()

    def failed(self, error: GatewayError, sessions: Container[str] | None = None) -> None:
        self._told.failed(error, sessions)

    def tell(self) -> None:
        self.quiet = False
        records, self._untold = self._untold, []
        self._told.committed(records)

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        if self.slow:
            await self.may_read.wait()
        return await super().read(session_id, after, limit)
