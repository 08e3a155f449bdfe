"""What is due is started, once however much was missed; how it ended is written down."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime

import pytest
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent, Turn
from gateway.quotas import NoLimits
from gateway.resources.scheduler import Scheduler
from gateway.resources.schedules import ScheduledTask, Schedules, StoredRun, StoredTask, TaskRun
from gateway.storage.resources.memory import MemoryResources
from tests.support.engine.engine_fixture import EngineFixture
from tests.support.gateway_server import until

NOON = datetime.fromisoformat("2026-01-01T12:00:00Z").timestamp()
HOUR = 3600.0
TASK = ScheduledTask(title="hourly", prompt="report", cron="0 * * * *", agent="agent")


async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    assert isinstance(turn.command, m.SendMessage)
    yield m.NoticePosted(topic="t", title="at work")
    if turn.command.content == "break":
        raise BackendFailed("it broke")
    if turn.command.content == "ask":
        await turn.ask(m.QuestionAsk(questions=(m.Question(question="Which?"),)))


class Desk:
    """An engine, a store, and a scheduler whose time is told by the test."""

    def __init__(self) -> None:
        self.stage = EngineFixture(play)
        self.stage.now = NOON
        self.room = 1000
        self.resources = MemoryResources(lambda: self.stage.now, lambda: self.room)
        self.schedules = Schedules(self.resources, lambda: self.stage.now)
        self.scheduler = self.again()

    def again(self) -> Scheduler:
        """As after a restart."""
        return Scheduler(
            self.schedules, self.stage.service, lambda: self.stage.runtime.agents, lambda: self.stage.now,
        )

    async def at(self, seconds: float) -> None:
        self.stage.now = NOON + seconds
        await self.scheduler.tick()

    async def add(self, **changes: object) -> StoredTask:
        return await self.schedules.add("ada", replace(TASK, **changes))

    async def runs(self, kept: StoredTask) -> list[TaskRun]:
        return [run.run for run in await self.schedules.runs("ada", kept.task_id)]

    async def quiet(self) -> None:
        """Until no turn runs."""
        await until(lambda: not self.stage.table.turn_count)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_task_runs_when_it_is_due_and_its_outcome_is_written_down(desk: Desk) -> None:
    kept = await desk.add()
    await desk.at(HOUR - 1)
    assert await desk.runs(kept) == []
    await desk.at(HOUR)
    (run,) = await desk.runs(kept)
    assert (run.status, run.triggered_at, run.finished_at) == ("running", NOON + HOUR, None)
    view = await desk.stage.service.get("ada", run.session_id)
    assert (view.title, view.entries[0].content) == ("hourly", "report")
    await desk.quiet()
    await desk.at(HOUR + 2)
    (run,) = await desk.runs(kept)
    assert (run.status, run.error, run.finished_at) == ("completed", None, NOON + HOUR + 2)


async def test_what_was_missed_is_run_once(desk: Desk) -> None:
    kept = await desk.add()
    await desk.at(10 * HOUR + 5)
    assert len(await desk.runs(kept)) == 1
    await desk.quiet()
    await desk.at(10 * HOUR + 6)
    await desk.at(11 * HOUR)
    assert [run.triggered_at - NOON for run in await desk.runs(kept)] == [11 * HOUR, 10 * HOUR + 5]


async def test_after_a_restart_it_goes_on_where_it_was(desk: Desk) -> None:
    kept = await desk.add()
    await desk.at(HOUR)
    await desk.quiet()
    desk.scheduler = desk.again()
    await desk.at(HOUR + 30)
    assert [run.status for run in await desk.runs(kept)] == ["completed"]
    desk.scheduler = desk.again()
    await desk.at(5 * HOUR)
    assert len(await desk.runs(kept)) == 2


async def test_how_it_failed_is_written_down(desk: Desk) -> None:
    broken = await desk.add(prompt="break")
    await desk.at(HOUR)
    await desk.quiet()
    await desk.at(HOUR + 1)
    (run,) = await desk.runs(broken)
    assert (run.status, run.error) == ("failed", "it broke")


async def test_a_task_without_its_agent_fails_at_once(desk: Desk) -> None:
    kept = await desk.add(agent="gone")
    await desk.at(HOUR)
    (run,) = await desk.runs(kept)
    assert (run.status, run.session_id, run.finished_at) == ("failed", "", NOON + HOUR)
    assert run.error == "there is no agent 'gone'"
    await desk.at(HOUR + 1)
    assert len(await desk.runs(kept)) == 1


async def test_a_task_for_which_there_is_no_room_leaves_no_session_behind(desk: Desk) -> None:
    desk.stage.runtime.tally.quota = lambda: NoLimits(turns=1)
    desk.stage.runtime.tally.add("ada", turns=1)
    kept = await desk.add()
    await desk.at(HOUR)
    (run,) = await desk.runs(kept)
    assert (run.status, run.session_id) == ("failed", "")
    assert run.error == "you run 1 turns, and may run 1 at once; wait until one has ended"
    assert desk.stage.runtime.log.session_count == 0


async def test_a_deleted_session_is_a_failed_run(desk: Desk) -> None:
    kept = await desk.add(prompt="ask")
    await desk.at(HOUR)
    await desk.stage.service.delete("ada", (await desk.runs(kept))[0].session_id)
    await desk.at(HOUR + 1)
    assert [(run.status, run.error) for run in await desk.runs(kept)] == [("failed", "the session is gone")]


async def test_a_task_that_still_runs_is_not_started_again(desk: Desk) -> None:
    kept = await desk.add(prompt="ask")
    await desk.at(HOUR)
    (run,) = await desk.runs(kept)
    view = await desk.stage.service.get("ada", run.session_id)
    await until(lambda: view.status is m.SessionStatus.SUSPENDED)
    await desk.at(3 * HOUR)
    assert [run.status for run in await desk.runs(kept)] == ["running"]
    await desk.stage.service.delete("ada", run.session_id)
    await desk.at(3 * HOUR + 1)
    assert [run.triggered_at - NOON for run in await desk.runs(kept)] == [3 * HOUR + 1, HOUR]


async def test_a_task_that_is_off_or_over_does_not_run(desk: Desk) -> None:
    kept = await desk.add(expires_at=NOON + HOUR)
    other = await desk.add(enabled=False)
    await desk.at(2 * HOUR)
    assert await desk.runs(kept) == await desk.runs(other) == []
    await desk.schedules.change("ada", other.task_id, enabled=True)
    await desk.at(2 * HOUR + 1)
    assert await desk.runs(other) == []
    await desk.at(3 * HOUR)
    assert len(await desk.runs(other)) == 1


async def test_a_task_that_is_deleted_while_it_runs_is_forgotten(desk: Desk) -> None:
    kept = await desk.add()
    await desk.at(HOUR)
    await desk.schedules.remove("ada", kept.task_id)
    await desk.quiet()
    await desk.at(HOUR + 1)
    await desk.at(2 * HOUR)


async def test_only_so_many_run_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.scheduler.MAX_CONCURRENT_RUNS", 2)
    tasks = [await desk.add() for _ in range(3)]
    await desk.at(HOUR)
    assert [len(await desk.runs(task)) for task in tasks] == [1, 1, 0]
    await desk.quiet()
    await desk.at(HOUR + 1)
    assert [len(await desk.runs(task)) for task in tasks] == [1, 1, 1]


async def test_it_waits_for_the_next_minute_and_looks_often_while_something_runs(desk: Desk) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        desk.stage.now += seconds
        await desk.quiet()
        if len(waits) == 3:
            raise asyncio.CancelledError

    await desk.add(cron="* * * * *")
    desk.stage.now += 50
    scheduler = Scheduler(
        desk.schedules, desk.stage.service, lambda: desk.stage.runtime.agents, lambda: desk.stage.now, sleep=sleep,
    )
    with pytest.raises(asyncio.CancelledError):
        await scheduler.run()
    assert waits == [10, 1, 59]


async def test_nothing_is_started_while_the_server_stops(desk: Desk) -> None:
    async def sleep(seconds: float) -> None:
        raise asyncio.CancelledError

    kept = await desk.add()
    desk.stage.now += 2 * HOUR
    scheduler = Scheduler(
        desk.schedules, desk.stage.service, lambda: desk.stage.runtime.agents, lambda: desk.stage.now, sleep=sleep,
        is_open=lambda: False,
    )
    with pytest.raises(asyncio.CancelledError):
        await scheduler.run()
    assert await desk.runs(kept) == []


# -- a server that dies on the way, or has no room --------------------------------------------------------------------

async def test_a_run_that_was_about_to_begin_when_the_server_died_is_not_begun_again(desk: Desk) -> None:
    kept = await desk.add()
    await desk.schedules.began("ada", TaskRun(task_id=kept.task_id, triggered_at=NOON + HOUR), NOON + HOUR)
    desk.scheduler = desk.again()
    await desk.at(HOUR + 5)
    (run,) = await desk.runs(kept)
    assert (run.status, run.error) == ("failed", "the server stopped before it could begin")
    await desk.at(2 * HOUR)
    assert [run.triggered_at - NOON for run in await desk.runs(kept)] == [2 * HOUR, HOUR]


async def test_that_a_task_is_due_is_written_down_before_it_starts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = await desk.add()

    async def die(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(desk.stage.service, "create", die)
    with pytest.raises(KeyboardInterrupt):
        await desk.at(HOUR)
    assert [(run.status, run.session_id) for run in await desk.runs(kept)] == [("running", "")]


async def test_where_nothing_can_be_stored_nothing_is_started_and_others_are_not_held_up(desk: Desk) -> None:
    kept, other = await desk.add(), await desk.add(cron="30 * * * *")
    desk.room = 0
    await desk.at(HOUR)
    assert (await desk.runs(kept), desk.stage.runtime.log.session_count) == ([], 0)
    desk.room = 1000
    await desk.at(HOUR + 60)
    assert [run.triggered_at - NOON for run in await desk.runs(kept)] == [HOUR + 60]
    assert [run.triggered_at - NOON for run in await desk.runs(other)] == [HOUR + 60]


async def test_all_tasks_are_looked_through_once_a_minute_or_when_a_run_has_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[float] = []
    everybodys = desk.schedules.everybodys

    def counted() -> object:
        looks.append(desk.stage.now - NOON)
        return everybodys()

    kept = await desk.add(prompt="ask")
    await desk.at(0)
    monkeypatch.setattr(desk.schedules, "everybodys", counted)
    for second in (1, 59, 60, 61, HOUR, HOUR + 1, HOUR + 2):
        await desk.at(second)
    assert looks == [60, HOUR]
    await desk.stage.service.delete("ada", (await desk.runs(kept))[0].session_id)
    await desk.at(HOUR + 3)
    assert looks == [60, HOUR, HOUR + 3]


async def test_a_task_that_is_deleted_while_others_are_looked_at_is_passed_over(desk: Desk) -> None:
    first, second = await desk.add(), await desk.add()
    start = desk.scheduler._start

    async def start_and_delete(kept: StoredTask, due: float, running: dict[str, StoredRun]) -> None:
        await start(kept, due, running)
        await desk.schedules.remove("ada", second.task_id)

    desk.scheduler._start = start_and_delete  # type: ignore[method-assign]
    await desk.at(HOUR)
    assert len(await desk.runs(first)) == 1
    assert list(desk.scheduler._running or {}) == [first.task_id]


async def test_of_several_servers_with_one_store_one_starts_what_is_due(desk: Desk) -> None:
    kept = await desk.add()
    others = [desk.again() for _ in range(3)]
    await desk.at(1)
    for hours in (1, 2.5):
        desk.stage.now = NOON + hours * HOUR
        await asyncio.gather(*(scheduler.tick() for scheduler in (desk.scheduler, *others)))
        await desk.quiet()
    assert len(await desk.runs(kept)) == desk.stage.runtime.log.session_count == 2
