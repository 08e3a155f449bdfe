"""Scheduled tasks: what an agent is to be asked, when, and what became of it each time."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.errors import Conflict, GatewayError, Invalid, NotFound, Uncertain
from gateway.ids import unguessable
from gateway.ports import Clock, Resource, Resources
from gateway.quotas import HOUSE
from gateway.time_slices import turn

from .timetable import Timetable

TASK, PLACE, RUN = "task", "task_place", "run"
MOST, MOST_OF_ALL = 100, 10_000
"""How many tasks a user has, and how many there are in all."""
RUNS = 100
"""How many runs of a task are remembered."""
PAGE = 500
SPAN, OCCURRENCES, IN_ALL = 366 * 86_400.0, 1000, 5000
"""How far a calendar reaches, how often a task is shown in one, and how often all of them together."""
AT_A_TIME = 16
"""How many times are foreseen in one slice: each takes a tenth of a millisecond."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which agent, and when; `since` is when this began to hold."""

    title: str
    prompt: str
    cron: str
    timezone: str = "UTC"
    agent: str
    model: str | None = None
    enabled: bool = True
    unattended: bool = False
    """Whether tools that ask for permission may do without."""
    expires_at: float | None = None
    since: float = 0.0

    @property
    def timetable(self) -> Timetable:
        return Timetable(self.cron, self.timezone)

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a task was due: the turn it began, and what became of it."""

    task_id: str
    triggered_at: float
    session_id: str = ""
    turn_id: str | None = None
    after: int = 0
    status: str = "running"
    error: str | None = None
    finished_at: float | None = None


@dataclass(frozen=True, slots=True)
class KeptTask:
    task_id: str
    owner: str
    version: int
    task: Task


@dataclass(frozen=True, slots=True)
class KeptRun:
    run_id: str
    owner: str
    run: Run


class Schedules:
    """The tasks of all users in one store; other people's are not found.

    A task has a place of the house's, by which it is found without knowing whose it is. The place is made first: if the
    server dies in between there is a place without a task, which is passed over, and never a task that nobody finds.
    """

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock

    # -- tasks ----------------------------------------------------------------------------------------------------

    async def add(self, owner: str, task: Task) -> KeptTask:
        task = self._checked(replace(task, since=self._clock()))
        task_id = unguessable(TASK)
        try:
            await self._resources.create(
                PLACE, HOUSE, {"owner": owner}, resource_id=task_id, parent=task_id, most=MOST_OF_ALL)
            return await self._placed(owner, task_id, task)
        except Conflict:
            raise Conflict(
                f"you have {MOST} tasks already, or there are {MOST_OF_ALL} in all; delete one first") from None

    async def _placed(self, owner: str, task_id: str, task: Task) -> KeptTask:
        """The task itself; the place of one that is refused goes again."""
        try:
            body = msgspec.to_builtins(task)
            return _task(await self._resources.create(TASK, owner, body, resource_id=task_id, most=MOST))
        except Uncertain:
            raise
        except GatewayError:
            await self._resources.delete(PLACE, HOUSE, task_id)
            raise

    async def find(self, owner: str, task_id: str) -> KeptTask:
        return _task(await self._resources.get(TASK, owner, task_id))

    async def of(self, owner: str) -> list[KeptTask]:
        """In the order they were made."""
        return [_task(found) for found in await self._resources.list(TASK, owner, limit=MOST, oldest_first=True)]

    async def change(self, owner: str, task_id: str, **changes: Any) -> KeptTask:
        """What was missed under the old terms is not made up for under the new ones."""
        old = await self.find(owner, task_id)
        task = self._checked(replace(old.task, since=self._clock(), **changes))
        body = msgspec.to_builtins(task)
        return _task(await self._resources.update(TASK, owner, task_id, body, expected=old.version))

    async def remove(self, owner: str, task_id: str) -> None:
        """With its runs and its place, which belong to it."""
        await self._resources.delete(TASK, owner, task_id)

    async def everybodys(self) -> AsyncIterator[KeptTask]:
        after: int | None = None
        while page := await self._resources.list(PLACE, HOUSE, after=after, limit=PAGE, oldest_first=True):
            for number, place in enumerate(page):
                if number % AT_A_TIME == 0:
                    await turn()
                try:
                    kept = await self.find(place.body["owner"], place.resource_id)
                except NotFound:  # it was deleted while others were looked at, or never made
                    continue
                yield kept
            after = page[-1].ordinal

    async def calendar(self, owner: str, start: float, end: float) -> list[tuple[KeptTask, list[float]]]:
        """When each enabled task is due from one time to another; of many tasks, each is shown its share of times."""
        if not start < end <= start + SPAN:
            raise Invalid(f"to: must be after from, and at most {SPAN / 86_400:.0f} days later", param="to")
        enabled = [kept for kept in await self.of(owner) if kept.task.enabled]
        most = min(OCCURRENCES, IN_ALL // max(1, len(enabled)))
        return [(kept, await _due(kept.task, start, end, most)) for kept in enabled]

    def _checked(self, task: Task) -> Task:
        task.timetable.check()
        if task.enabled and task.expired(self._clock()):
            raise Invalid("expires_at: is over already", param="expires_at")
        return task

    # -- runs -----------------------------------------------------------------------------------------------------

    async def began(self, owner: str, run: Run, due: float) -> KeptRun:
        """Remember a run; the oldest ones are forgotten. `Conflict` if what was due then has begun already."""
        old = await self._resources.list(RUN, owner, parent=run.task_id, limit=RUNS + PAGE)
        for one in old[RUNS - 1:]:
            await self._resources.delete(RUN, owner, one.resource_id)
        return _run(await self._resources.create(
            RUN, owner, msgspec.to_builtins(run), parent=run.task_id, resource_id=_id_of(run.task_id, due),
        ))

    async def note(self, kept: KeptRun, **changes: Any) -> KeptRun:
        """What has become of a run since."""
        body = msgspec.to_builtins(replace(kept.run, **changes))
        return _run(await self._resources.update(RUN, kept.owner, kept.run_id, body))

    async def runs(self, owner: str, task_id: str, limit: int = RUNS) -> Sequence[KeptRun]:
        """Newest first."""
        await self.find(owner, task_id)
        return [_run(found) for found in await self._resources.list(RUN, owner, parent=task_id, limit=limit)]


async def _due(task: Task, start: float, end: float, most: int) -> list[float]:
    end = min(end, task.expires_at or end)
    times: list[float] = []
    coming = task.timetable.times_after(start - 1e-6)
    while len(times) < most:
        await turn()
        some = list(islice(coming, min(AT_A_TIME, most - len(times))))
        times += [time for time in some if time < end]
        if len(some) < AT_A_TIME or some[-1] >= end:
            break
    return times


def _id_of(task_id: str, due: float) -> str:
    """The same for all servers that share a store: what was due at one time is begun by one of them."""
    return f"{RUN}_{sha256(f'{task_id} {due:.0f}'.encode()).hexdigest()[:24]}"


def _task(found: Resource) -> KeptTask:
    return KeptTask(found.resource_id, found.owner, found.version, msgspec.convert(found.body, Task))


def _run(found: Resource) -> KeptRun:
    return KeptRun(found.resource_id, found.owner, msgspec.convert(found.body, Run))
