"""The list of sessions, live: it begins with a snapshot and then tells what changes, of one user only."""

import asyncio
from pathlib import Path

from tests.support.console_client import ConsoleClient
from tests.support.gateway_server import serving


async def test_what_happens_to_sessions_is_told(console: ConsoleClient) -> None:
    first = await console.create(title="first")
    async with asyncio.timeout(60), console.events("/sessions/stream") as events:
        snapshot = await anext(events)
        assert (snapshot.name, [row["title"] for row in snapshot.data["sessions"]]) == ("snapshot", ["first"])
        second = await console.create(title="second")
        made = await anext(events)
        assert (made.name, made.data["session_id"], made.data["status"]) == ("session", second, "idle")
        await console.call("PATCH", f"/sessions/{first}", {"title": "renamed"})
        assert (await anext(events)).data["title"] == "renamed"
        await console.talk(first, "/ask")
        waiting = await anext(events)
        assert (waiting.data["session_id"], waiting.data["status"], waiting.data["asks"]) == (first, "waiting", 1)
        await console.command(first, {"kind": "interrupt"})
        assert (await anext(events)).data["status"] == "idle"
        await console.call("DELETE", f"/sessions/{second}", status=204)
        gone = await anext(events)
        assert (gone.name, gone.data) == ("removed", {"session_id": second})


async def test_a_client_that_begins_to_watch_is_told(console: ConsoleClient) -> None:
    session, served = await console.create(), console.served
    async with asyncio.timeout(60), console.events("/sessions/stream") as events:
        assert [row["watching"] for row in (await anext(events)).data["sessions"]] == [[]]
        async with served.http.get(served.url(f"/api/v1/cloud/sessions/{session}/events/stream")):
            assert (await anext(events)).data["watching"] == ["cas"]
        assert (await anext(events)).data["watching"] == []


async def test_the_sessions_of_others_are_not_told(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys") as served:
        ann, bob = [ConsoleClient(served, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        await ann.create(title="hers")
        async with asyncio.timeout(60), bob.events("/sessions/stream") as events:
            assert (await anext(events)).data["sessions"] == []
            await ann.create(title="hers too")
            own = await bob.create(title="his")
            assert (await anext(events)).data["session_id"] == own
