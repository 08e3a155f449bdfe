"""ZenFlux's tasks over HTTP: background jobs by name, and scheduled tasks, listed and run now."""

from pathlib import Path
from typing import Any

import pytest

from gateway.resources import ScheduledTask, Schedules, StoredTask
from tests.support.dialects.zenflux.client import Client, keyed, talking


async def scheduled(client: Client, prompt: str = "hello", owner: str = "", **fields: Any) -> StoredTask:
    gateway = client.served.gateway
    task = ScheduledTask(title="Morning brief", prompt=prompt, cron="0 9 * * 1-5", agent="demo", **fields)
    return await Schedules(gateway.resources, gateway.runtime.clock).add(owner, task)


async def test_jobs_and_scheduled_tasks_are_listed(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        kept = await scheduled(client)
        body = await client.call("GET", "/tasks")
        assert [one["name"] for one in body["tasks"]] == ["title_generation", "mem0_update", kept.task_id]
        assert body["total"] == 3
        assert body["tasks"][2] == {
            "name": kept.task_id, "description": "Morning brief", "supports_scheduled": True,
            "schedule_config": {"cron": "0 9 * * 1-5", "timezone": "UTC", "enabled": True}}
        only = await client.call("GET", "/tasks?scheduled_only=true")
        assert [one["name"] for one in only["tasks"]] == ["mem0_update", kept.task_id]
        assert (await client.call("GET", "/tasks/scheduled/config"))["tasks"] == only["tasks"]
        for one in body["tasks"]:
            assert await client.call("GET", f"/tasks/{one['name']}") == one


async def test_the_scheduler_says_what_is_next(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        kept = await scheduled(client)
        await scheduled(client, enabled=False)
        status = await client.call("GET", "/tasks/scheduled/status")
        assert status["total_jobs"] == 1
        assert status["jobs"][0].items() >= {
            "id": kept.task_id, "name": "Morning brief", "trigger_type": "cron", "cron": "0 9 * * 1-5"}.items()
        assert status["jobs"][0]["next_run_time"].endswith("Z")


async def test_a_scheduled_task_is_run_now(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        kept = await scheduled(client)
        run = await client.call("POST", f"/tasks/{kept.task_id}/run", json={"wait": True})
        assert run.items() >= {
            "task_name": kept.task_id, "status": "completed", "trigger_type": "manual", "error": None}.items()
        messages = await client.call("GET", f"/conversations/{run['result']['conversation_id']}/messages")
        assert messages["messages"][0]["role"] == "user"
        again = await client.call("POST", f"/tasks/{kept.task_id}/run", json={"wait": True})
        assert again["result"]["conversation_id"] != run["result"]["conversation_id"]


async def test_a_task_that_runs_is_not_run_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        kept = await scheduled(client, "/permit")
        run = await client.call("POST", f"/tasks/{kept.task_id}/run", json={})
        assert run["status"] == "running"
        assert "running already" in await client.call("POST", f"/tasks/{kept.task_id}/run", json={}, status=409)


async def test_a_title_is_made_for_a_conversation(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("tell me of the sea")
        done = await client.call(
            "POST", "/tasks/title_generation/run", json={"conversation_id": run.conversation_id})
        assert (done["status"], done["result"]["title"]) == ("completed", "tell me of the sea")
        assert (await client.call("GET", f"/conversations/{run.conversation_id}"))["title"] == "tell me of the sea"
        await client.call("PUT", f"/conversations/{run.conversation_id}?title=Mine")
        await client.call("POST", "/tasks/title_generation/run", json={"conversation_id": run.conversation_id})
        assert (await client.call("GET", f"/conversations/{run.conversation_id}"))["title"] == "Mine"


@pytest.mark.parametrize(("path", "body", "status"), [
    ("/tasks/nobody/run", {}, 404), ("/tasks/nobody/batch", {}, 404), ("/tasks/title_generation/run", {}, 400),
    ("/tasks/title_generation/run", {"conversation_id": "nobody"}, 404), ("/tasks/title_generation/batch", {}, 400),
    ("/tasks/mem0_update/batch", {"since_hours": 0}, 400), ("/tasks/mem0_update/batch", {"max_concurrent": 21}, 400),
    ("/tasks/mem0_update/run", {"wait": "yes"}, 400),
])
async def test_what_is_refused(tmp_path: Path, path: str, body: Any, status: int) -> None:
    async with talking(tmp_path) as client:
        assert await client.call("POST", path, json=body, status=status)


async def test_memories_are_not_extracted_and_that_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        for path, trigger in (("run", "manual"), ("batch", "scheduled")):
            done = await client.call("POST", f"/tasks/mem0_update/{path}", json={})
            assert (done["status"], done["trigger_type"]) == ("completed", trigger)
            assert "no extractor" in done["result"]["message"]


async def test_tasks_are_ones_own(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        kept = await scheduled(client, owner="ann")
        assert (await ann.call("GET", f"/tasks/{kept.task_id}"))["name"] == kept.task_id
        assert await bob.call("GET", f"/tasks/{kept.task_id}", status=404)
        assert await bob.call("POST", f"/tasks/{kept.task_id}/run", json={}, status=404)
