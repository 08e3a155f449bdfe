"""An event loop with a clock of its own: a wait costs no time, and a wait without an end is an error.

    everything that is ready has run
        → a thread or a real socket is at work?   wait for it, at the pace of the real clock
        → a neighbour has not answered yet?       wait for it, while the clock stands still
        → a timer is due later?                   the clock jumps to it
        → neither?                                nothing can ever happen again: NothingLeftToDo

Connections to servers of the same loop are made in memory (`network.py`), so a whole gateway and its clients run in
simulated time. Whatever is outside of the loop (threads of an executor, processes, sockets of other programs) still
works, and holds the clock to real time for as long as it is at work, unless it is a neighbour (`neighbours.py`): a
server that can say when it is at rest.
"""

import array
import asyncio
import fcntl
import selectors
import socket
import termios
import threading
import time
from asyncio import events
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.thread import _worker  # type: ignore[attr-defined]
from contextlib import suppress
from contextvars import Context, copy_context
from ipaddress import ip_address
from typing import Any, TypeVar

from tests.simulation.external_servers import NEIGHBOURS, ExternalServer
from tests.simulation.network import Network

Result = TypeVar("Result")
EPOCH = 1_700_000_000.0
HANG = 60.0
"""A neighbour that takes longer than this waits for something that the loop will say later."""
GLANCE = 0.02
"""How often a condition is looked at that a thread or a process may fulfil: nothing in the loop tells of those."""


def _unread(sock: Any) -> int:
    """How many bytes that were written here have not arrived there."""
    if sock.fileno() < 0:
        return 0
    count = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count)
    return count[0]


def _is_address(host: Any) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


class LoopDeadlock(RuntimeError):
    """Every task waits, and nothing can wake any of them: in real time this test would hang."""


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Asks the system only for what is outside of the loop, and moves the loop's clock in place of waiting."""

    loop: "SimulatedLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        has_work = timeout is not None and timeout <= 0
        is_alone = len(self._fd_to_key) == 1  # with its own pipe, which only wakes a loop that sleeps
        ready = [] if has_work and is_alone else super().select(0)
        self.loop.reach_what_is_due()
        if (self.loop.conditions and self.loop.look()) or ready or has_work:
            return ready
        if self.loop.is_waiting_outside:
            began = time.monotonic()
            if self.loop.conditions:
                timeout = GLANCE if timeout is None else min(timeout, GLANCE)
            ready = super().select(timeout)
            self.loop.move(min(time.monotonic() - began, float("inf") if timeout is None else timeout))
            return ready
        is_settled, end = False, time.monotonic() + HANG
        while not is_settled and time.monotonic() < end:
            is_settled = self.loop.settle()
            if ready := super().select(0):  # a thread may have come back, and ended, since the first look
                self.loop.expect_more()
                return ready
        if timeout is None:
            raise LoopDeadlock("nothing can happen any more:\n" + "\n".join(self.loop.waiting_tasks()))
        self.loop.move(timeout)
        return []


