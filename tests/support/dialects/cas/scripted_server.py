"""A server of CAS that is not ours: it says what a test has written, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import orjson

import gateway.model as m
from adapters.cas.client.remote import Remote
from gateway.ports.remote import DecodedItem, RemoteAddress, RemoteAsk, Timeouts
from tests.support.client import byte_server as wire
from tests.support.dialects.cas.facts import CheckedDecoder

ACCEPTED = orjson.dumps({"data": [{"id": "e0", "type": "user.message", "turn_id": "t1"}]})
NOTHING = wire.says(b'{"type":"error","error":{"type":"not_found_error","message":"Nothing is here."}}', 404)
ONCE = Timeouts(connect=20, first_byte=30, idle=30, attempts=1)


def event(type: str, id: str = "", **fields: Any) -> bytes:
    """One event as it goes over the wire."""
    lead = f"id: {id}\n" if id else ""
    body = orjson.dumps({"type": type, **({"id": id} if id else {}), **fields}).decode()
    return f"{lead}event: {type}\ndata: {body}\n\n".encode()


def text(words: str, id: str) -> bytes:
    return event("agent.message", id, content=[{"type": "text", "text": words}])


def idle(id: str = "e99", why: str = "end_turn", usage: Any = None, **more: Any) -> bytes:
    return event("session.status_idle", id, stop_reason={"type": why, **more}, usage=usage)


class ScriptedServer:
    """Answers by path: each path has its answers in turn, the last over and over."""

    def __init__(self, **answers: Sequence[wire.Answer]) -> None:
        self.answers = {name: list(some) for name, some in {"sent": [wire.says(ACCEPTED, 202)], **answers}.items()}
        self.server = wire.Server()

    async def answer(self, writer: asyncio.StreamWriter, asked: wire.ReceivedRequest) -> None:
        left = self.answers.get(_name(asked), [NOTHING])
        await (left.pop(0) if len(left) > 1 else left[0])(writer, asked)

    def asked(self, name: str) -> list[wire.ReceivedRequest]:
        return [one for one in self.server.asked if _name(one) == name]


def _name(asked: wire.ReceivedRequest) -> str:
    path = asked.path.partition("?")[0]
    if path.endswith("/events/stream"):
        return "stream"
    if path.endswith("/events"):
        return "sent" if asked.method == "POST" else "thread" if "/threads/" in path else "events"
    return f"{asked.method.lower()}_{path.rpartition('/')[2]}"


@asynccontextmanager
async def scripted_server(
    stranger: ScriptedServer, patience: Timeouts = ONCE, **address: Any,
) -> AsyncIterator[Remote]:
    async with wire.serving(stranger.answer) as stranger.server:
        remote = Remote(RemoteAddress(url=stranger.server.url, patience=patience, **address))
        try:
            yield remote
        finally:
            await remote.close()


async def heard(remote: Remote, witness: CheckedDecoder, session: str = "s1") -> list[DecodedItem]:
    """One message and all that is heard of it; the witness has what was heard before a failure."""
    said: list[DecodedItem] = []
    async with asyncio.timeout(40), aclosing(remote.start_turn(session, m.SendMessage(content="hello"))) as stream:
        async for one in stream:
            said.append(one)
            if not isinstance(one, RemoteAsk):
                witness.hear([one])
    return said
