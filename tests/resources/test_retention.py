"""Sessions and files that are older, or more, than the rules keep are deleted; the others stay, on every log."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import gateway.model as m
from gateway.config import RetentionSettings
from gateway.errors import NotFound, Overloaded
from gateway.ports import BackendEvent, Turn
from gateway.resources import ExpiredThings, Retention, create_file_resource, run_hourly
from gateway.resources.retention import HOUR
from gateway.storage.resources.memory import MemoryResources
from tests.support.engine.engine_fixture import EngineFixture
from tests.support.file_contents import whole
from tests.support.gateway_server import Served, serving
from tests.support.redis_server import redis_of_this_run

DAY = 86_400.0


class Days:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where sessions are stored; the server begins no round by itself, the test does."""
    async def wait_for_ever(*given: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("gateway.app.run_hourly", wait_for_ever)
    return f"{redis_of_this_run().url}?prefix={uuid4().hex}" if request.param == "redis" else str(request.param)


async def session(served: Served, owner: str) -> str:
    return (await served.gateway.sessions.create(owner, "demo")).session_id


async def there(served: Served, owner: str) -> list[str]:
    """The sessions of the owner, those that were created last first."""
    return [head.session_id for head in await served.gateway.sessions.heads(owner)]


async def file(served: Served, owner: str) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"bytes of a file"

    files, resources = served.gateway.files, served.gateway.resources
    made = await create_file_resource(files, resources, owner, await files.store(chunks()), {"name": "f"})
    return made.resource_id


def audited(folder: Path) -> list[tuple[str, str, str]]:
    lines = (folder / "data" / "audit.jsonl").read_text().splitlines()
    return [(line["event"], line["actor"], line["target"]) for line in map(json.loads, lines)]


async def test_old_sessions_go_with_what_belongs_to_them_and_young_ones_stay(
    tmp_path: Path, days: Days, place: str,
) -> None:
    async with serving(tmp_path, days, log=place, retention={"sessions": {"days": 30}}) as served:
        old, touched = await session(served, "ada"), await session(served, "ada")
        workspace = tmp_path / "data" / "workspaces" / old
        workspace.mkdir(parents=True)
        days.now += 29 * DAY
        await served.gateway.sessions.update("ada", touched, title="still in use")
        young, other = await session(served, "ada"), await session(served, "bob")
        await served.gateway.retention.delete_expired()
        assert await there(served, "ada") == [young, touched, old]
        days.now += 2 * DAY
        await served.gateway.retention.delete_expired()
        assert await there(served, "ada") == [young, touched]
        assert await there(served, "bob") == [other]
        assert not workspace.exists()
    assert audited(tmp_path) == [("session.deleted", "server", old)]


async def test_of_many_sessions_those_that_changed_last_stay_for_each_user(
    tmp_path: Path, days: Days, place: str,
) -> None:
    rules = {"sessions": {"newest": 2}, "users": {"bob": {"sessions": {"newest": 1}}, "cleo": {"sessions": {}}}}
    async with serving(tmp_path, days, log=place, retention=rules) as served:
        made: dict[str, list[str]] = {"ada": [], "bob": [], "cleo": []}
        for _ in range(3):
            for owner, ids in made.items():
                days.now += 1
                ids.insert(0, await session(served, owner))
        days.now += 1
        await served.gateway.sessions.update("ada", made["ada"][-1], title="the last one that changed")
        await served.gateway.retention.delete_expired()
        assert await there(served, "ada") == [made["ada"][0], made["ada"][2]]
        assert await there(served, "bob") == made["bob"][:1]
        assert await there(served, "cleo") == made["cleo"]


async def test_old_files_go_with_their_bytes(tmp_path: Path, days: Days, place: str) -> None:
    rules = {"files": {"days": 10}, "users": {"bob": {"files": {"newest": 1}}}}
    async with serving(tmp_path, days, log=place, retention=rules) as served:
        old, bobs = await file(served, "ada"), [await file(served, "bob"), await file(served, "bob")]
        days.now += 11 * DAY
        young = await file(served, "ada")
        await served.gateway.retention.delete_expired()
        resources = served.gateway.resources
        assert [one.resource_id for one in await resources.list("file", "ada")] == [young]
        assert [one.resource_id for one in await resources.list("file", "bob")] == bobs[1:]
        with pytest.raises(NotFound):
            await served.gateway.files.open(old)
        assert await whole(await served.gateway.files.open(young)) == b"bytes of a file"
    assert sorted(audited(tmp_path)) == sorted(("file.deleted", "server", gone) for gone in (old, bobs[0]))


async def test_by_default_everything_stays(tmp_path: Path, days: Days) -> None:
    async with serving(tmp_path, days) as served:
        kept, stored = await session(served, ""), await file(served, "")
        days.now += 10_000 * DAY
        await served.gateway.retention.delete_expired()
        assert await there(served, "") == [kept]
        assert (await served.gateway.resources.get("file", "", stored)).resource_id == stored


async def test_a_server_deletes_by_itself_at_its_start_and_every_hour(tmp_path: Path, days: Days) -> None:
    rules = {"sessions": {"days": 1}}
    async with serving(tmp_path, days, log="sqlite", retention=rules) as served:
        await session(served, "ada")
        days.now += 2 * DAY
        await asyncio.sleep(HOUR + 1)
        assert await there(served, "ada") == []
        await session(served, "ada")
    days.now += 2 * DAY
    async with serving(tmp_path, days, log="sqlite", retention=rules) as served:
        await asyncio.sleep(5)
        assert await there(served, "ada") == []


# -- sessions in use --------------------------------------------------------------------------------------------------

async def asking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="at work")
    await turn.ask(m.QuestionAsk(questions=(m.Question(question="Which?"),)))


