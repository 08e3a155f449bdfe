"""Scheduled tasks: the prompt for an agent, when it is sent, and what became of each run."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from gateway.errors import Conflict, GatewayError, Invalid, NotFound, OutcomeUnknown
from gateway.ids import random_id
from gateway.ports import Clock, Resource, Resources
from gateway.quotas import SYSTEM_OWNER
from gateway.time_slices import next_slice

TASK, PLACE, RUN = "task", "task_place", "run"
MAX_TASKS, MAX_TASKS_IN_ALL = 100, 10_000
"""How many tasks a user has, and how many there are in all."""
MAX_STORED_RUNS = 100
"""How many runs of a task are stored."""
PAGE = 500
SPAN, OCCURRENCES, MAX_OCCURRENCES_IN_ALL = 366 * 86_400.0, 1000, 5000
"""How far a calendar reaches, how often a task is shown in one, and how often all of them together."""
AT_A_TIME = 16
"""How many times are computed in one slice: each takes a tenth of a millisecond."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """A cron expression and the time zone whose clocks it means."""

    cron: str
    timezone: str = "UTC"

    def check(self) -> None:
        """Refuse a wrong cron expression, an unknown time zone, and a time that never comes."""
        from croniter import croniter  # type: ignore[import-untyped]  # 2 MB, which a server without schedules spares

        _zone(self.timezone)
        words = self.cron.split()
        if len(words) != FIELDS or not croniter.is_valid(self.cron) or any(word[0] in RANDOM_FIELDS for word in words):
            raise Invalid(f"cron: '{self.cron}' is not five fields of cron, such as '0 9 * * 1-5'", param="cron")
        if self.next_after(datetime.now(UTC).timestamp()) is None:
            raise Invalid(f"cron: '{self.cron}' never comes", param="cron")

    def next_after(self, at: float) -> float | None:
        """The first time after that, in seconds since the epoch."""
        return next(self.times_after(at), None)

    def times_after(self, at: float) -> Iterator[float]:
        """Every time after that, up to the year 9999; none if it never comes."""
        from croniter import CroniterError, croniter

        try:
            start = datetime.fromtimestamp(at, _zone(self.timezone))
        except (ValueError, OverflowError):
            return
        times, shown, fixed = croniter(self.cron, start), start.replace(tzinfo=None), "*" not in self.cron.split()[HOUR]
        while True:
            try:
                found: datetime = times.get_next(datetime)
            except (CroniterError, ValueError, OverflowError):  # croniter's own is one of the second kind
                return
            clock = found.replace(tzinfo=None)
            if clock > shown or not fixed:  # an hour that clocks show twice is one time, unless every hour is meant
                yield found.timestamp()
            shown = max(clock, shown)


class ScheduledTask(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt, its agent and its timetable; `since` is when the task was created or last changed."""

    title: str
    prompt: str
    cron: str
    timezone: str = "UTC"
    agent: str
    model: str | None = None
    enabled: bool = True
    unattended: bool = False
    """Whether tools that ask for permission may run without it."""
    expires_at: float | None = None
    since: float = 0.0

    @property
    def timetable(self) -> Timetable:
        return Timetable(self.cron, self.timezone)

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


RunStatus = Literal["running", "completed", "failed"]


class TaskRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a task: its turn, and what became of it."""

    task_id: str
    triggered_at: float
    session_id: str = ""
    turn_id: str | None = None
    after: int = 0
    status: RunStatus = "running"
    error: str | None = None
    finished_at: float | None = None


@dataclass(frozen=True, slots=True)
class StoredTask:
    task_id: str
    owner: str
    version: int
    task: ScheduledTask


@dataclass(frozen=True, slots=True)
class StoredRun:
    run_id: str
    owner: str
    run: TaskRun


class Schedules:
    """The tasks of all users in one store; the tasks of other users are not found.

    For each task the server has a resource of its own, the place, by which the scheduler finds the task and its owner.
    The place is created first: if the server dies in between, there is a place without a task, which is skipped.
    """

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock

    # -- tasks ----------------------------------------------------------------------------------------------------

    async def add(self, owner: str, task: ScheduledTask, task_id: str | None = None) -> StoredTask:
        task = self._checked(replace(task, since=self._clock()))
        task_id = task_id or random_id(TASK)
        try:
            await self._resources.create(
                PLACE, SYSTEM_OWNER, {"owner": owner}, resource_id=task_id, parent=task_id, most=MAX_TASKS_IN_ALL)
            return await self._placed(owner, task_id, task)
        except Conflict:
            raise Conflict(
                f"you have {MAX_TASKS} tasks already, or there are {MAX_TASKS_IN_ALL} in all; delete one first"
            ) from None

    async def _placed(self, owner: str, task_id: str, task: ScheduledTask) -> StoredTask:
        """Create the task; if it is refused, delete its place."""
        try:
            body = msgspec.to_builtins(task)
            return _task(await self._resources.create(TASK, owner, body, resource_id=task_id, most=MAX_TASKS))
        except OutcomeUnknown:
            raise
        except GatewayError:
            await self._resources.delete(PLACE, SYSTEM_OWNER, task_id)
            raise

    async def find(self, owner: str, task_id: str) -> StoredTask:
        return _task(await self._resources.get(TASK, owner, task_id))

    async def of(self, owner: str) -> list[StoredTask]:
        """The tasks of an owner, in the order in which they were created."""
        return [_task(found) for found in await self._resources.list(TASK, owner, limit=MAX_TASKS, oldest_first=True)]

    async def change(self, owner: str, task_id: str, **changes: object) -> StoredTask:
        """Change the task; runs that were missed before the change are not made up for."""
        old = await self.find(owner, task_id)
        task = self._checked(replace(old.task, since=self._clock(), **changes))
        body = msgspec.to_builtins(task)
        return _task(await self._resources.update(TASK, owner, task_id, body, expected=old.version))

    async def remove(self, owner: str, task_id: str) -> None:
        """Delete the task with its runs and its place."""
        await self._resources.delete(TASK, owner, task_id)

    async def everybodys(self) -> AsyncIterator[StoredTask]:
        after: int | None = None
        while page := await self._resources.list(PLACE, SYSTEM_OWNER, after=after, limit=PAGE, oldest_first=True):
            for number, place in enumerate(page):
                if number % AT_A_TIME == 0:
                    await next_slice()
                try:
                    kept = await self.find(place.body["owner"], place.resource_id)
                except NotFound:  # the task was deleted meanwhile, or was never created
                    continue
                yield kept
            after = page[-1].ordinal

    async def calendar(self, owner: str, start: float, end: float) -> list[tuple[StoredTask, list[float]]]:
        """When each enabled task is due from one time to another; of many tasks, each is shown its share of times."""
        if not start < end <= start + SPAN:
            raise Invalid(f"to: must be after from, and at most {SPAN / 86_400:.0f} days later", param="to")
        enabled = [kept for kept in await self.of(owner) if kept.task.enabled]
        most = min(OCCURRENCES, MAX_OCCURRENCES_IN_ALL // max(1, len(enabled)))
        return [(kept, await _due(kept.task, start, end, most)) for kept in enabled]

    def _checked(self, task: ScheduledTask) -> ScheduledTask:
        task.timetable.check()
        if task.enabled and task.expired(self._clock()):
            raise Invalid("expires_at: is over already", param="expires_at")
        return task

    # -- runs -----------------------------------------------------------------------------------------------------

    async def began(self, owner: str, run: TaskRun, due: float | None) -> StoredRun:
        """Store a run and delete the oldest ones; `Conflict` if the run that was due then has begun already.

        A run that was started by hand was due at no time.
        """
        old = await self._resources.list(RUN, owner, parent=run.task_id, limit=MAX_STORED_RUNS + PAGE)
        for one in old[MAX_STORED_RUNS - 1:]:
            await self._resources.delete(RUN, owner, one.resource_id)
        return _run(await self._resources.create(
            RUN, owner, msgspec.to_builtins(run), parent=run.task_id,
            resource_id=random_id(RUN) if due is None else _id_of(run.task_id, due),
        ))

    async def note(self, kept: StoredRun, **changes: object) -> StoredRun:
        """Store what has become of a run."""
        body = msgspec.to_builtins(replace(kept.run, **changes))
        return _run(await self._resources.update(RUN, kept.owner, kept.run_id, body))

    async def runs(self, owner: str, task_id: str, limit: int = MAX_STORED_RUNS) -> Sequence[StoredRun]:
        """The runs of a task, newest first."""
        await self.find(owner, task_id)
        return [_run(found) for found in await self._resources.list(RUN, owner, parent=task_id, limit=limit)]


async def _due(task: ScheduledTask, start: float, end: float, most: int) -> list[float]:
    end = min(end, task.expires_at or end)
    times: list[float] = []
    coming = task.timetable.times_after(start - 1e-6)
    while len(times) < most:
        await next_slice()
        some = list(islice(coming, min(AT_A_TIME, most - len(times))))
        times += [time for time in some if time < end]
        if len(some) < AT_A_TIME or some[-1] >= end:
            break
    return times


def _id_of(task_id: str, due: float) -> str:
    """The id of a run, which is the same on all servers: only one of them can create the run."""
    return f"{RUN}_{sha256(f'{task_id} {due:.0f}'.encode()).hexdigest()[:24]}"


def _task(found: Resource) -> StoredTask:
    return StoredTask(found.resource_id, found.owner, found.version, msgspec.convert(found.body, ScheduledTask))


def _run(found: Resource) -> StoredRun:
    return StoredRun(found.resource_id, found.owner, msgspec.convert(found.body, TaskRun))


FIELDS, HOUR = 5, 1
RANDOM_FIELDS = "hHrR"
"""Words of croniter for a random time, which no scheduler can compute again."""


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Invalid(f"timezone: there is no time zone '{name}'", param="timezone") from None
