"""Scheduled tasks over HTTP, and run by the gateway's own scheduler."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.blade.rest_server import Client, blade
from tests.support.gateway_server import until
from tests.support.key_stores import key_store

TASKS = "/scheduled-tasks"
DAILY = {"title": "每日报告", "prompt": "生成今日数据摘要", "cron": "0 9 * * *", "timezone": "Asia/Shanghai"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


async def made(client: Client, **fields: Any) -> dict[str, Any]:
    answer = await client.post(TASKS, {**DAILY, **fields})
    assert answer.status == 201, answer
    return answer.body


async def test_a_task_has_all_its_fields(client: Client) -> None:
    task = await made(client)
    assert task.pop("id").startswith("task_")
    assert task == {**DAILY, "enabled": True, "expires_at": None, "skip_confirmations": False, "model": None}


async def test_it_is_listed_changed_started_stopped_and_deleted(client: Client) -> None:
    task = await made(client, model="m", expires_at="2999-01-01T00:00:00Z")
    at = f"{TASKS}/{task['id']}"
    assert (await client.get(TASKS)).body == [task]
    changed = (await client.patch(at, {"title": "t", "skip_confirmations": True, "expires_at": None})).body
    assert changed == {**task, "title": "t", "skip_confirmations": True, "expires_at": None}
    assert (await client.post(f"{at}/stop")).body["enabled"] is False
    assert (await client.call("POST", f"{at}/start")).body["enabled"] is True
    assert (await client.get(at)).body == changed
    answer = await client.delete(at)
    assert (answer.status, answer.body) == (204, b"")
    assert (await client.get(at)).status == 404


@pytest.mark.parametrize(("field", "value"), [
    ("title", ""), ("title", "x" * 201), ("prompt", ""), ("cron", ""), ("cron", "every day"), ("cron", "x" * 101),
    ("cron", "0 0 31 2 *"), ("timezone", "Mars/Base"), ("timezone", ""), ("model", "x" * 201),
    ("expires_at", "soon"), ("expires_at", "2001-01-01T00:00:00Z"), ("enabled", "yes"),
])
async def test_nonsense_is_refused_by_name(client: Client, field: str, value: object) -> None:
    answer = await client.post(TASKS, {**DAILY, field: value})
    assert answer.status == 400
    assert field in answer.body["detail"]
    task = await made(client)
    assert (await client.patch(f"{TASKS}/{task['id']}", {field: value})).status == 400


async def test_a_calendar_shows_what_is_due(client: Client) -> None:
    task = await made(client)
    await made(client, enabled=False)
    answer = await client.get(f"{TASKS}/calendar?from=2026-03-01T00:00:00Z&to=2026-03-03T00:00:00Z")
    assert answer.body == [{
        "task_id": task["id"], "title": DAILY["title"],
        "occurrences": ["2026-03-01T01:00:00.000Z", "2026-03-02T01:00:00.000Z"],
    }]
    assert len((await client.get(f"{TASKS}/calendar")).body[0]["occurrences"]) == 7
    for query in ("?from=x", "?from=2026-01-02&to=2026-01-01", "?from=2026-01-01&to=2028-01-01"):
        assert (await client.get(f"{TASKS}/calendar{query}")).status == 400


async def test_a_task_that_is_due_runs(client: Client) -> None:
    """The clock is moved on by two minutes, and the scheduler asked to look."""
    task = await made(client, cron="* * * * *", prompt="/permit hello", skip_confirmations=True)
    at, scheduler, clock = f"{TASKS}/{task['id']}/runs", client.gateway.scheduler, client.gateway.scheduler._clock
    assert (await client.get(at)).body == []
    scheduler._clock = lambda: clock() + 120
    await scheduler.tick()
    (run,) = (await client.get(at)).body
    assert run["id"].startswith("run_")
    assert {key: run[key] for key in ("task_id", "status", "error", "finished_at")} == {
        "task_id": task["id"], "status": "running", "error": None, "finished_at": None,
    }
    await until(lambda: not client.gateway.table.turn_count)
    scheduler._clock = clock
    await scheduler.tick()
    (run,) = (await client.get(at)).body
    assert (run["status"], run["error"]) == ("completed", None)
    view = await client.gateway.sessions.get("", run["session_id"])
    assert view.title == DAILY["title"]


async def test_other_peoples_tasks_are_not_found(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        keys = key_store(tmp_path / "data")
        ada, bob = nobody.known_as(keys.add("ada")), nobody.known_as(keys.add("bob"))
        at = f"{TASKS}/{(await made(ada))['id']}"
        for answer in (
            await bob.get(at), await bob.patch(at, {"title": "x"}), await bob.delete(at), await bob.post(f"{at}/stop"),
            await bob.get(f"{at}/runs"),
        ):
            assert answer.status == 404
        assert (await bob.get(TASKS)).body == []
        assert (await bob.get(f"{TASKS}/calendar")).body == []
