"""The task or thread of a function, and the bounded pipe from it to the turn."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, TypeVar

import gateway.model as m
from gateway.errors import Overloaded
from gateway.ports import BackendEvent

Value = TypeVar("Value")
MAX_AHEAD = 64
"""So many strings may be in the pipe before the function waits; after an event it waits until it was emitted."""


class ThreadHalted(BaseException):
    """The turn has ended; raised in the thread of a function, as `CancelledError` is in a task."""


class AskRequest:
    """An ask of the function, and the future of its answers."""

    def __init__(self, asks: Sequence[m.AnyAsk], scope_id: str) -> None:
        self.asks, self.scope_id = asks, scope_id
        self.answers: asyncio.Future[list[m.Answer]] = asyncio.get_running_loop().create_future()


PipeItem = Sequence[BackendEvent] | AskRequest


class Pipe:
    """A pipe for one writer and one reader; as a context manager it ends with its block, with the block's error."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._output_changed, self._moved = asyncio.Event(), asyncio.Event()
        self._waiting: list[PipeItem] = []
        self._put = self._taken = self._written = 0
        self._is_halted = self._is_over = False
        self._error: BaseException | None = None
        self._calls: set[Future[Any]] = set()

    # -- written by the function ----------------------------------------------------------------------------------

    async def put(self, batch: PipeItem, ahead: int = 0) -> None:
        """Add a batch, and wait until all but so many batches were emitted."""
        with self._changed:
            goal = self._add(batch) - ahead
        self._output_changed.set()
        while self._written < goal:
            self._moved.clear()
            await self._moved.wait()

    def put_from_thread(self, batch: PipeItem, ahead: int = 0) -> None:
        """`put` for a thread; raises `ThreadHalted` once the turn has ended."""
        with self._changed:
            self._go_on()
            goal = self._add(batch) - ahead
            if len(self._waiting) == 1:
                self._loop.call_soon_threadsafe(self._output_changed.set)
            self._changed.wait_for(lambda: self._written >= goal or self._is_halted)
            self._go_on()

    def call_from_thread(self, step: Coroutine[object, None, Value]) -> Value:
        """Run a coroutine on the event loop, and wait in the thread for its result."""
        with self._changed:
            if self._is_halted:
                step.close()
            self._go_on()
            call = asyncio.run_coroutine_threadsafe(step, self._loop)
            self._calls.add(call)
        try:
            return call.result()
        except CancelledError:
            raise ThreadHalted from None
        finally:
            with self._changed:
                self._calls.discard(call)

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> Literal[True]:
        if isinstance(error, SystemExit | KeyboardInterrupt):  # an agent must not end the server
            gone = RuntimeError(f"the agent raised {type(error).__name__}({error})")
            gone.__cause__ = error
            error = gone
        self._error, self._is_over = error, True
        self._output_changed.set()
        return True

    def _add(self, batch: PipeItem) -> int:
        self._waiting.append(batch)
        self._put += 1
        return self._put

    def _go_on(self) -> None:
        if self._is_halted:
            raise ThreadHalted

    # -- read by the turn -----------------------------------------------------------------------------------------

    async def take(self) -> list[PipeItem] | None:
        """All batches since the last call, which count as emitted at the next call; None at the end, or its error."""
        self._count()
        while not self._waiting:
            if self._is_over:
                if self._error is not None:
                    raise self._error
                return None
            self._output_changed.clear()
            if not self._waiting:
                await self._output_changed.wait()
        with self._changed:
            taken, self._waiting = self._waiting, []
        self._taken += len(taken)
        return taken

    def _count(self) -> None:
        with self._changed:
            self._written = self._taken
            self._changed.notify_all()
        self._moved.set()

    def halt(self) -> None:
        """The turn has ended: wake a thread that waits."""
        with self._changed:
            self._is_halted = True
            self._changed.notify_all()
            calls = list(self._calls)
        for call in calls:
            call.cancel()


def set_result_from_thread(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Value]", given: Value) -> None:
    """Set the result of a future from a thread, unless the loop is closed or the future is done."""
    def settle() -> None:
        if not future.done():
            future.set_result(given)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(settle)


THREAD_WAIT_SECONDS = 10.0
"""How long a turn waits for a free thread."""


class ThreadResult:
    """The result or the error of some work; as a context manager it catches whatever is raised."""

    value: Any = None
    error: BaseException | None = None

    def __enter__(self) -> "ThreadResult":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> Literal[True]:
        self.error = error
        return True


class ThreadRunner:
    """Runs work in daemon threads, at most so many at once; a thread that hangs counts until it ends."""

    def __init__(self, most: int, *, wait_seconds: float = THREAD_WAIT_SECONDS) -> None:
        self._most, self._free, self._wait_seconds = most, asyncio.Semaphore(most), wait_seconds

    async def run(self, work: Callable[[], object], name: str, halt: Callable[[], None]) -> object:
        """The result of the work. If cancelled, it halts the work and waits; if cancelled again, it stops waiting."""
        await self._acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[ThreadResult] = loop.create_future()
        done.add_done_callback(lambda _: self._free.release())

        def carry_out() -> None:
            result = ThreadResult()
            with result:
                result.value = work()
            set_result_from_thread(loop, done, result)

        # A daemon, so that a thread that hangs does not keep the server from ending.
        _start_thread(threading.Thread(target=carry_out, name=name, daemon=True), done)
        try:
            result = await asyncio.shield(done)
        except asyncio.CancelledError:
            halt()
            await asyncio.wait([done])
            raise
        if result.error is not None:
            raise result.error
        return result.value

    async def _acquire(self) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded(f"All {self._most} threads of the agent are at work.") from None


def _start_thread(thread: threading.Thread, done: "asyncio.Future[ThreadResult]") -> None:
    try:
        thread.start()
    except RuntimeError as error:  # the system has no more threads
        done.cancel()
        raise Overloaded("No thread could be started for the agent.") from error
