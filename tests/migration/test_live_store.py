"""Imports into gateways that are running: what their clients have continued stays, whatever happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.errors import Conflict, NotFound
from tests.support.cluster.fleet_in_loop import fleet_in_loop
from tests.support.console_client import ConsoleClient
from tests.support.dialects.zenflux.old_server import OldConversation, OldServer, serve_old
from tests.support.gateway_server import Served, until
from tests.support.migration.old_server import gateway, say


def many(number: int) -> list[OldConversation]:
    return [OldConversation(f"conv_{place:03}", updated_at=1000.0 + place) for place in range(number)]


async def import_into(served: Served, old: OldServer, status: int = 200, key: str = "", **more: Any) -> dict[str, int]:
    """The counts that the gateway tells at the end."""
    body = {"dialect": "zenflux", "url": old.url, **more}
    said = await ConsoleClient(served, key).call("POST", "/imports", body, status, raw=True)
    if status != 200:
        return {}
    lines = [orjson.loads(line) for line in said.splitlines() if line]
    assert all("line" in line for line in lines[:-1])
    assert "done" in lines[-1], lines[-1]
    counts: dict[str, int] = lines[-1]["done"]["counts"]
    return counts


def texts(view: m.SessionView) -> list[str]:
    return [m.text_of(m.parts_of(entry.content)) for entry in view.entries]


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Served]]:
    """One gateway twice, or two that share a Redis."""
    async with AsyncExitStack() as stack:
        if request.param == "redis":
            fleet = await stack.enter_async_context(fleet_in_loop(tmp_path, 2))
            yield [one.served for one in fleet.servers]
        else:
            yield [await stack.enter_async_context(gateway(tmp_path / "new", log=request.param))] * 2


async def test_the_clients_of_a_running_gateway_find_what_was_imported(two: list[Served]) -> None:
    async with serve_old(*many(40)) as old:
        assert await import_into(two[0], old, dry_run=True) == {"imported": 40}
        with pytest.raises(NotFound):
            await two[1].gateway.sessions.get("", "conv_007")
        assert await import_into(two[0], old) == {"imported": 40}
        old.reads.clear()
        assert await import_into(two[1], old) == {"unchanged": 40}
        assert not old.reads
    assert texts(await two[1].gateway.sessions.get("", "conv_007")) == ["question 0", "an answer"]
    await say(two[1], "conv_007", "and now?")
    assert texts(await two[0].gateway.sessions.get("", "conv_007"))[-1] == "You said: and now?"


async def test_two_imports_at_once_store_every_session_once(two: list[Served]) -> None:
    async with serve_old(*many(40)) as old:
        old.seconds = 0.3
        counts = await asyncio.gather(*(import_into(one, old) for one in two))
    assert sum(one.get("imported", 0) for one in counts) == 40
    assert sum(one.get("failed", 0) for one in counts) == 0
    for number in (0, 39):
        assert texts(await two[1].gateway.sessions.get("", f"conv_{number:03}")) == ["question 0", "an answer"]


async def test_what_has_changed_there_is_imported_again_unless_a_client_has_continued_it(two: list[Served]) -> None:
    async with serve_old(*many(3)) as old:
        await import_into(two[0], old)
        await say(two[1], "conv_001", "mine")
        for one in old.listed[:2]:
            one.answers.append("one more")
            one.updated_at = 4000.0
        assert await import_into(two[0], old) == {"renewed": 1, "went_on": 1, "unchanged": 1}
    sessions = two[1].gateway.sessions
    assert texts(await sessions.get("", "conv_000")) == ["question 0", "an answer", "question 1", "one more"]
    assert texts(await sessions.get("", "conv_001"))[2:] == ["mine", "You said: mine"]


async def test_a_client_that_continues_at_that_very_moment_keeps_its_session(two: list[Served]) -> None:
    async with serve_old(*many(1)) as old:
        await import_into(two[0], old)
        sessions = two[0].gateway.sessions
        head = (await sessions.get("", "conv_000")).head
        await two[1].gateway.sessions.submit("", "conv_000", [m.SendMessage(content="/slow 5")])
        with pytest.raises(Conflict, match="something has happened"):
            await sessions.delete_unchanged("", "conv_000", head)
        await until(lambda: not any(one.gateway.table.turn_count for one in two))
    assert len(texts(await sessions.get("", "conv_000"))) == 4


async def test_an_import_whose_client_leaves_stops_and_goes_on_later(two: list[Served]) -> None:
    async with serve_old(*many(100)) as old:
        old.seconds = 0.5
        running = asyncio.create_task(import_into(two[0], old))
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.sleep(60)  # a heartbeat notices that nobody is there
        seen = old.reads.total()
        await asyncio.sleep(60)
        assert 0 < seen == old.reads.total() < 100
        old.seconds = 0.0
        counts = await import_into(two[0], old)
    assert counts["imported"] + counts["unchanged"] == 100
    assert counts["unchanged"] > 0


async def test_a_session_of_another_user_is_left_alone(tmp_path: Path) -> None:
    async with serve_old(*many(1)) as old, gateway(tmp_path / "new", auth="keys", admins=["root"]) as new:
        keys = {user: await new.gateway.keys.add(user) for user in ("root", "ann")}
        await import_into(new, old, 401)
        await import_into(new, old, 403, keys["ann"])
        assert await import_into(new, old, key=keys["root"], owner="ann") == {"imported": 1}
        assert await import_into(new, old, key=keys["root"], owner="bob") == {"conflict": 1}
        assert (await new.gateway.sessions.get("ann", "conv_000")).owner == "ann"


async def test_an_address_must_be_one_of_http(tmp_path: Path) -> None:
    async with gateway(tmp_path / "new") as new:
        error = await ConsoleClient(new).error("POST", "/imports", 400, {"dialect": "zenflux", "url": "file:///etc"})
    assert "http" in error["message"]
