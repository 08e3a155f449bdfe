"""CAS's memory stores over real HTTP: memories by path, in the words they were given."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.cas.catalog_server import Catalog, catalog


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


async def test_a_memory_has_a_life(cas: Catalog) -> None:
    store = await cas.made("/memory_stores", {"name": "m", "description": "d"})
    at = f"/memory_stores/{store['id']}/memories"
    made = await cas.made(at, {"path": "/notes/a.md", "content": "grün"})
    assert (made["content"], made["content_size_bytes"], made["memory_store_id"]) == ("grün", 5, store["id"])
    changed = (await cas.post(f"{at}/{made['id']}", {"content": "rot", "content_sha256": made["content_sha256"]})).body
    assert (changed["content"], changed["path"]) == ("rot", "/notes/a.md")
    assert changed["memory_version_id"] != made["memory_version_id"]
    stale = {"type": "content_sha256", "content_sha256": made["content_sha256"]}
    assert (await cas.post(f"{at}/{made['id']}", {"content": "x", "precondition": stale})).status == 409
    shown = (await cas.get(f"/memory_stores/{store['id']}")).body
    assert (shown["entry_count"], shown["total_size"], shown["status"]) == (1, 3, "active")
    assert (await cas.delete(f"{at}/{made['id']}?expected_content_sha256=0")).status == 409
    assert (await cas.delete(f"{at}/{made['id']}")).body == {"id": made["id"], "type": "memory_deleted"}


async def test_memories_are_listed_without_their_words_unless_asked(cas: Catalog) -> None:
    store = await cas.made("/memory_stores", {"name": "m"})
    at = f"/memory_stores/{store['id']}/memories"
    for path in ("/a/1", "/b/1", "/a/2"):
        await cas.made(at, {"path": path, "content": "x"})
    listed = (await cas.get(f"{at}?path_prefix=/a/&limit=1")).body
    assert [one["path"] for one in listed["data"]] == ["/a/2"]
    assert "content" not in listed["data"][0]
    more = (await cas.get(f"{at}?path_prefix=/a/&view=full&page={listed['next_page']}")).body
    assert [(one["path"], one["content"]) for one in more["data"]] == [("/a/1", "x")]
    assert more["has_more"] is False
    assert (await cas.get(f"{at}?view=some")).status == 400


async def test_a_path_is_taken_once(cas: Catalog) -> None:
    store, other = [await cas.made("/memory_stores", {"name": "m"}) for _ in range(2)]
    at = f"/memory_stores/{store['id']}/memories"
    await cas.made(at, {"path": "/a", "content": "x"})
    second = await cas.made(at, {"path": "/b", "content": "x"})
    assert (await cas.post(at, {"path": "/a", "content": "y"})).status == 409
    assert (await cas.post(f"{at}/{second['id']}", {"path": "/a"})).status == 409
    assert (await cas.post(f"{at}/{second['id']}", {"path": "/b", "content": ""})).body["content"] == ""
    await cas.made(f"/memory_stores/{other['id']}/memories", {"path": "/a", "content": "x"})


@pytest.mark.parametrize("body", [
    {}, {"path": "/a"}, {"content": "x"}, {"path": "", "content": ""}, {"path": "/", "content": ""},
    {"path": "/a/../b", "content": ""}, {"path": "a//b", "content": ""}, {"path": "/a", "content": 5},
    {"path": "/a", "content": None}, {"path": "/a", "content": "x" * (100 * 1024 + 1)}, {"path": 5, "content": ""},
])
async def test_a_memory_of_the_wrong_shape_is_refused(cas: Catalog, body: dict[str, Any]) -> None:
    store = await cas.made("/memory_stores", {"name": "m"})
    assert (await cas.post(f"/memory_stores/{store['id']}/memories", body)).status == 400


async def test_nothing_changes_below_an_archived_store(cas: Catalog) -> None:
    store = await cas.made("/memory_stores", {"name": "m"})
    at = f"/memory_stores/{store['id']}/memories"
    made = await cas.made(at, {"path": "/a", "content": "x"})
    assert (await cas.post(f"/memory_stores/{store['id']}/archive")).body["status"] == "archived"
    assert (await cas.post(at, {"path": "/b", "content": "x"})).status == 409
    assert (await cas.post(f"{at}/{made['id']}", {"content": "y"})).status == 409
    assert (await cas.get(f"{at}/{made['id']}")).status == 200


async def test_of_many_who_want_one_path_at_once_one_gets_it(cas: Catalog) -> None:
    store = await cas.made("/memory_stores", {"name": "m"})
    at = f"/memory_stores/{store['id']}/memories"
    answers = await asyncio.gather(*(cas.post(at, {"path": "/a", "content": str(n)}) for n in range(6)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409, 409, 409]
    other = await cas.made(at, {"path": "/b", "content": "x"})
    third = await cas.made(at, {"path": "/c", "content": "x"})
    moved = await asyncio.gather(*(cas.post(f"{at}/{one['id']}", {"path": "/d"}) for one in (other, third)))
    assert sorted(answer.status for answer in moved) == [200, 409]


async def test_what_changes_in_between_is_not_deleted(cas: Catalog) -> None:
    store = await cas.made("/memory_stores", {"name": "m"})
    at = f"/memory_stores/{store['id']}/memories"
    made = await cas.made(at, {"path": "/a", "content": "old"})
    changed, deleted = await asyncio.gather(
        cas.post(f"{at}/{made['id']}", {"content": "new"}),
        cas.delete(f"{at}/{made['id']}?expected_content_sha256={made['content_sha256']}"),
    )
    assert (changed.status, deleted.status) in ((200, 409), (404, 200))
