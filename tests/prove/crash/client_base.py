"""What all clients share that talk while servers die: a session that is driven, and a history that is written down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, NoReturn

import aiohttp
import orjson
from socketio.exceptions import SocketIOError

import gateway.model as m
from tests.prove.crash.history import ConnectionHistory, GivenAnswer, History, Kind, SeenLog, SentMessage, Violation

BROKEN = (aiohttp.ClientError, ConnectionError, SocketIOError, EOFError)
"""What a client sees of a server that dies; a wait that takes too long is no such thing."""
PATIENCE = 60.0
"""Seconds that only a hang takes."""
RESPONSE_SECONDS = 15.0
"""After so long without a response a client takes its connection for dead, and asks again."""
PLAIN = ("hello", "/think", "/slow 4", "/slow 8", "/burst 60", "/tool clock", "/fork", "/annotate", "/slow 2 /burst 20")


class MessageNotAccepted(ConnectionError):
    """The server says that what was asked for has not been done, and will not be."""


class _NoResponse(Exception):
    """A request got no response."""


@dataclass
class CrashRun:
    """What all clients share: where the server is, the history, and how much was heard since the last death."""

    address: str
    random: Random
    http: aiohttp.ClientSession
    history: History = field(default_factory=History)
    found: list[Violation] = field(default_factory=list)
    turns: int = 0
    thinking: float = 0.0
    """Seconds that a client thinks, at most, before it says or answers something."""
    directives: tuple[str, ...] = PLAIN
    """What clients ask of the agent, beside questions to people."""
    patience: float = 0.02
    """Seconds after which a client looks again whether a turn is over."""
    numbers: Any = field(default_factory=lambda: count(1))
    heard: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self) -> None:
        """A client has heard something."""
        self.heard += 1
        self.news.set()

    async def until_heard(self, things: int) -> None:
        """Wait until so many things more have been heard."""
        wanted = self.heard + things
        while self.heard < wanted:
            self.news.clear()
            await self.news.wait()

    def url(self, path: str) -> str:
        return f"{self.address}{path}"

    async def check(self, kind: Kind, client: str, session: str, answer: aiohttp.ClientResponse) -> None:
        """A server that is about to stop may refuse; one that is there has no reason to."""
        if answer.status >= 300:
            if answer.status != 503:
                words = f"{client}: {answer.method} {answer.url.path} {answer.status} {await answer.text()}"
                self.found.append(Violation(kind, session, words))
            raise (MessageNotAccepted if answer.status == 503 else ConnectionError)(f"refused: {answer.status}")

    async def view(self, session: str) -> m.SessionView:
        """What the server's own log says of a session."""
        time = asyncio.get_running_loop().time
        began = time()
        async with self.http.get(self.url(f"/replay/{session}")) as answer:
            await self.check(Kind.LOST, "/replay", session, answer)
            content = await answer.read()
        records = [m.decode_record(line) for line in content.splitlines()]
        if self.history.reads is not None:
            self.history.reads.append(SeenLog(session, began, time(), records))
        return m.fold(session, records)


