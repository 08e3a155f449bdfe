"""ZenFlux's memories over HTTP: added, found in any script, counted, changed and deleted, within what is one's own."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import Client, keyed, talking


async def added(client: Client, *texts: str, user_id: str = "local", **fields: Any) -> list[str]:
    body = {"user_id": user_id, "messages": [{"role": "user", "content": text} for text in texts], **fields}
    said = await client.call("POST", "/mem0/add", json=body)
    assert said["memories_added"] == len(said["results"])
    assert {one["event"] for one in said["results"]} == {"ADD"}
    return [one["id"] for one in said["results"]]


async def found(client: Client, query: str, user_id: str = "local") -> list[str]:
    said = await client.call("POST", "/mem0/search", json={"user_id": user_id, "query": query})
    assert all(0 < one["score"] <= 1 for one in said)
    return [one["memory"] for one in said]


async def test_what_was_added_is_found_listed_and_deleted(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        first, second = await added(client, "Likes green tea.", "用户喜欢简短的回答", metadata={"a": 1})
        assert await found(client, "tea?") == ["Likes green tea."]
        assert await found(client, "简短") == ["用户喜欢简短的回答"]
        assert await found(client, "nothing of it") == []
        listed = await client.call("GET", "/mem0/user/local")
        assert [one["id"] for one in listed] == [second, first]
        assert listed[0].items() >= {
            "memory": "用户喜欢简短的回答", "score": None, "user_id": "local",
            "metadata": {"a": 1, "type": "feedback", "source_session": ""}}.items()
        assert [one["id"] for one in await client.call("GET", "/mem0/user/local?limit=1")] == [second]
        assert await client.call("DELETE", f"/mem0/memory/{first}") == {"deleted": True}
        assert await client.call("DELETE", f"/mem0/memory/{first}", status=404)
        assert await client.call("DELETE", "/mem0/memory/x", status=404)
        assert await found(client, "tea?") == []


async def test_users_of_a_client_are_told_apart(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await added(client, "tea", user_id="ann")
        await added(client, "tea", user_id="local")
        assert len(await client.call("GET", "/mem0/user/ann")) == 1
        assert await client.call("GET", "/mem0/user/nobody") == []
        assert len(await found(client, "tea", "ann")) == 1
        assert await client.call("DELETE", "/mem0/user/ann") == {"reset": True, "deleted": 1}
        assert await client.call("DELETE", "/mem0/user/ann") == {"reset": True, "deleted": 0}
        assert len(await client.call("GET", "/mem0/user/local")) == 1


async def test_a_key_has_its_own(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        [kept] = await added(ann, "tea", user_id="ann")
        assert await found(bob, "tea", "ann") == []
        assert await bob.call("GET", "/mem0/user/ann") == []
        assert await bob.call("DELETE", f"/mem0/memory/{kept}", status=404)
        assert (await bob.call("DELETE", "/mem0/user/ann"))["deleted"] == 0
        assert await found(ann, "tea", "ann") == ["tea"]


async def test_a_long_message_is_kept_in_pieces(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await added(client, "x" * 1200)
        assert [len(one["memory"]) for one in await client.call("GET", "/mem0/user/local")] == [200, 500, 500]


async def test_many_are_changed_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        [kept] = await added(client, "tea")
        said = await client.call("POST", "/mem0/batch-update", json={
            "updates": [{"id": kept, "memory": "coffee", "metadata": {"b": 2}}]})
        assert said.items() >= {"total_users": 1, "successful": 1, "failed": 0}.items()
        assert "no extractor" in said["message"]
        [now] = await client.call("GET", "/mem0/user/local")
        assert (now["memory"], now["metadata"]["b"]) == ("coffee", 2)
        said = await client.call("POST", "/mem0/batch-update", json={"updates": [{"id": "99999", "memory": "x"}]})
        assert (said["failed"], "99999" in said["results"][0]["error"]) == (1, True)


@pytest.mark.parametrize(("path", "body"), [
    ("/mem0/search", {"query": "x"}), ("/mem0/search", {"user_id": "x"}),
    ("/mem0/search", {"user_id": "x", "query": ""}),
    ("/mem0/search", {"user_id": "x", "query": "x", "limit": 51}), ("/mem0/add", {"user_id": "x", "messages": []}),
    ("/mem0/add", {"user_id": "x", "messages": [{"role": "user"}]}), ("/mem0/add", {"messages": []}),
    ("/mem0/add", {"user_id": "x", "messages": [{"role": "assistant", "content": "x"}]}),
    ("/mem0/add", {"user_id": "x", "messages": [{"role": "user", "content": "x"}], "metadata": {"a": "x" * 5000}}),
    ("/mem0/batch-update", {"since_hours": 0}), ("/mem0/batch-update", {"max_concurrent": 21}),
])
async def test_what_is_refused_keeps_nothing(tmp_path: Path, path: str, body: Any) -> None:
    async with talking(tmp_path) as client:
        assert await client.call("POST", path, json=body, status=400)
        assert await client.call("GET", "/mem0/user/x") == []
        assert await client.call("GET", "/mem0/user/x?limit=201", status=400)
