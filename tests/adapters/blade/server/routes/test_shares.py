"""A session is shown to whoever has its link, and to nobody else."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dialects.blade.rest_server import Client, blade, say
from tests.support.key_stores import key_store


@pytest.fixture
async def ada(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path, auth="keys") as client:
        yield client.known_as(key_store(tmp_path / "data").add("ada"))


async def test_a_link_shows_the_session_to_anybody(ada: Client) -> None:
    session = await ada.session("ada")
    await say(ada, session, "bonjour", owner="ada")
    share = (await ada.post(f"/sessions/{session}/share", {"ttl_seconds": 60})).body
    assert share["url"].endswith(f"/api/share/{share['token']}")
    assert share["expires_at"].endswith("Z")
    answer = await Client(ada.served).get(f"/share/{share['token']}")
    assert answer.status == 200
    assert "bonjour" in str(answer.body[0])
    assert len(answer.body) == 2


async def test_a_link_that_was_taken_back_shows_nothing(ada: Client) -> None:
    session = await ada.session("ada")
    token = (await ada.call("POST", f"/sessions/{session}/share")).body["token"]
    assert (await ada.delete(f"/sessions/{session}/share/{token}")).body == {"revoked": True}
    assert (await ada.get(f"/share/{token}")).status == 404
    assert (await ada.delete(f"/sessions/{session}/share/{token}")).status == 404


async def test_a_link_ends_with_its_session(ada: Client) -> None:
    session = await ada.session("ada")
    token = (await ada.post(f"/sessions/{session}/share")).body["token"]
    await ada.gateway.sessions.delete("ada", session)
    assert (await ada.get(f"/share/{token}")).status == 404


async def test_it_is_for_reading_only(ada: Client) -> None:
    session = await ada.session("ada")
    token = (await ada.post(f"/sessions/{session}/share")).body["token"]
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert (await ada.call(method, f"/share/{token}")).status == 405
    assert (await Client(ada.served, token).get("/memories")).status == 401


@pytest.mark.parametrize("ttl", [0, -1, "x", 366 * 86400])
async def test_odd_times_are_refused(ada: Client, ttl: object) -> None:
    session = await ada.session("ada")
    assert (await ada.post(f"/sessions/{session}/share", {"ttl_seconds": ttl})).status == 400


async def test_other_peoples_sessions_are_not_shared(ada: Client, tmp_path: Path) -> None:
    bob = ada.known_as(key_store(tmp_path / "data").add("bob"))
    session = await ada.session("ada")
    assert (await bob.post(f"/sessions/{session}/share")).status == 404
    token = (await ada.post(f"/sessions/{session}/share")).body["token"]
    assert (await bob.delete(f"/sessions/{session}/share/{token}")).status == 404
