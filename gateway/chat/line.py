"""A server spoken to from ordinary code: the remote lives on an event loop of its own, in a thread of its own."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLong
from contextlib import suppress
from typing import Any, TypeVar

from gateway.errors import TimedOut
from gateway.model import AgentCard, Answer, SendMessage, Settings
from gateway.upstream import Asked, Heard, Opening, Remote

T = TypeVar("T")
FAREWELL_SECONDS = 3.0
"""How long the server is waited for when we leave."""
LONGEST_WAIT = 0.2
"""No wait is longer: a signal that comes just as a wait begins is heard only when the wait ends."""


class Line:
    """One remote. While the terminal waits for a person the loop goes on, so that the server sees somebody there."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="line", daemon=True)
        self._streams: set[Stream] = set()
        self._loop: asyncio.AbstractEventLoop
        self._leaving: asyncio.Event

    def __enter__(self) -> "Line":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._leaving.set)
        self._thread.join(FAREWELL_SECONDS + 1)

    def about(self) -> AgentCard:
        return self.wait(self.start(self._remote.about()))

    def open(self, opening: Opening) -> str:
        return self.wait(self.start(self._remote.open(opening)))

    def say(self, session_id: str, command: SendMessage, settings: Settings) -> "Stream":
        return self._stream(self._remote.say(session_id, command, settings))

    def answer(self, session_id: str, answers: Sequence[tuple[Asked, Answer]]) -> "Stream":
        return self._stream(self._remote.answer(session_id, answers))

    def interrupt(self, session_id: str) -> "Future[None]":
        return self.start(self._remote.interrupt(session_id))

    def _stream(self, heard: AsyncGenerator[Heard, None]) -> "Stream":
        stream = Stream(self, heard)
        self._streams.add(stream)
        return stream

    def is_over(self, stream: "Stream") -> None:
        self._streams.discard(stream)

    # -- the two threads ------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Have this done on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @staticmethod
    def wait(future: "Future[T]", seconds: float | None = None) -> T:
        """What came of it; waiting can be broken off by a signal, and taken up again."""
        end = float("inf") if seconds is None else time.monotonic() + seconds
        while not future.done() and (left := end - time.monotonic()) > 0:
            with suppress(TooLong):
                return future.result(min(left, LONGEST_WAIT))
        if future.done():
            return future.result()
        raise TimedOut("the server did not answer in time")

    async def _serve(self) -> None:
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._leaving.wait()
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                for stream in tuple(self._streams):
                    await stream.end()
                await self._remote.close()
        except TimeoutError:
            return  # whoever does not let us go is left


class Stream:
    """What a server says, one thing at a time."""

    def __init__(self, line: Line, heard: AsyncGenerator[Heard, None]) -> None:
        self._line, self._heard = line, heard
        self._next: Future[Heard | None] | None = None
        self._task: asyncio.Task[Any] | None = None

    def next(self, seconds: float | None = None) -> Heard | None:
        """None when it is over. Who was broken off in waiting comes again, and misses nothing."""
        if self._next is None:
            self._next = self._line.start(self._one())
        heard = self._line.wait(self._next, seconds)
        self._next = None
        return heard

    def close(self) -> None:
        """Nobody listens any more."""
        self._line.start(self.end())

    async def _one(self) -> Heard | None:
        self._task = asyncio.current_task()
        heard = await anext(self._heard, None)
        if heard is None:
            self._line.is_over(self)
        return heard

    async def end(self) -> None:
        """Close what is heard; whoever waits for more of it is sent away first."""
        self._line.is_over(self)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._heard.aclose()
