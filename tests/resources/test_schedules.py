"""Tasks are kept with their runs, are nobody else's, and know when they are due."""

from datetime import datetime

import pytest

from gateway.errors import Conflict, Invalid, NotFound, Overloaded
from gateway.quotas import SYSTEM_OWNER
from gateway.resources.schedules import PLACE, RUN, ScheduledTask, Schedules, TaskRun
from gateway.resources.schedules import TASK as TASKS
from gateway.storage.resources.memory import MemoryResources

NOON = datetime.fromisoformat("2026-01-01T12:00:00Z").timestamp()
TASK = ScheduledTask(title="t", prompt="p", cron="0 9 * * *", agent="a")


class Desk:
    def __init__(self) -> None:
        self.now = NOON
        self.resources = MemoryResources(lambda: self.now)
        self.schedules = Schedules(self.resources, lambda: self.now)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def schedules(desk: Desk) -> Schedules:
    return desk.schedules


async def test_a_task_is_kept_changed_and_removed(desk: Desk, schedules: Schedules) -> None:
    kept = await schedules.add("ada", TASK)
    assert kept.task_id.startswith("task_")
    assert kept.task.since == NOON
    desk.now += 60
    changed = await schedules.change("ada", kept.task_id, title="u")
    assert (changed.task.title, changed.task.since) == ("u", NOON + 60)
    assert [one.task for one in await schedules.of("ada")] == [changed.task]
    await schedules.remove("ada", kept.task_id)
    assert await schedules.of("ada") == []
    assert [one async for one in schedules.everybodys()] == []


async def test_other_peoples_are_not_found(schedules: Schedules) -> None:
    kept = await schedules.add("ada", TASK)
    for call in (
        schedules.find("bob", kept.task_id), schedules.change("bob", kept.task_id, title="x"),
        schedules.remove("bob", kept.task_id), schedules.runs("bob", kept.task_id),
    ):
        with pytest.raises(NotFound):
            await call
    assert await schedules.of("bob") == []
    assert [one.owner async for one in schedules.everybodys()] == ["ada"]


async def test_nonsense_is_refused_and_changes_nothing(schedules: Schedules) -> None:
    kept = await schedules.add("ada", TASK)
    for changes in ({"cron": "x"}, {"timezone": "Mars"}, {"expires_at": NOON - 1}):
        with pytest.raises(Invalid):
            await schedules.change("ada", kept.task_id, **changes)
    assert (await schedules.find("ada", kept.task_id)).task == kept.task


async def test_a_calendar_shows_when_tasks_are_due(schedules: Schedules) -> None:
    kept = await schedules.add("ada", ScheduledTask(**{**_fields(TASK), "expires_at": NOON + 3 * 86_400}))
    await schedules.add("ada", ScheduledTask(**{**_fields(TASK), "enabled": False}))
    ((found, times),) = await schedules.calendar("ada", NOON, NOON + 10 * 86_400)
    assert found.task_id == kept.task_id
    assert times == [NOON + 21 * 3600 + day * 86_400 for day in range(3)]
    ((_, times),) = await schedules.calendar("ada", NOON + 21 * 3600, NOON + 21 * 3600 + 1)
    assert len(times) == 1
    for start, end in ((NOON, NOON), (NOON, NOON - 1), (NOON, NOON + 400 * 86_400)):
        with pytest.raises(Invalid):
            await schedules.calendar("ada", start, end)


async def test_a_calendar_is_not_endless(schedules: Schedules) -> None:
    await schedules.add("ada", ScheduledTask(**{**_fields(TASK), "cron": "* * * * *"}))
    ((_, times),) = await schedules.calendar("ada", NOON, NOON + 300 * 86_400)
    assert len(times) == 1000


async def test_old_runs_are_forgotten(schedules: Schedules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.schedules.MAX_STORED_RUNS", 3)
    kept = await schedules.add("ada", TASK)
    for number in range(5):
        await schedules.began("ada", TaskRun(task_id=kept.task_id, triggered_at=float(number)), float(number))
    assert [run.run.triggered_at for run in await schedules.runs("ada", kept.task_id)] == [4, 3, 2]


async def test_a_user_has_so_many(schedules: Schedules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.schedules.MAX_TASKS", 1)
    await schedules.add("ada", TASK)
    with pytest.raises(Conflict):
        await schedules.add("ada", TASK)
    await schedules.add("bob", TASK)


def _fields(task: ScheduledTask) -> dict[str, object]:
    return {name: getattr(task, name) for name in task.__struct_fields__}


async def test_a_server_that_dies_while_a_task_is_made_leaves_none_that_nobody_runs(desk: Desk) -> None:
    """The store takes one thing more and then no more: either way, every task there is will be found."""
    desk.resources = MemoryResources(lambda: desk.now, lambda: 1)
    desk.schedules = Schedules(desk.resources, lambda: desk.now)
    with pytest.raises(Overloaded):
        await desk.schedules.add("ada", TASK)
    assert await desk.schedules.of("ada") == []
    assert [one async for one in desk.schedules.everybodys()] == []


async def test_a_task_goes_with_its_place_and_its_runs_at_once(desk: Desk, schedules: Schedules) -> None:
    kept = await schedules.add("ada", TASK)
    await schedules.began("ada", TaskRun(task_id=kept.task_id, triggered_at=NOON), NOON)
    await desk.resources.delete(TASKS, "ada", kept.task_id)
    assert await desk.resources.list(PLACE, SYSTEM_OWNER) == []
    assert await desk.resources.list(RUN, "ada") == []
