"""The scheduler: starts what is due, once however much was missed, and writes down how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from gateway.errors import GatewayError, NotFound
from gateway.model import AgentCard, Outcome, Permission, SendMessage, SessionStatus, Settings, TurnEnded
from gateway.ports import Clock, Sessions

from .schedules import KeptRun, KeptTask, Run, Schedules, Task

log = structlog.get_logger("dragoman.schedules")

MINUTE, PACE = 60.0, 1.0
"""Cron counts minutes; while something runs, it is looked at every second."""
AT_ONCE = 8
"""How many runs there are at a time; what is due beyond that waits."""


class Scheduler:
    """One task of the event loop; the clock and the way to wait are given, so that a test can be both."""

    def __init__(
        self, schedules: Schedules, sessions: Sessions, agents: Callable[[], Mapping[str, AgentCard]], clock: Clock,
        *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self._schedules = schedules
        self._sessions = sessions
        self._agents = agents
        self._clock = clock
        self._sleep = sleep
        self._is_open = is_open
        self._next: dict[tuple[str, int], float | None] = {}
        self._running: dict[str, KeptRun] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if self._is_open():
                try:
                    await self.tick()
                except Exception:  # a mistake in one round must not be the end of all tasks
                    log.exception("the scheduler stumbled")
            wait = PACE if self._running or not self._is_open() else MINUTE - self._clock() % MINUTE
            await self._sleep(wait)

    async def tick(self) -> None:
        """Look after what runs, then start what is due."""
        running = await self._known() if self._running is None else self._running
        self._running = {task_id: run for task_id, run in running.items() if not await self._settled(run)}
        kept: dict[tuple[str, int], float | None] = {}
        async for task in self._schedules.everybodys():
            due = kept[task.task_id, task.version] = await self._due(task)
            if due is None or due > self._clock() or task.task_id in self._running or len(self._running) >= AT_ONCE:
                continue
            kept[task.task_id, task.version] = task.task.timetable.next_after(self._clock())
            await self._start(task)
        self._next = kept

    async def _known(self) -> dict[str, KeptRun]:
        """What was running when the server stopped."""
        running: dict[str, KeptRun] = {}
        async for task in self._schedules.everybodys():
            for run in await self._schedules.runs(task.owner, task.task_id, 1):
                if run.run.status == "running":
                    running[task.task_id] = run
        return running

    # -- starting -------------------------------------------------------------------------------------------------

    async def _due(self, kept: KeptTask) -> float | None:
        """When the task is next to run, counted from its last run or from when it began to hold."""
        if not kept.task.enabled or kept.task.expired(self._clock()):
            return None
        if (kept.task_id, kept.version) not in self._next:
            last = await self._schedules.runs(kept.owner, kept.task_id, 1)
            since = max([kept.task.since, *(run.run.triggered_at for run in last)])
            return kept.task.timetable.next_after(since)
        return self._next[kept.task_id, kept.version]

    async def _start(self, kept: KeptTask) -> None:
        now, owner = self._clock(), kept.owner
        session_id = ""
        try:
            session_id, turn_id, after = await self._ask(kept)
            run = Run(task_id=kept.task_id, triggered_at=now, session_id=session_id, turn_id=turn_id, after=after)
        except GatewayError as error:
            run = Run(
                task_id=kept.task_id, triggered_at=now, session_id=session_id, status="failed", error=error.message,
                finished_at=now,
            )
        began = await self._schedules.began(owner, run)
        if run.status == "running" and self._running is not None:
            self._running[kept.task_id] = began
        log.info("a task was started", task=kept.task_id, session=run.session_id, status=run.status)

    async def _ask(self, kept: KeptTask) -> tuple[str, str | None, int]:
        """A session of its own, with the prompt as what somebody said."""
        view = await self._sessions.create(
            kept.owner, kept.task.agent, settings=self._settings(kept.task), title=kept.task.title,
            metadata={"task_id": kept.task_id},
        )
        receipt = await self._sessions.submit(kept.owner, view.session_id, [SendMessage(content=kept.task.prompt)])
        return view.session_id, receipt.turn_id, receipt.after

    def _settings(self, task: Task) -> Settings:
        card = self._agents().get(task.agent)
        if not task.unattended or card is None:
            return Settings(model=task.model)
        allowed = {Permission.ASK: Permission.ALLOW}
        tools = {tool.spec.name: allowed.get(tool.permission, tool.permission) for tool in card.tools}
        return Settings(model=task.model, tools=tools)

    # -- ending ---------------------------------------------------------------------------------------------------

    async def _settled(self, kept: KeptRun) -> bool:
        """Whether the turn is over; how, is written down."""
        run = kept.run
        try:
            view = await self._sessions.get(kept.owner, run.session_id)
            if view.status in (SessionStatus.RUNNING, SessionStatus.SUSPENDED) and view.turn_id == run.turn_id:
                return False
            ended = await self._end_of(kept)
        except NotFound:
            ended = None
        try:
            await self._write_down(kept, ended)
        except NotFound:  # the task was deleted meanwhile, and its runs with it
            log.info("a task ended that is no more", task=run.task_id)
        return True

    async def _end_of(self, kept: KeptRun) -> TurnEnded | None:
        records = await self._sessions.records(kept.owner, kept.run.session_id, kept.run.after)
        ends = (one.event for one in records if isinstance(one.event, TurnEnded) and one.turn_id == kept.run.turn_id)
        return next(ends, None)

    async def _write_down(self, kept: KeptRun, ended: TurnEnded | None) -> None:
        if ended is not None and ended.outcome is Outcome.COMPLETED:
            await self._schedules.ended(kept, status="completed", finished_at=self._clock())
            return
        error = ended.fault.message if ended and ended.fault else "interrupted" if ended else "the session is gone"
        await self._schedules.ended(kept, status="failed", error=error, finished_at=self._clock())
