"""A server that stops and comes back has everything that it had: one of each is made, and read again afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.resources import Scheduler
from tests.simulation.loop import EPOCH
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving, until

CAS, BLADE = "/api/v1/cloud", "/api"
BEARER = {"type": "static_bearer", "mcp_server_url": "https://mcp.example", "token": "s3cret-token"}


NEW = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}


class Talk:
    """A client that remembers what it read, to compare it with what it reads later."""

    def __init__(self, served: Served) -> None:
        self.served = served

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        form = isinstance(body, aiohttp.FormData)
        async with self.served.http.request(
            method, self.served.url(path), json=None if form else body, data=body if form else None, headers=headers,
        ) as response:
            as_json = response.content_type == "application/json"
            return response.status, await (response.json() if as_json else response.read())

    async def made(self, path: str, body: Any) -> Any:
        status, answer = await self.call("POST", path, body)
        assert status in (200, 201), answer
        return answer

    async def read(self, path: str) -> Any:
        status, answer = await self.call("GET", path)
        assert status == 200, (path, answer)
        return answer


@asynccontextmanager
async def talking(folder: Path, **settings: Any) -> AsyncIterator[Talk]:
    async with serving(folder, dialects=ALL_DIALECTS, **{"log": "sqlite", **settings}) as served:
        yield Talk(served)


def upload(content: bytes = b"hello") -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("file", content, filename="x.txt", content_type="text/plain")
    return form


async def make_one_of_each(talk: Talk) -> list[str]:
    """The paths where everything can be read."""
    agent = await talk.made(f"{CAS}/agents", {"name": "mine", "model": "demo", "system": "be brief"})
    agent = await talk.made(f"{CAS}/agents/{agent['id']}", {"system": "be long", "version": agent["version"]})
    environment = await talk.made(f"{CAS}/environments", {"name": "e", "config": {"type": "cloud"}})
    vault = await talk.made(f"{CAS}/vaults", {"display_name": "v", "metadata": {"a": "b"}})
    credential = await talk.made(f"{CAS}/vaults/{vault['id']}/credentials", {"auth": BEARER})
    store = await talk.made(f"{CAS}/memory_stores", {"name": "m"})
    memory = await talk.made(f"{CAS}/memory_stores/{store['id']}/memories", {"path": "/a", "content": "remember"})
    file = await talk.made(f"{CAS}/files", upload())
    session = await talk.made(f"{CAS}/sessions", {"agent": agent["id"], "environment_id": environment["id"]})
    mount = await talk.made(f"{CAS}/sessions/{session['id']}/resources", {"type": "file", "file_id": file["id"]})
    gone = await talk.made(f"{CAS}/vaults", {"display_name": "archived"})
    await talk.made(f"{CAS}/vaults/{gone['id']}/archive", None)
    note = await talk.made(f"{BLADE}/memories", {"content": "likes tea", "type": "feedback"})
    task = await talk.made(f"{BLADE}/scheduled-tasks", {"title": "t", "prompt": "report", "cron": "0 0 1 1 *"})
    share = await talk.made(f"{BLADE}/sessions/{session['id']}/share", {})
    key = await talk.made(f"{BLADE}/user/api-keys", {"name": "laptop"})
    return [
        f"{CAS}/agents", f"{CAS}/agents/{agent['id']}", f"{CAS}/agents/{agent['id']}/versions",
        f"{CAS}/environments/{environment['id']}", f"{CAS}/vaults", f"{CAS}/vaults?include_archived=true",
        f"{CAS}/vaults/{vault['id']}/credentials/{credential['id']}", f"{CAS}/memory_stores/{store['id']}",
        f"{CAS}/memory_stores/{store['id']}/memories/{memory['id']}", f"{CAS}/files", f"{CAS}/files/{file['id']}",
        f"{CAS}/sessions/{session['id']}", f"{CAS}/sessions/{session['id']}/resources/{mount['id']}",
        f"{BLADE}/memories", f"{BLADE}/memories/{note['id']}", f"{BLADE}/scheduled-tasks/{task['id']}",
        f"{BLADE}/share/{share['token']}", f"{BLADE}/user/api-keys/{key['id']}",
    ]


async def test_one_of_each_is_there_again(tmp_path: Path) -> None:
    """While the clock stands still: the agents of the settings are as old as their server."""
    async with talking(tmp_path, clock=lambda: EPOCH) as talk:
        paths = await make_one_of_each(talk)
        before = {path: await talk.read(path) for path in paths}
        assert "s3cret" not in repr(before)
    async with talking(tmp_path, clock=lambda: EPOCH) as talk:
        assert {path: await talk.read(path) for path in paths} == before
        (credential,) = await talk.served.gateway.resources.list("credential", "")
        assert credential.secrets == {"token": "s3cret-token"}


async def test_in_memory_nothing_is_there_again(tmp_path: Path) -> None:
    async with talking(tmp_path, log="memory") as talk:
        vault = await talk.made(f"{CAS}/vaults", {"display_name": "v"})
    async with talking(tmp_path, log="memory") as talk:
        assert (await talk.call("GET", f"{CAS}/vaults/{vault['id']}"))[0] == 404


async def test_the_bytes_of_a_file_and_a_link_to_it_are_found_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        file = await talk.made(f"{CAS}/files", upload(b"some bytes"))
        link = (await talk.read(f"{CAS}/files/{file['id']}/content"))["url"].partition("//")[2].partition("/")[2]
    async with talking(tmp_path) as talk:
        _, found = await talk.call("GET", f"{CAS}/files/{file['id']}/content", Accept="application/octet-stream")
        assert found == b"some bytes"
        assert await talk.read(f"/{link}") == b"some bytes"


async def test_a_request_that_comes_again_after_the_server_came_back_is_not_carried_out_twice(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        first = await talk.call("POST", f"{CAS}/vaults", {"display_name": "v"}, **{"Idempotency-Key": "k"})
        session = await talk.call("POST", f"{CAS}/sessions", NEW, **{"Idempotency-Key": "k"})
        assert (first[0], session[0]) == (201, 201)
    async with talking(tmp_path) as talk:
        for _ in range(2):
            assert await talk.call("POST", f"{CAS}/vaults", {"display_name": "v"}, **{"Idempotency-Key": "k"}) == first
        again = await talk.call("POST", f"{CAS}/sessions", NEW, **{"Idempotency-Key": "k"})
        assert again == session
        other, _ = await talk.call("POST", f"{CAS}/vaults", {"display_name": "w"}, **{"Idempotency-Key": "k"})
        assert other == 409
        assert len((await talk.read(f"{CAS}/vaults"))["data"]) == len((await talk.read(f"{CAS}/sessions"))["data"]) == 1


async def looked_through(scheduler: Scheduler) -> None:
    """The server's own scheduler has been through all tasks, and what it started has ended."""
    await until(lambda: scheduler._minute > 0 and not scheduler._running)


@pytest.mark.parametrize("hours", [3, 30])
async def test_a_task_that_was_due_while_the_server_was_down_runs_once(tmp_path: Path, hours: int) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    now = [noon]
    async with talking(tmp_path, clock=lambda: now[0]) as talk:
        task = await talk.made(f"{BLADE}/scheduled-tasks", {"title": "t", "prompt": "report", "cron": "0 * * * *"})
        runs = f"{BLADE}/scheduled-tasks/{task['id']}/runs"
        assert await talk.read(runs) == []
    for life in range(2):
        now[0] = noon + hours * 3600 + 60 + life
        async with talking(tmp_path, clock=lambda: now[0]) as talk:
            await looked_through(talk.served.gateway.scheduler)
            (run,) = await talk.read(runs)
            assert run["status"] == "completed"
            assert len(await talk.served.gateway.sessions.heads("")) == 1
