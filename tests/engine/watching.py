"""An agent that says nothing, notices in its place, and what somebody who watches reads of them."""

import asyncio
from collections.abc import AsyncGenerator

from gateway.engine import Cursor, Session
from gateway.model import NoticePosted
from gateway.ports import Said, Turn


async def silent(turn: Turn) -> AsyncGenerator[Said, None]:
    return
    yield


def post(session: Session, count: int = 1) -> None:
    for _ in range(count):
        session.say(NoticePosted(topic="t", title="x"))


async def read(cursor: Cursor) -> list[int]:
    """The numbers of the records in what is ready now."""
    async with asyncio.timeout(30):
        return [int(frame.split()[0]) for chunk in await cursor.chunks() for frame in chunk.frames]