async def endless(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="at work")
    await asyncio.Event().wait()


def engine_retention(stage: EngineFixture, deleted: list[str], **given: Any) -> Retention:
    resources = MemoryResources(lambda: stage.now)
    return Retention(
        ExpiredThings(stage.runtime.log, resources, lambda: stage.now), stage.service, resources,
        files=None,  # type: ignore[arg-type]  # there are no files
        rules=lambda: RetentionSettings.model_validate({"sessions": {"days": 1}}),
        audit=lambda event, caller, target: deleted.append(target), **given,
    )


@pytest.mark.parametrize(("play", "event"), [(asking, m.TurnSuspended), (endless, m.NoticePosted)])
async def test_a_session_whose_turn_runs_or_waits_stays(play: Any, event: type[m.Event]) -> None:
    stage, deleted = EngineFixture(play), list[str]()
    idle, busy = await stage.session("ada"), await stage.session("ada")
    await stage.service.submit("ada", busy.view.session_id, [m.SendMessage(content="go")])
    await stage.until(busy, event)
    stage.now += 2 * DAY
    await engine_retention(stage, deleted).delete_expired()
    assert deleted == [idle.view.session_id]
    assert (await stage.service.get("ada", busy.view.session_id)).turn_id is not None


async def test_a_server_that_does_not_lead_deletes_nothing_until_it_leads() -> None:
    stage, deleted, leads = EngineFixture(asking), list[str](), False
    one = await stage.session("ada")
    stage.now += 2 * DAY
    retention = engine_retention(stage, deleted, is_open=lambda: leads)
    task = asyncio.create_task(run_hourly(retention.delete_expired, lambda: leads))
    await asyncio.sleep(3.5 * HOUR)
    assert deleted == []
    leads = True
    await asyncio.sleep(2)
    assert deleted == [one.view.session_id]
    task.cancel()


async def test_a_round_that_fails_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, deleted = EngineFixture(asking), list[str]()
    one = await stage.session("ada")
    stage.now += 2 * DAY

    async def fail(*given: object) -> int:
        raise Overloaded("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(stage.runtime.log, "count_listed", fail)
        task = asyncio.create_task(run_hourly(engine_retention(stage, deleted).delete_expired, lambda: True))
        await asyncio.sleep(1)
    assert deleted == []
    await asyncio.sleep(HOUR)
    assert deleted == [one.view.session_id]
    task.cancel()
