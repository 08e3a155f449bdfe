"""The server about itself, a user about themselves, and what is kept beside a session."""

from pathlib import Path

from tests.support.dialects.blade.rest_server import blade
from tests.support.key_stores import key_store


async def test_anybody_may_ask_for_the_version(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        body = (await nobody.get("/version")).body
        assert list(body) == ["version", "min_sdk"]
        assert (await nobody.get("/health")).body == {"status": "ok"}
        for path in ("/config", "/config/models", "/auth/me"):
            assert (await nobody.get(path)).status == 401


async def test_the_models_are_those_of_the_agents(tmp_path: Path) -> None:
    agents = {"one": {"backend": "demo", "model": "m-1", "title": "One"}, "two": {"backend": "demo", "model": "m-2"}}
    async with blade(tmp_path, agents=agents, dialects={"blade": {"agent": "two"}}) as client:
        body = (await client.get("/config/models")).body
        assert body["default"] == "m-2"
        assert [model["id"] for model in body["models"]] == ["m-2", "m-1"]
        assert (await client.get("/config")).body["default_model"] == "m-2"


async def test_who_am_i(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        me = (await nobody.known_as(key_store(tmp_path / "data").add("ada")).get("/auth/me")).body
        assert me.pop("created_at").endswith("Z")
        assert me == {"id": "user_ada", "username": "ada", "avatar_url": None}


async def test_extra_is_kept_beside_a_session(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        session = await client.session()
        nothing = (await client.get(f"/sessions/{session}/extra_info")).body
        assert nothing == {"session_id": session, "extra": None, "created_at": None, "updated_at": None}
        first = (await client.post(f"/sessions/{session}/upset_extra_info", {"extra": {"a": 1}})).body
        second = (await client.post(f"/sessions/{session}/upset_extra_info", {"extra": [2]})).body
        assert (first["extra"], second["extra"]) == ({"a": 1}, [2])
        assert first["created_at"] == second["created_at"]
        assert (await client.get(f"/sessions/{session}/extra_info")).body == second
        assert (await client.get("/sessions/sess_none/extra_info")).status == 404
        answer = await client.post(f"/sessions/{session}/upset_extra_info", {"extra": "x" * 300_000})
        assert answer.status == 413