class DialectClient:
    """One session of one dialect, driven until the server dies, and again when it is back."""

    dialect = ""
    asking: tuple[str, ...] = ()

    def __init__(self, world: CrashRun, number: int) -> None:
        self.world = world
        self.name = f"{self.dialect}-{number}"
        self.session = ""
        self.last_turn: str | None = None

    async def live(self) -> None:
        """Talk until the server dies."""
        with suppress(*BROKEN):
            if not self.session:
                self.session = await self.create()
            async with asyncio.TaskGroup() as group:
                listener = group.create_task(self._quietly(self.listen()))
                await self._quietly(self._talk())
                listener.cancel()

    async def _quietly(self, work: Any) -> None:
        with suppress(*BROKEN):
            await work

    async def _talk(self) -> None:
        await self.resume()
        while True:
            await self.step()

    async def step(self, words: str | None = None, view: m.SessionView | None = None) -> None:
        """Answer what is asked, or say something new, once no turn runs; `view` if that was seen just now."""
        view = view or await self.rested()
        if self.world.thinking:
            await asyncio.sleep(self.world.random.uniform(0, self.world.thinking))
        if view.asks:
            await self.answer(view)
        else:
            await self._say(words or self.words())
        self.world.turns += 1

    async def _say(self, words: str) -> None:
        """Say it, and remember if it was refused; what is refused after it was taken is something else."""
        history, word = self.world.history, words.split()[-1]
        try:
            await self.say(words)
        except MessageNotAccepted:
            if not any(said.taken and said.words == word for said in history.said):
                history.refused.append(SentMessage(self.name, self.session, word, False))
            raise

    async def rested(self) -> m.SessionView:
        """The state of the session once no turn runs in it."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(_NoResponse):
                        view = await self._view()
                        if view.status is not m.SessionStatus.RUNNING:
                            return view
                    await asyncio.sleep(self.world.patience)
        except TimeoutError:
            self.stuck("a turn runs and runs")

    async def _view(self) -> m.SessionView:
        """The state of the session; who asks over a connection that is dead asks again."""
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                return await self.world.view(self.session)
        except TimeoutError:
            raise _NoResponse from None

    def words(self) -> str:
        directive = self.world.random.choice((*self.world.directives, *self.asking))
        return f"{directive} u{next(self.world.numbers)}"

    async def finish(self) -> None:
        """Without any death: whatever is asked can be answered, and a new message comes to its end."""
        view = await self.rested()
        for _ in range(4):
            if not view.asks:
                break
            await self.step(view=view)
            view = await self.rested()
        turns = view.turns
        await self.step(f"hello u{next(self.world.numbers)}", view)
        view = await self.rested()
        if view.turns != turns + 1 or view.asks or view.ended is None or view.ended.fault is not None:
            self.world.found.append(Violation(Kind.STUCK, self.session, f"{self.name}: a new message did not work"))

    def hears(self, stream: str, heard: list[str], after: str | None = None, ended: bool = False) -> None:
        self.world.history.hearings.append(
            ConnectionHistory(self.name, self.session, stream, tuple(heard), after, ended)
        )

    def refused(self, answer: Any, code: str) -> bool:
        """A server that is about to stop may refuse."""
        self.world.history.answers[f"{self.dialect} refused {code}"] += 1
        if "stop" not in str(answer):
            self.world.found.append(Violation(Kind.STUCK, self.session, f"{self.name}: {answer}"))
        raise (MessageNotAccepted if code.lower() == "overloaded" else ConnectionError)(f"refused: {code}")

    def stuck(self, words: str) -> NoReturn:
        """Something takes longer than anything but a hang takes."""
        self.world.found.append(Violation(Kind.STUCK, self.session, f"{self.name}: {words}"))
        raise ConnectionError("stuck") from None

    def said(self, words: str, taken: bool) -> None:
        now = asyncio.get_running_loop().time()
        self.world.history.said.append(SentMessage(self.name, self.session, words.split()[-1], taken, now))

    def answered(self, ask: m.OpenAsk, taken: bool) -> None:
        now = asyncio.get_running_loop().time()
        self.world.history.answered.append(GivenAnswer(self.name, self.session, ask.request_id, taken, now))

    # -- each dialect's own ---------------------------------------------------------------------------------------

    async def create(self) -> str:
        raise NotImplementedError

    async def listen(self) -> None:
        """Hear what happens in the session, where that is apart from talking."""

    async def resume(self) -> None:
        """Hear the rest of what was cut off."""

    async def say(self, words: str) -> None:
        raise NotImplementedError

    async def answer(self, view: m.SessionView) -> None:
        raise NotImplementedError

    async def post(self, path: str, body: Any) -> Any:
        async with self.world.http.post(self.world.url(path), data=orjson.dumps(body)) as answer:
            await self.world.check(Kind.STUCK, self.name, self.session, answer)
            return orjson.loads(await answer.read())


async def blocks(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    """The blocks of a server-sent stream, without comments; ends where the stream does."""
    rest = b""
    while some := await content.readany():
        *whole, rest = (rest + some).split(b"\n\n")
        for block in whole:
            if block and not block.startswith((b":", b"retry:")):
                yield block.decode()
