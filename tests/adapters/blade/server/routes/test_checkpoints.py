"""A session is rewound: what was said since is hidden from people and the agent, and stays in the log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.model as m
from tests.support.dialects.blade.rest_server import Client, blade, say
from tests.support.key_stores import key_store


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


async def words(client: Client, session: str) -> list[str]:
    view = await client.gateway.sessions.get("", session)
    return [m.text_of(entry.content) for entry in view.entries]


async def test_each_turn_ends_with_a_checkpoint(client: Client) -> None:
    session = await client.session()
    await say(client, session, "one")
    await say(client, session, "two")
    marks = (await client.get(f"/sessions/{session}/checkpoints")).body
    assert [mark["preview"] for mark in marks] == ["", "one", "two"]
    assert marks[0]["turn_id"] is None
    assert all(mark["turn_id"].startswith("turn_") for mark in marks[1:])
    assert all(mark["checkpoint_id"].startswith("cp_") for mark in marks)
    assert {mark["leaf_id"] for mark in marks} == {marks[-1]["checkpoint_id"]}


async def test_a_rewound_session_goes_on_from_there(client: Client) -> None:
    session = await client.session()
    for text in ("one", "two", "three"):
        await say(client, session, text)
    first = (await client.get(f"/sessions/{session}/checkpoints")).body[1]["checkpoint_id"]
    kept = len(await client.gateway.sessions.records("", session))
    answer = await client.post(f"/sessions/{session}/rewind", {"checkpoint_id": first})
    assert answer.body == {"rewound": True, "session_id": session, "checkpoint_id": first}
    assert await words(client, session) == ["one", "You said: one"]
    assert len(await client.gateway.sessions.records("", session)) == kept + 1
    await say(client, session, "four")
    assert await words(client, session) == ["one", "You said: one", "four", "You said: four"]
    marks = (await client.get(f"/sessions/{session}/checkpoints")).body
    assert [mark["preview"] for mark in marks] == ["", "one", "four"]


async def test_rewinding_twice_to_the_same_place_says_nothing_new(client: Client) -> None:
    session = await client.session()
    await say(client, session, "one")
    last = (await client.get(f"/sessions/{session}/checkpoints")).body[-1]["checkpoint_id"]
    kept = len(await client.gateway.sessions.records("", session))
    assert (await client.post(f"/sessions/{session}/rewind", {"checkpoint_id": last})).status == 200
    assert len(await client.gateway.sessions.records("", session)) == kept


async def test_looking_back_changes_nothing(client: Client) -> None:
    session = await client.session()
    await say(client, session, "one")
    await say(client, session, "two")
    mark = (await client.get(f"/sessions/{session}/checkpoints")).body[2]["checkpoint_id"]
    kept = len(await client.gateway.sessions.records("", session))
    for position, count in (("turn_end", 4), ("before", 2)):
        seen = (await client.post(f"/sessions/{session}/checkout", {"checkpoint_id": mark, "position": position})).body
        assert len(seen["messages"]) == count
    assert len(await client.gateway.sessions.records("", session)) == kept


async def test_what_is_no_checkpoint_is_not_found(client: Client) -> None:
    session = await client.session()
    await say(client, session, "one")
    for checkpoint in ("cp_3", "cp_x", "", "nonsense"):
        for way in ("rewind", "checkout"):
            answer = await client.post(f"/sessions/{session}/{way}", {"checkpoint_id": checkpoint})
            assert answer.status == 404
    answer = await client.post(f"/sessions/{session}/checkout", {"checkpoint_id": "cp_1", "position": "x"})
    assert answer.status == 400


async def test_nothing_is_rewound_while_a_turn_runs(client: Client) -> None:
    session = await client.session()
    await say(client, session, "one")
    await client.gateway.sessions.submit("", session, [m.SendMessage(content="/slow 200")])
    assert (await client.post(f"/sessions/{session}/rewind", {"checkpoint_id": "cp_1"})).status == 409
    await client.gateway.sessions.submit("", session, [m.Interrupt()])
    await asyncio.sleep(0)
    assert (await client.post(f"/sessions/{session}/rewind", {"checkpoint_id": "cp_1"})).status == 200


async def test_other_peoples_checkpoints_are_not_found(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        bob = nobody.known_as(key_store(tmp_path / "data").add("bob"))
        session = await nobody.session("ada")
        assert (await bob.get(f"/sessions/{session}/checkpoints")).status == 404
        assert (await bob.post(f"/sessions/{session}/rewind", {"checkpoint_id": "cp_1"})).status == 404
