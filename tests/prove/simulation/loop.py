"""One event loop for a world of processes: virtual time, and a seed that decides which process runs next.

    some process has work          → the seed chooses one; its oldest callback runs and costs a few microseconds
    a timer is due                 → its callback joins the work of its process
    nobody has work                → the clock jumps to the next timer
    nobody has work, and no timer  → nothing can ever happen again: `WorldStopped`

Within a process callbacks run in the order in which they became ready, as asyncio promises; between processes any
order is possible. A process that is paused keeps its work for later; the work of a dead one is never done, and its
tasks are kept alive, so that no `finally` of theirs runs.
"""

import asyncio
import heapq
import traceback
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from enum import Enum
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

EPOCH = 1_700_000_034.0
"""The time of day at which every world begins: six seconds later schedules are due."""
THREAD_SECONDS = 0.0004
"""How long work in a thread takes at most, unless the disk of the process is slow."""


class WorldStopped(RuntimeError):
    """Nothing can happen any more, or the virtual time is over: in the real world this would hang."""


class ProcessState(Enum):
    """What the system does with a process."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """One program of the world on a machine of its own: its work, its tasks, its clock and its randomness."""

    def __init__(self, loop: "WorldLoop", name: str, host: str, seed: str) -> None:
        self.loop = loop
        self.name = name
        self.host = host
        self.random = Random(seed)
        self.cost = self.random.uniform(1e-6, 12e-6)
        """Seconds that a callback of this process takes."""
        self.state = ProcessState.RUNNING
        self.clock_error = 0.0
        """Seconds by which its time of day is wrong."""
        self.disk_seconds = THREAD_SECONDS
        """How long work in its threads takes at most."""
        self.ready: deque[_Handle] = deque()
        self.is_listed = False
        self.exits: dict[object, Callable[[], None]] = {}
        """What the system does when the process ends: it closes sockets and files."""
        self.token = ""
        """The key that its HTTP client sends."""
        self.slices: Any = None
        """Its queue of long work, which is a global of the program."""
        self._threads: dict[int, float] = {}
        context = copy_context()
        context.run(PROCESS.set, self)
        self.context = context

    @property
    def tasks(self) -> list["WorldTask"]:
        """Its tasks that are not done, in the order in which they were made."""
        every = (task for task in asyncio.all_tasks(self.loop) if isinstance(task, WorldTask) and task.process is self)
        return sorted(every, key=hash)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run this in the process."""
        return self.loop.create_task(work, name=name, context=self.context.copy())

    def pause(self) -> None:
        """The system does not let the process run."""
        if self.state is ProcessState.RUNNING:
            self.state = ProcessState.PAUSED
            self.loop.unlist(self)

    def resume(self) -> None:
        if self.state is ProcessState.PAUSED:
            self.state = ProcessState.RUNNING
            if self.ready:
                self.loop.list_ready(self)

    def kill(self) -> None:
        """The process is gone between two awaits; its tasks stay as they were, for ever."""
        if self.state is ProcessState.DEAD:
            return
        self.state = ProcessState.DEAD
        self.loop.unlist(self)
        self.loop.buried += self.tasks
        self.ready.clear()
        for leave in list(self.exits.values()):
            leave()

    def thread_times(self, executor: Executor | None) -> tuple[float, float]:
        """When work that is given to this executor has its effect, and when it is done: one piece after the other."""
        begins = max(self.loop.now, self._threads.get(id(executor), 0.0))
        ends = begins + self.random.uniform(0.0, self.disk_seconds)
        self._threads[id(executor)] = ends
        return begins + (ends - begins) * self.random.random(), ends


PROCESS: ContextVar[Process] = ContextVar("process")
"""The process to which the code that runs belongs."""


class _Handle(asyncio.Handle):
    """A callback of a process."""

    __slots__ = ("process",)

    def __init__(self, process: Process, callback: Any, args: Any, loop: "WorldLoop", context: Context) -> None:
        self.process = process
        self._context = context  # type: ignore[attr-defined]
        self._loop = loop  # type: ignore[attr-defined]
        self._callback, self._args = callback, args
        self._cancelled = False
        self._repr = self._source_traceback = None  # type: ignore[attr-defined]


