"""The scheduler: starts tasks that are due, once however often they were missed, and stores how each run ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound, OutcomeUnknown
from gateway.json_values import JsonValue
from gateway.ports import Clock, SessionService
from gateway.supervision import exception_of

from .schedules import ScheduledTask, Schedules, StoredRun, StoredTask, TaskRun

log = structlog.get_logger("dragoman.schedules")

MINUTE, POLL_SECONDS = 60.0, 1.0
"""Cron counts minutes; while a task runs, its session is looked at every second."""
MAX_CONCURRENT_RUNS = 8
"""How many tasks run at a time; the others wait."""


class Scheduler:
    """Starts tasks as long as it runs; the clock and the way to wait are given, so that tests can control both."""

    def __init__(
        self,
        schedules: Schedules,
        sessions: SessionService,
        agents: Callable[[], Mapping[str, m.AgentCard]],
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self._schedules = schedules
        self._sessions = sessions
        self._agents = agents
        self._clock = clock
        self._sleep = sleep
        self._is_open = is_open
        self._next: dict[tuple[str, int], float | None] = {}
        self._running: dict[str, StoredRun] | None = None
        self._minute = -1.0
        self._followers: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Start tasks until cancelled; an error in one round is logged, and the next round begins in time."""
        while True:
            if self._is_open():
                error = await exception_of(self.tick())
                if isinstance(error, GatewayError):
                    log.warning("schedule_lookup_failed", error=error.message)
                elif error is not None:
                    log.error("scheduler_failed", exc_info=error)
            else:  # another server may start tasks: its runs are read when this server starts tasks again
                self._running, self._next, self._minute = None, {}, -1.0
            wait = POLL_SECONDS if self._running or not self._is_open() else MINUTE - self._clock() % MINUTE
            await self._sleep(wait)

    async def tick(self) -> None:
        """Look at the runs, then start tasks that are due: tasks become due by a new minute or the end of a run."""
        running = await self._known() if self._running is None else self._running
        self._running = {task_id: run for task_id, run in running.items() if not await self._settled(run)}
        minute = self._clock() // MINUTE
        if minute != self._minute or len(self._running) < len(running):
            await self._look()
        self._minute = minute

    async def _look(self) -> None:
        """Visit all tasks, in the order in which they were created."""
        running = self._running = self._running or {}
        kept: dict[tuple[str, int], float | None] = {}
        async for task in self._schedules.everybodys():
            try:
                kept[task.task_id, task.version] = await self._visit(task, running)
            except GatewayError as error:  # nothing can be stored, and the task is still due; or it was just deleted
                log.warning("task_start_failed", task=task.task_id, error=error.message)
        self._next = kept

    async def _visit(self, task: StoredTask, running: dict[str, StoredRun]) -> float | None:
        """Start the task if it is due; return when it is due next."""
        due = await self._due(task)
        if due is None or due > self._clock() or task.task_id in running or len(running) >= MAX_CONCURRENT_RUNS:
            return due
        with suppress(Conflict):  # another server has started it
            await self._start(task, due, running)
        return task.task.timetable.next_after(self._clock())

    async def _known(self) -> dict[str, StoredRun]:
        """The runs that had not ended when the server stopped."""
        running: dict[str, StoredRun] = {}
        async for task in self._schedules.everybodys():
            with suppress(NotFound):  # the task was just deleted
                for run in await self._schedules.runs(task.owner, task.task_id, 1):
                    if run.run.status == "running":
                        running[task.task_id] = run
        return running

    # -- starting -------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether this server starts tasks that are due."""
        return self._is_open()

    async def start_now(self, owner: str, task_id: str) -> StoredRun:
        """Start a task whatever its timetable says; `Conflict` if its last run has not ended."""
        task = await self._schedules.find(owner, task_id)
        last = await self._schedules.runs(owner, task_id, 1)
        if last and last[0].run.status == "running":
            raise Conflict(f"task '{task_id}' is running already")
        running: dict[str, StoredRun] = {}
        run = await self._start(task, None, running)
        if running:
            self._followers[task_id] = asyncio.create_task(self._follow(run), name=f"task {task_id}")
        return run

    async def wait_until_ended(self, task_id: str, seconds: float) -> None:
        """Wait until the run of a task that was started by hand has ended, for so many seconds at most."""
        if (follower := self._followers.get(task_id)) is not None:
            await asyncio.wait((follower,), timeout=seconds)

    async def _follow(self, run: StoredRun) -> None:
        """Store how a run that was started by hand ends; if the server stops before, the next one does."""
        while not await self._settled(run):
            await self._sleep(POLL_SECONDS)
        self._followers.pop(run.run.task_id, None)

    async def close(self) -> None:
        for follower in [*self._followers.values()]:
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower

    async def _due(self, kept: StoredTask) -> float | None:
        """When the task is due next, counted from its last run or from when it was enabled."""
        if not kept.task.enabled or kept.task.expired(self._clock()):
            return None
        if (kept.task_id, kept.version) not in self._next:
            last = await self._schedules.runs(kept.owner, kept.task_id, 1)
            since = max([kept.task.since, *(run.run.triggered_at for run in last)])
            return kept.task.timetable.next_after(since)
        return self._next[kept.task_id, kept.version]

    async def _start(self, kept: StoredTask, due: float | None, running: dict[str, StoredRun]) -> StoredRun:
        """Store the run, then start it: if the server dies in between, the task is not started twice."""
        now = self._clock()
        run = await self._schedules.began(kept.owner, TaskRun(task_id=kept.task_id, triggered_at=now), due)
        try:
            session_id, turn_id, after = await self._ask(kept)
            running[kept.task_id] = run = await self._note(run, session_id=session_id, turn_id=turn_id, after=after)
        except GatewayError as error:
            run = await self._note(run, status="failed", error=error.message, finished_at=now)
        log.info("task_started", task=kept.task_id, session=run.run.session_id, status=run.run.status)
        return run

    async def _ask(self, kept: StoredTask) -> tuple[str, str | None, int]:
        """Send the prompt of the task to a new session."""
        view = await self._sessions.create(
            kept.owner, kept.task.agent, settings=self._settings(kept.task), title=kept.task.title,
            metadata={"task_id": kept.task_id},
        )
        try:
            receipt = await self._sessions.submit(
                kept.owner, view.session_id, [m.SendMessage(content=kept.task.prompt)]
            )
        except OutcomeUnknown:
            raise
        except GatewayError:  # the session would stay empty
            await self._sessions.delete(kept.owner, view.session_id)
            raise
        return view.session_id, receipt.turn_id, receipt.after

    def _settings(self, task: ScheduledTask) -> m.Settings:
        card = self._agents().get(task.agent)
        if not task.unattended or card is None:
            return m.Settings(model=task.model)
        allowed = {m.Permission.ASK: m.Permission.ALLOW}
        tools = {tool.spec.name: allowed.get(tool.permission, tool.permission) for tool in card.tools}
        return m.Settings(model=task.model, tools=tools)

    # -- ending ---------------------------------------------------------------------------------------------------

    async def _settled(self, kept: StoredRun) -> bool:
        """Whether the turn has ended; if it has, its outcome is stored."""
        run = kept.run
        try:
            view = await self._sessions.get(kept.owner, run.session_id)
            if view.status in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED) and view.turn_id == run.turn_id:
                return False
            ended = await self._end_of(kept)
        except NotFound:
            ended = None
        await self._write_down(kept, ended)
        return True

    async def _end_of(self, kept: StoredRun) -> m.TurnEnded | None:
        records = await self._sessions.records(kept.owner, kept.run.session_id, kept.run.after)
        ends = (one.event for one in records if isinstance(one.event, m.TurnEnded) and one.turn_id == kept.run.turn_id)
        return next(ends, None)

    async def _write_down(self, kept: StoredRun, ended: m.TurnEnded | None) -> None:
        if ended is not None and ended.outcome is m.Outcome.COMPLETED:
            await self._note(kept, status="completed", finished_at=self._clock())
            return
        gone = "the session is gone" if kept.run.session_id else "the server stopped before it could begin"
        error = ended.fault.message if ended and ended.fault else "interrupted" if ended else gone
        await self._note(kept, status="failed", error=error, finished_at=self._clock())

    async def _note(self, kept: StoredRun, **changes: JsonValue) -> StoredRun:
        """Store what became of a run; its task may have been deleted meanwhile, with all runs."""
        try:
            return await self._schedules.note(kept, **changes)
        except GatewayError as error:
            log.warning("task_run_not_stored", task=kept.run.task_id, error=error.message)
            return StoredRun(kept.run_id, kept.owner, replace(kept.run, **changes))
