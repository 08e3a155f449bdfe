"""The ways to say something in Blade that wait for a place on a stream."""

import asyncio
from typing import Any

from tests.support.dialects.blade.client import connect
from tests.support.gateway_server import Served
from tests.support.refused_messages import FULL, OK, UNCERTAIN, post


async def post_message(served: Served, session: str, words: str) -> str:
    return await post(served, f"/api/sessions/{session}/chat", {"message": words})


async def post_compact(served: Served, session: str, words: str) -> str:
    return await post(served, f"/api/sessions/{session}/compact", {})


async def send(served: Served, session: str, words: str) -> str:
    """A client that is disconnected before it is told anything knows nothing."""
    async with connect(served) as talker:
        gone = asyncio.Event()
        talker.sio.on("disconnect", lambda *_: gone.set())
        sending, leaving = asyncio.create_task(talker.send(session, words)), asyncio.create_task(gone.wait())
        done, late = await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        return _acknowledged(sending.result()) if sending in done else UNCERTAIN


async def send_compact(served: Served, session: str, words: str) -> str:
    async with connect(served) as talker:
        return _acknowledged(await talker.sio.call("chat:compact", {"session_id": session}, timeout=60))


def _acknowledged(ack: Any) -> str:
    return {"overloaded": FULL, "timeout": UNCERTAIN, None: OK}.get(ack.get("code"), str(ack))


WAYS = {
    "blade": post_message,
    "blade compact": post_compact,
    "blade socket": send,
    "blade socket compact": send_compact,
}
AT_ONCE = ("blade",)
"""Those whose answer comes when the turn is over."""
