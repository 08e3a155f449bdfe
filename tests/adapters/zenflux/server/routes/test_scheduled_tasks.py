"""Scheduled tasks, made in one dialect and read in another."""

from pathlib import Path

from tests.support.dialects.zenflux.client import Client
from tests.support.gateway_server import serving

FIELDS = {
    "id", "user_id", "title", "description", "trigger_type", "run_at", "cron_expr", "interval_seconds", "action",
    "status", "next_run_at", "last_run_at", "run_count", "created_at", "updated_at", "conversation_id",
}
"""What the later front end reads."""


async def test_scheduled_tasks_are_those_of_every_dialect(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"blade": {}, "zenflux": {}}) as served:
        client = Client(served)
        assert (await client.call("GET", "/scheduled-tasks")) == {"tasks": [], "total": 0, "page": 1, "page_size": 20}
        for title in ("Brief", "Report"):
            task = {"title": title, "prompt": "hello", "cron": "0 9 * * 1-5"}
            async with served.http.post(served.url("/api/scheduled-tasks"), json=task) as answer:
                assert answer.status == 201
        listed = await client.call("GET", "/scheduled-tasks?page=2&page_size=1")
        assert (listed["total"], [one["title"] for one in listed["tasks"]]) == (2, ["Report"])
        [task] = listed["tasks"]
        assert task.items() >= {
            "description": "hello", "cron_expr": "0 9 * * 1-5", "trigger_type": "cron", "status": "active",
            "run_count": 0, "last_run_at": None, "conversation_id": None}.items()
        assert task["next_run_at"]
        assert set(task) >= FIELDS
        path = f"/scheduled-tasks/{task['id']}"
        assert await client.call("GET", path) == task
        for verb, status in (("pause", "paused"), ("resume", "active"), ("cancel", "paused")):
            assert (await client.call("POST", f"{path}/{verb}"))["status"] == status
        assert (await client.call("GET", path))["next_run_at"] is None
        assert await client.call("DELETE", path) == {"deleted": True}
        assert await client.call("GET", path, status=404)
        assert await client.call("GET", "/scheduled-tasks?page=0", status=400)
