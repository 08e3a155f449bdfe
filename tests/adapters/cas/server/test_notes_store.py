"""The store of the shared memories is a page of the list of stores, and its memories are pages of notes."""

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.cas.server.notes_store import NOTES_STORE, MemoryStores, Notes
from adapters.cas.server.resource_routes import ResourceKind, StoredResources
from gateway.errors import NotFound
from gateway.resources import Memories, Memory
from gateway.storage.resources import MemoryResources

STORE = ResourceKind("memory_store", "Memory store", "memstore")
MEMORY = ResourceKind("memory", "Memory", "mem", STORE)


@pytest.fixture
def context() -> Any:
    return SimpleNamespace(resources=MemoryResources(lambda: 1.0))


@pytest.mark.parametrize(("asked", "found"), [
    ({}, ["s2", "s1", NOTES_STORE]), ({"limit": 2}, ["s2", "s1"]), ({"before": 1}, [NOTES_STORE]), ({"before": 0}, []),
    ({"after": 0}, ["s2", "s1"]), ({"oldest_first": True, "limit": 2}, [NOTES_STORE, "s1"]),
])
async def test_the_store_is_the_oldest_of_all(context: Any, asked: dict[str, Any], found: list[str]) -> None:
    for name in ("s1", "s2"):
        await context.resources.create("memory_store", "ann", {}, resource_id=name)
    stores = MemoryStores(context, StoredResources(context, STORE), 5.0)
    page = await stores.page("ann", **{
        "parent": "", "archived": False, "after": None, "before": None, "limit": 9, "oldest_first": False, **asked})
    assert [one.resource_id for one in page] == found
    assert (await stores.find("ann", NOTES_STORE)).created_at == 5.0


async def test_notes_are_memories_with_paths(context: Any) -> None:
    memories, notes = Memories(context.resources), Notes(context, MEMORY)
    kept = await memories.add("ann", Memory(content="绿茶"))
    shown = await notes.find("ann", f"mem_note{kept.number}")
    assert (shown.parent, shown.body["path"], shown.body["size"]) == (NOTES_STORE, f"notes/{kept.number}.md", 6)
    assert await notes.all("ann") == [shown]
    page = await notes.page(
        "ann", parent=NOTES_STORE, archived=False, after=None, before=None, limit=5, oldest_first=True)
    assert page == [shown]
    for unknown in ("mem_note99", "mem_notes", "mem_1"):
        with pytest.raises(NotFound):
            await notes.find("ann", unknown)
