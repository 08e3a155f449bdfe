"""Memories over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.blade.rest_server import Client, blade


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


async def made(client: Client, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/memories", {"content": "likes tea", **fields})
    assert answer.status == 201, answer
    return answer.body


async def test_a_memory_has_all_its_fields(client: Client) -> None:
    memory = await made(client, source_session="sess_1", write_reason="said so")
    assert memory.pop("created_at").endswith("Z")
    assert isinstance(memory.pop("id"), int)
    assert memory == {
        "type": "feedback", "content": "likes tea", "skill_name": None, "record_type": None, "scope": None,
        "owner": None, "topic": None, "mem0_id": None, "superseded_by": None, "write_reason": "said so",
        "updated_at": None, "hit_count": 0, "last_hit_at": None, "disabled": False, "source_session": "sess_1",
    }


@pytest.mark.parametrize("body", [
    {}, {"content": ""}, {"content": "x" * 501}, {"content": "x", "type": "rumour"},
    {"content": "x", "topic": "x" * 256},
    {"content": "x", "write_reason": ""}, {"content": "x", "write_reason": "x" * 501}, {"content": 5},
    {"content": "x", "record_type": "note"},
])
async def test_limits_are_kept(client: Client, body: Any) -> None:
    answer = await client.post("/memories", body)
    assert answer.status == 400
    assert list(answer.body) == ["detail"]


async def test_the_longest_that_are_taken(client: Client) -> None:
    await made(client, content="字" * 500, topic="x" * 255, write_reason="x" * 500)


async def test_a_change_is_partial(client: Client) -> None:
    memory = await made(client, topic="drinks")
    changed = (await client.put(f"/memories/{memory['id']}", {"content": "likes coffee", "scope": None})).body
    assert (changed["content"], changed["topic"]) == ("likes coffee", "drinks")
    assert changed["updated_at"] is not None
    assert (await client.get(f"/memories/{memory['id']}")).body == changed


async def test_it_is_switched_off_and_on(client: Client) -> None:
    memory = await made(client)
    assert (await client.patch(f"/memories/{memory['id']}", {"disabled": True})).body["disabled"] is True
    assert (await client.patch(f"/memories/{memory['id']}", {})).status == 400


async def test_it_is_forgotten(client: Client) -> None:
    memory = await made(client)
    answer = await client.delete(f"/memories/{memory['id']}")
    assert (answer.status, answer.body) == (200, {"ok": True})
    assert (await client.get(f"/memories/{memory['id']}")).status == 404


@pytest.mark.parametrize(("query", "contents"), [
    ("", ["c", "b", "a"]), ("?limit=1&offset=1", ["b"]), ("?topic=t", ["c", "a"]), ("?keyword=B", ["b"]),
    ("?type=experience", ["b"]), ("?status=disabled", ["c"]), ("?status=active", ["b", "a"]), ("?topic=none", []),
    ("?skill_name=s&record_type=memory&scope=u&owner=o", ["b"]),
])
async def test_a_list_is_filtered(client: Client, query: str, contents: list[str]) -> None:
    await made(client, content="a", topic="t")
    await made(client, content="b", type="experience", skill_name="s", record_type="memory", scope="u", owner="o")
    last = await made(client, content="c", topic="t")
    await client.patch(f"/memories/{last['id']}", {"disabled": True})
    body = (await client.get(f"/memories{query}")).body
    assert [memory["content"] for memory in body["items"]] == contents
    assert body["total"] == (3 if "limit" in query else len(contents))


@pytest.mark.parametrize("query", ["?limit=0", "?limit=101", "?limit=x", "?offset=-1", "?type=rumour", "?status=odd"])
async def test_an_odd_query_is_refused(client: Client, query: str) -> None:
    assert (await client.get(f"/memories{query}")).status == 400


async def test_many_at_once(client: Client) -> None:
    ids = [(await made(client))["id"] for _ in range(3)]
    answer = await client.post("/memories/batch", {"action": "disable", "ids": [*ids, 999]})
    assert answer.body == {"ok": True, "count": 3}
    assert (await client.post("/memories/batch", {"action": "enable", "ids": ids[:1]})).body["count"] == 1
    assert (await client.get("/memories?status=disabled")).body["total"] == 2
    assert (await client.post("/memories/batch", {"action": "delete", "ids": ids})).body["count"] == 3
    for ids in ([], list(range(101)), ["1"]):
        assert (await client.post("/memories/batch", {"action": "delete", "ids": ids})).status == 400


@pytest.mark.parametrize("memory_id", ["0", "7", "x", "-1", "1" * 30, "%D9%A1"])
async def test_what_is_not_there(client: Client, memory_id: str) -> None:
    answer = await client.get(f"/memories/{memory_id}")
    assert (answer.status, list(answer.body)) == (404, ["detail"])
