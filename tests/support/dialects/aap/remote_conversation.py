"""A server of AAP's spoken to by our own client: conversations that are answered as they should be, or refused."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson

import gateway.model as m
from adapters.aap.client.remote import Remote
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAddress, RemoteAsk, RemoteTurnEnd, Timeouts
from tests.support.client.byte_server import Answer as Served
from tests.support.client.byte_server import says, stream
from tests.support.dialects.aap.conversations import CheckingEngine

SETTINGS = m.Settings(
    tools={"clock": m.Permission.ALLOW, "search": m.Permission.ALLOW, "calc": m.Permission.ASK},
    client_tools=(m.ToolSpec(name="weather", title="Weather", description="Here.", parameters={"type": "object"}),),
)
QUICK = Timeouts(connect=10, first_byte=20, idle=20, total=40, attempts=3)


def answer_to(ask: m.AnyAsk, *, kindly: bool = True) -> m.Answer:
    if isinstance(ask, m.PermissionAsk):
        return m.DecidePermission(request_id="a", granted=kindly, reason=None if kindly else "not today")
    if isinstance(ask, m.ClientToolAsk):
        return m.ReturnResult(request_id="a", content="sunny" if kindly else "no sensor", is_error=not kindly)
    if isinstance(ask, m.QuestionAsk):
        picks = {str(number): (0,) for number in range(len(ask.questions))}
        return m.AnswerQuestion(request_id="a", selections=picks) if kindly else m.AnswerQuestion(
            request_id="a", custom=dict.fromkeys(picks, "neither"))
    if isinstance(ask, m.ContinuationAsk):
        return m.ContinueTurn(request_id="a", proceed=kindly)
    return m.RollBack(request_id="a", option="all" if kindly else None)


class RemoteConversation:
    """One session at a server, and what the house makes of it; every event is held to the laws."""

    def __init__(self, remote: Remote, session_id: str = "") -> None:
        self.remote, self.session_id, self.house = remote, session_id, CheckingEngine()
        self.heard: list[DecodedItem] = []
        self.asked: list[list[RemoteAsk]] = []

    async def say(self, words: str, *, kindly: bool = True, settings: m.Settings | None = None) -> RemoteTurnEnd:
        """The whole turn, with everything that it asks answered."""
        command = m.SendMessage(content=words)
        pending = await self.hear(self.remote.start_turn(self.session_id, command, settings))
        while pending:
            answers = [(asked, answer_to(asked.ask, kindly=kindly)) for asked in pending]
            pending = await self.hear(self.remote.answer(self.session_id, answers))
        assert isinstance(self.heard[-1], RemoteTurnEnd)
        return self.heard[-1]

    async def hear(self, heard: AsyncGenerator[DecodedItem, None]) -> list[RemoteAsk]:
        """One POST's worth."""
        self.house.start()
        taken = [one async for one in heard]
        self.heard += taken
        self.house.take(taken)
        self.asked.append([one for one in taken if isinstance(one, RemoteAsk)])
        return self.asked[-1]


@asynccontextmanager
async def spoken_to(
    url: str, *, key: str = "", agent: str | None = None, patience: Timeouts = QUICK, is_strict: bool = False,
) -> AsyncIterator[Remote]:
    remote = Remote(RemoteAddress(url=url, key=key, agent=agent, patience=patience, is_strict=is_strict))
    try:
        yield remote
    finally:
        await remote.close()


@asynccontextmanager
async def conversing(url: str, settings: m.Settings = SETTINGS, **words: Any) -> AsyncIterator[RemoteConversation]:
    async with spoken_to(url, **words) as remote:
        yield RemoteConversation(remote, await remote.open(NewRemoteSession(settings=settings)))


# -- servers made of bytes --------------------------------------------------------------------------------------------

META = says(orjson.dumps({"version": 3, "agents": [{
    "name": "stranger", "version": "1.0.0", "capabilities": {"stream": {"delta": {}}, "application": {"tools": {}}},
    "tools": [{"name": "clock", "description": "Time.", "parameters": {}}],
}]}))
MADE = says(b'{"sessionId": "s1"}', 201)


def event(name: str, /, **body: Any) -> bytes:
    return f"event: {name}\n".encode() + b"data: " + orjson.dumps(body) + b"\n\n"


START, STOP = event("turn_start"), event("turn_stop", stopReason="end_turn")


def turn(*said: bytes) -> Served:
    """A stream that is as it should be, but for what is said in it."""
    return stream(START, *said, STOP)


async def all_of(heard: AsyncGenerator[DecodedItem, None]) -> Sequence[DecodedItem]:
    return [one async for one in heard]


# -- lines that can be cut --------------------------------------------------------------------------------------------

class CuttingProxy:
    """Passes bytes on to a port; once `cut_after` is set, the next answer is cut after so many bytes, and that once."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, ""
        self.cut_after: int | None = None
        self.cuts = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, up = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers |= {writer, up}
        ways = [asyncio.ensure_future(self._up(reader, up)), asyncio.ensure_future(self._down(answers, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            up.close()
            writer.close()

    async def _up(self, reader: asyncio.StreamReader, up: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            up.write(said)

    async def _down(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await answers.read(65536):
            if self.cut_after is not None and len(said) >= self.cut_after:
                writer.write(said[:self.cut_after])
                self.cut_after, self.cuts = None, self.cuts + 1
                return
            if self.cut_after is not None:
                self.cut_after -= len(said)
            writer.write(said)

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[CuttingProxy]:
    line = CuttingProxy(port)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        line.close()
        await asyncio.sleep(0)
