"""A remote server for blocking code: the remote runs on an event loop in its own thread."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

import gateway.model as m
from gateway.errors import TimedOut
from gateway.ports import DecodedItem, NewRemoteSession, Remote, RemoteAsk, RemoteSession, RemoteTurn

from .terminal_input import InterruptPressed, InterruptWatcher

T = TypeVar("T")
CLOSE_SECONDS = 3.0
"""Seconds to wait for the server when the chat ends."""


class SyncClient:
    """One remote, used from blocking code.

    The event loop keeps running while the terminal waits for a person, so that the connection stays alive. Every wait
    for the server goes through the interrupt watcher: Ctrl-C ends the wait with `InterruptPressed`.
    """

    def __init__(self, remote: Remote, interrupts: InterruptWatcher) -> None:
        self._remote, self._interrupts = remote, interrupts
        self._ready: Future[None] = Future()
        self._left: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)
        self._streams: set[SyncStream] = set()
        self._loop: asyncio.AbstractEventLoop
        self._leaving: asyncio.Event

    def __enter__(self) -> "SyncClient":
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the remote; Ctrl-C ends the wait for the server."""
        self._loop.call_soon_threadsafe(self._leaving.set)
        with suppress(InterruptPressed, TimedOut):
            self._interrupts.wait(self._left, CLOSE_SECONDS + 1)
            self._thread.join()

    def about(self) -> m.AgentCard:
        return self.wait(self.start(self._remote.about()))

    def open(self, settings: m.Settings) -> str:
        return self.wait(self.start(self._remote.open(NewRemoteSession(settings=settings))))

    def join(self, session_id: str) -> RemoteSession:
        return self.wait(self.start(self._remote.join(session_id)))

    def sessions(self, most: int) -> Sequence[RemoteSession]:
        return self.wait(self.start(self._remote.sessions(most)))

    def start_turn(self, session_id: str, command: m.SendMessage, settings: m.Settings | None) -> "SyncStream":
        """Start a turn; without settings the session keeps its own."""
        return self._stream(self._remote.start_turn(session_id, command, *([settings] if settings is not None else ())))

    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> "SyncStream":
        return self._stream(self._remote.answer(session_id, answers))

    def interrupt(self, session_id: str) -> "Future[None]":
        return self.start(self._remote.interrupt(session_id))

    def _stream(self, turn: RemoteTurn) -> "SyncStream":
        stream = SyncStream(self, turn)
        self._streams.add(stream)
        return stream

    def is_over(self, stream: "SyncStream") -> None:
        self._streams.discard(stream)

    # -- the two threads ------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[object, object, T]) -> "Future[T]":
        """Run a coroutine on the event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, future: "Future[T]", seconds: float | None = None) -> T:
        """Return the result; a wait that Ctrl-C or a timeout ended can be repeated."""
        return self._interrupts.wait(future, seconds)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._left.set_result(None)

    async def _serve(self) -> None:
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set_result(None)
        await self._leaving.wait()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for stream in tuple(self._streams):
                    await stream.end()
                await self._remote.close()
        except TimeoutError:
            return  # a remote that does not close in time is abandoned


class SyncStream:
    """The items of a turn, one at a time."""

    def __init__(self, client: SyncClient, items: RemoteTurn) -> None:
        self._client, self._items = client, items
        self._next: Future[DecodedItem | None] | None = None
        self._task: asyncio.Task[object] | None = None

    def next(self, seconds: float | None = None) -> DecodedItem | None:
        """Return the next item, or None at the end; a call after an interrupted wait continues it."""
        if self._next is None:
            self._next = self._client.start(self._one())
        item = self._client.wait(self._next, seconds)
        self._next = None
        return item

    def close(self) -> None:
        """Stop reading the stream."""
        self._client.start(self.end())

    async def _one(self) -> DecodedItem | None:
        self._task = asyncio.current_task()
        item = await anext(self._items, None)
        if item is None:
            self._client.is_over(self)
        return item

    async def end(self) -> None:
        """Cancel a pending read, then close the stream."""
        self._client.is_over(self)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._items.aclose()