class _TimerHandle(asyncio.TimerHandle):
    """A callback of a process that is due later; of two for the same moment the first one made is the first."""

    __slots__ = ("number", "process")

    def __init__(
        self, process: Process, when: float, number: int, callback: Any, args: Any, loop: "WorldLoop", context: Context,
    ) -> None:
        self.process = process
        self.number = number
        self._context = context  # type: ignore[attr-defined]
        self._loop = loop  # type: ignore[attr-defined]
        self._callback, self._args = callback, args
        self._cancelled = False
        self._repr = self._source_traceback = None  # type: ignore[attr-defined]
        self._when = when
        self._scheduled = False


class WorldTask(asyncio.Task[Any]):
    """A task whose place in a set depends on when it was made, and not on where it is in memory."""

    def __init__(self, number: int, process: Process, *given: Any, **named: Any) -> None:
        self.process = process
        self._order = number
        super().__init__(*given, **named)

    def __hash__(self) -> int:
        return self._order

    def __eq__(self, other: object) -> bool:
        return self is other


class WorldLoop(asyncio.BaseEventLoop):
    """The loop of a world; `now` is its clock, in seconds since the world began."""

    def __init__(self, seed: str, *, until: float) -> None:
        super().__init__()
        self.now = 0.0
        self.until = until
        """The virtual time after which nothing happens any more."""
        self.random = Random(f"{seed} schedule")
        self.steps = 0
        self.errors: list[str] = []
        """What tasks and callbacks raised that nobody looked at."""
        self.buried: list[WorldTask] = []
        """The tasks of dead processes."""
        self.network: Any = None
        self._listed: list[Process] = []
        self._timers: list[tuple[float, int, _TimerHandle]] = []
        self._numbers = count()
        self._tasks = count(1)
        self._is_over = False
        self.host = Process(self, "world", "", f"{seed} world")
        """The process of whatever has no other: the one that brings the world about."""
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._note_error)

    def time(self) -> float:
        return self.now

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""

    def _process_events(self, event_list: Any) -> None:
        """There are none: nothing is outside of the world."""

    # -- scheduling -----------------------------------------------------------------------------------------------

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        process = context.get(PROCESS, self.host)
        handle = _Handle(process, callback, args, self, context)
        if process.state is not ProcessState.DEAD and not self._is_over:
            process.ready.append(handle)
            if not process.is_listed and process.state is ProcessState.RUNNING:
                process.is_listed = True
                self._listed.append(process)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        if context is None:
            context = copy_context()
        process, number = context.get(PROCESS, self.host), next(self._numbers)
        handle = _TimerHandle(process, when, number, callback, args, self, context)
        if process.state is not ProcessState.DEAD and not self._is_over:
            heapq.heappush(self._timers, (when, number, handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def list_ready(self, process: Process) -> None:
        if not process.is_listed:
            process.is_listed = True
            self._listed.append(process)

    def unlist(self, process: Process) -> None:
        if process.is_listed:
            process.is_listed = False
            self._listed.remove(process)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is dropped when it would be due."""

    def _run_once(self) -> None:
        """Run callbacks until somebody stops the loop."""
        listed, timers, chance = self._listed, self._timers, self.random.random
        while not self._stopping:  # type: ignore[attr-defined]
            if timers and (timers[0][0] <= self.now or not listed):
                self._take_timers()
                continue
            if not listed:
                raise WorldStopped("nothing can happen any more:\n" + "\n".join(self.waiting_tasks()))
            place = int(chance() * len(listed)) if len(listed) > 1 else 0
            process = listed[place]
            handle = process.ready.popleft()
            if not process.ready:
                process.is_listed = False
                listed[place] = listed[-1]
                listed.pop()
            if not handle._cancelled:
                self.now += process.cost
                self.steps += 1
                handle._run()
        self._end_if_late()

    def _take_timers(self) -> None:
        timers = self._timers
        if not self._listed:
            while timers and (timers[0][2]._cancelled or timers[0][2].process.state is ProcessState.DEAD):
                heapq.heappop(timers)
            if not timers:
                return
            self.now = max(self.now, timers[0][0])
            self._end_if_late()
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            process = handle.process
            if not handle._cancelled and process.state is not ProcessState.DEAD:
                process.ready.append(handle)  # type: ignore[arg-type]
                if process.state is ProcessState.RUNNING:
                    self.list_ready(process)

    def _end_if_late(self) -> None:
        if self.now > self.until and not self._is_over:
            self.until = float("inf")
            raise WorldStopped(f"the world is not over after {self.now:.0f} s:\n" + "\n".join(self.waiting_tasks()))

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, Any, Any],
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        process = (context or copy_context()).get(PROCESS, self.host)
        task = WorldTask(next(self._tasks), process, work, loop=loop, context=context)
        if self._is_over or process.state is ProcessState.DEAD:
            self.buried.append(task)
        return task

    def _note_error(self, loop: asyncio.AbstractEventLoop, found: dict[str, Any]) -> None:
        if self._is_over or "client_connection" in found:  # a client of the world that was stopped left it behind
            return
        error = found.get("exception")
        task = found.get("task") or found.get("future")
        process = task.process if isinstance(task, WorldTask) else PROCESS.get(self.host)
        at = "".join(traceback.format_exception(error)[-3:]) if isinstance(error, BaseException) else ""
        self.errors.append(f"{process.name}: {found.get('message')}: {task or found.get('handle')}\n{at}")

    def waiting_tasks(self) -> list[str]:
        """Every task that is not done, and the lines it waits in, the innermost last."""
        told = []
        for task in sorted(asyncio.all_tasks(self), key=hash):
            name = task.process.name if isinstance(task, WorldTask) else ""
            places, at = list[str](), task.get_coro()
            while at is not None and (frame := getattr(at, "cr_frame", None)) is not None:
                places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
                at = getattr(at, "cr_await", None)
            told.append(f"  {name}: {task.get_name()} waits at {' '.join(places[-4:])}")
        return told

    def end_world(self) -> None:
        """Nothing runs after this: tasks that wait are closed, and what they say on their way out is not heard."""
        self._is_over = True
        for task in (*self.buried, *asyncio.all_tasks(self)):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(BaseException):  # it may await in its `finally`, which is not carried out
                task.get_coro().close()  # type: ignore[union-attr]
        self._listed.clear()
        self._timers.clear()
        self.buried.clear()

    # -- threads --------------------------------------------------------------------------------------------------

    def run_in_executor(self, executor: Any, work: Any, *args: Any) -> "asyncio.Future[Any]":
        """The work is done at one moment between now and its end, and its result is known at the end."""
        process = PROCESS.get(self.host)
        works_at, ends = process.thread_times(executor)
        result, done = self.create_future(), list[tuple[bool, Any]]()
        context = copy_context()

        def carry_out() -> None:
            try:
                done.append((True, context.run(work, *args)))
            except BaseException as error:  # noqa: BLE001  # as a thread keeps what its work raised
                done.append((False, error))

        def tell() -> None:
            if not result.cancelled():
                is_good, value = done[0]
                result.set_result(value) if is_good else result.set_exception(value)

        self.call_at(works_at, carry_out)
        self.call_at(ends, tell)
        return result

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """There are no threads."""

    # -- connections ----------------------------------------------------------------------------------------------

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **given: Any) -> Any:
        return self.network.listen(protocol_factory, PROCESS.get(self.host), port)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **given: Any) -> Any:
        sock = given.get("sock")
        link = sock.link if sock is not None else await self.network.dial(PROCESS.get(self.host), host, port)
        return link.open(protocol_factory)

    async def getaddrinfo(self, host: Any, port: Any, **given: Any) -> Any:
        return [(2, 1, 6, "", (host, port))]

    async def sendfile(self, *given: Any, **named: Any) -> int:
        """Whoever sends a file reads it and writes it."""
        raise NotImplementedError


def current_process() -> Process | None:
    """The process that runs now; None outside of every world."""
    loop = events._get_running_loop()
    return PROCESS.get(loop.host) if isinstance(loop, WorldLoop) else None
