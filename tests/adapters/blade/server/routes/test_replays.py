"""Replays over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dialects.blade.rest_server import Client, blade, say
from tests.support.gateway_server import until
from tests.support.key_stores import key_store


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


async def test_a_session_is_replayed_in_a_new_one(client: Client) -> None:
    session = await client.session(title="talk")
    await say(client, session, "/think one")
    preview = (await client.get(f"/sessions/{session}/replay/preview")).body
    assert preview == {"session_id": session, "intent": "talk", "supported": True, "reason": None}
    again = (await client.post(f"/sessions/{session}/replay", {"speed": 5})).body["session_id"]
    view = await client.gateway.sessions.get("", again)
    await until(lambda: view.private("blade")["replay_state"]["status"] == "completed")
    state = (await client.get(f"/sessions/{again}")).body["replay_state"]
    assert state == {
        "status": "completed", "speed": 5, "source_session_id": session, "current_turn": 1, "total_turns": 1,
    }
    old, new = [(await client.get(f"/sessions/{one}/messages")).body for one in (session, again)]
    assert [turn["blocks"] for turn in old] == [turn["blocks"] for turn in new]
    assert (await client.get(f"/sessions/{session}")).body["replay_state"] is None


async def test_its_speed_is_changed_and_it_is_stopped(client: Client) -> None:
    session = await client.session()
    await say(client, session, "/slow 20")
    again = (await client.post(f"/sessions/{session}/replay", {"speed": 1})).body["session_id"]
    assert (await client.patch(f"/sessions/{again}/replay", {"speed": 2})).body["replay_state"]["speed"] == 2
    stopped = (await client.patch(f"/sessions/{again}/replay", {"status": "autonomous"})).body["replay_state"]
    assert stopped["status"] == "autonomous"
    await say(client, again, "mine")
    messages = (await client.get(f"/sessions/{again}/messages")).body
    assert "You said: mine" in str(messages[-1])


async def test_what_has_not_happened_cannot_be_replayed(client: Client) -> None:
    session = await client.session()
    preview = (await client.get(f"/sessions/{session}/replay/preview")).body
    assert (preview["supported"], preview["reason"]) == (False, "nothing has happened in the session")
    assert (await client.post(f"/sessions/{session}/replay")).status == 409
    assert (await client.patch(f"/sessions/{session}/replay", {"speed": 1})).status == 404
    for speed in (0, 3, "1", None):
        assert (await client.post(f"/sessions/{session}/replay", {"speed": speed})).status == 400


async def test_other_peoples_are_not_found(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        bob = nobody.known_as(key_store(tmp_path / "data").add("bob"))
        session = await nobody.session("ada")
        assert (await bob.post(f"/sessions/{session}/replay")).status == 404
        assert (await bob.get(f"/sessions/{session}/replay/preview")).status == 404