class _Handle(asyncio.Handle):
    """A call that is due now. A test makes hundreds of thousands, so nothing is noted that only debug mode wants."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: asyncio.AbstractEventLoop, context: Context | None) -> None:
        self._context = copy_context() if context is None else context  # type: ignore[attr-defined]
        self._loop = loop  # type: ignore[attr-defined]
        self._callback, self._args = callback, args
        self._cancelled = False
        self._repr = self._source_traceback = None  # type: ignore[attr-defined]


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The loop: `now` is its clock, in seconds since it was made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.network = Network(self)
        self._outside: set[Future[Any] | asyncio.Future[Any]] = set()
        self._older_threads = set(threading.enumerate())
        self._visited: dict[int, None] = {}
        self._visiting: list[tuple[int, Any]] = []
        self._has_asked = False
        self.conditions: list[tuple[Callable[[], object], asyncio.Future[None]]] = []
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 1e-6  # a nanosecond would be lost in the rounding once the clock shows months

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Like asyncio's, without what only its debug mode wants to know: nothing is called as often."""
        self._check_closed()  # type: ignore[attr-defined]
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def move(self, seconds: float) -> None:
        """So much time has passed, here and at the neighbours'."""
        self.now += seconds
        for neighbour in self.neighbours:
            neighbour.age(self.now)

    def reach_what_is_due(self) -> None:
        """A timer that is less than the resolution away is run now: whoever looks at the clock then sees its time."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if timers and 0 < timers[0].when() - self.now < self._clock_resolution:
            self.move(timers[0].when() - self.now)
            self.now = max(self.now, timers[0].when())

    def wall_clock(self) -> float:
        """The simulated time of day, for whoever is given a clock."""
        return EPOCH + self.now

    # -- conditions ---------------------------------------------------------------------------------------------

    async def until(self, is_true: Callable[[], object]) -> None:
        """Wait until this is true; it is looked at after every step of the loop, so nothing is waited for in vain."""
        if is_true():
            return
        condition = is_true, self.create_future()
        self.conditions.append(condition)
        try:
            await condition[1]
        finally:
            self.conditions.remove(condition)

    def look(self) -> bool:
        """Wake those whose condition has become true."""
        fulfilled = [future for is_true, future in self.conditions if not future.done() and is_true()]
        for future in fulfilled:
            future.set_result(None)
        return bool(fulfilled)

    # -- what is outside ----------------------------------------------------------------------------------------

    @property
    def is_waiting_outside(self) -> bool:
        """Whether a thread is at work beside this loop, or a real socket or pipe is open."""
        sockets = self._selector.get_map().keys() - {self._ssock.fileno()}  # type: ignore[attr-defined]
        return bool(self._outside) or not self._visits() >= sockets or self._has_threads()

    @property
    def neighbours(self) -> list[ExternalServer]:
        """Those that this loop has had to do with, and that run."""
        return [NEIGHBOURS[port] for port in self._visited if port in NEIGHBOURS]

    def settle(self) -> bool:
        """Wait for the answers of the neighbours, if any was asked something; whether all that was sent is answered.

        A busy machine may take its time to carry bytes from here to there, and a neighbour to read them.
        """
        if not self._has_asked:
            return True
        neighbours = self.neighbours
        has_sent = all(port not in NEIGHBOURS or not _unread(sock) for port, sock in self._visiting)
        for neighbour in neighbours:
            neighbour.settle(self.now)
        self._has_asked = not has_sent or any(neighbour.is_busy() for neighbour in neighbours)
        return not self._has_asked

    def expect_more(self) -> None:
        """Somebody has answered: the neighbours may have read only the first of several questions."""
        self._has_asked = self._has_asked or bool(self._visiting)

    def _visits(self) -> set[int]:
        """The open connections to neighbours."""
        return {sock.fileno() for port, sock in self._visiting if port in NEIGHBOURS}

    def _has_threads(self) -> bool:
        """Whether somebody started a thread; those of executors rest unless they have been given work."""
        return any(
            thread not in self._older_threads and getattr(thread, "_target", None) is not _worker
            for thread in threading.enumerate()
        )

    def watch_outside(self, work: "Future[Any]") -> None:
        """Hold the clock to real time until a thread has done this, and the loop has heard of it."""
        self._outside.add(work)
        work.add_done_callback(self._came_back)

    def _came_back(self, work: "Future[Any]") -> None:
        """In the thread: what the work itself told the loop was told before."""
        with suppress(RuntimeError):  # the loop is closed
            self.call_soon_threadsafe(self._outside.discard, work)

    def run_in_executor(self, executor: Any, work: Any, *args: Any) -> "asyncio.Future[Any]":
        result: asyncio.Future[Any] = super().run_in_executor(executor, work, *args)
        self._outside.add(result)
        result.add_done_callback(self._outside.discard)
        return result

    def waiting_tasks(self) -> list[str]:
        """Every task that is not done, and the line it waits in."""
        told = []
        for task in asyncio.all_tasks(self):
            stack = task.get_stack(limit=1)
            place = f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "nowhere"
            told.append(f"  {task.get_name()} waits at {place}")
        return sorted(told)

    # -- connections within the loop ------------------------------------------------------------------------------

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **given: Any) -> Any:
        if given.get("ssl") is not None:
            return await super().create_server(protocol_factory, host, port, **given)
        return self.network.listen(protocol_factory, port, given.get("sock"))

    async def create_real_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **given: Any) -> Any:
        """A server on a port of the machine, for clients outside of this loop: in threads and in processes."""
        return await super().create_server(protocol_factory, host, port, **given)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **given: Any) -> Any:
        sock = given.get("sock")
        listener = self.network.find(host, port) if sock is None else self.network.dialled(sock)
        if listener is None:
            return self._attend(port, await super().create_connection(protocol_factory, host, port, **given))
        if given.get("ssl") is None:
            return self.network.connect(protocol_factory, listener)
        is_secure, protocol = self.create_future(), protocol_factory()
        tls = SSLProtocol(self, protocol, given["ssl"], is_secure, server_hostname=given.get("server_hostname") or host)
        transport, _ = self.network.connect(lambda: tls, listener)
        try:
            await is_secure
        except BaseException:
            transport.abort()
            raise
        return tls._app_transport, protocol

    def _attend(self, port: Any, made: Any) -> Any:
        """Take note of whatever is written on this connection, if it leads to a neighbour."""
        if port in NEIGHBOURS:
            made[0].write, made[0].writelines = self._asking(made[0].write), self._asking(made[0].writelines)
        return made

    def _asking(self, write: Callable[[Any], None]) -> Callable[[Any], None]:
        def ask(words: Any) -> None:
            self._has_asked = True
            write(words)

        return ask

    async def getaddrinfo(self, host: Any, port: Any, **given: Any) -> Any:
        """What is an address already is known in the next step, as if a thread had answered at once; names need one."""
        if not _is_address(host):
            return await super().getaddrinfo(host, port, **given)
        await asyncio.sleep(0)
        return socket.getaddrinfo(host, port, **given)

    async def sendfile(self, *given: Any, **named: Any) -> int:
        """Like uvloop's: whoever sends a file reads it and writes it."""
        raise NotImplementedError

    async def sock_connect(self, sock: Any, address: Any) -> None:
        if self.network.dial(sock, address):
            return
        if address[1] not in NEIGHBOURS:
            await super().sock_connect(sock, address)
            return
        sock.setblocking(True)  # the clock stands still meanwhile
        sock.connect(address)
        sock.setblocking(False)
        self._visited[address[1]], self._has_asked = None, True
        self._visiting = [*((port, open) for port, open in self._visiting if open.fileno() >= 0), (address[1], sock)]


def simulated(work: Coroutine[Any, Any, Result]) -> Result:
    """Run this in simulated time, for tests that are plain functions (property tests)."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)


def _watched(submit: Callable[..., Any]) -> Callable[..., Any]:
    def submit_watched(self: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        future = submit(self, work, *args, **named)
        loop = events._get_running_loop()
        if isinstance(loop, SimulatedLoop):
            loop.watch_outside(future)
        return future

    return submit_watched


# The loop cannot see what is handed to an executor directly, so all executors tell it.
ThreadPoolExecutor.submit = _watched(ThreadPoolExecutor.submit)  # type: ignore[method-assign]
