"""Memories have numbers, are found by what they are about, and are nobody else's."""

import pytest

from gateway.errors import Conflict, NotFound
from gateway.resources.memories import Memories, Memory, MemoryFilter
from gateway.storage.resources.memory import MemoryResources


@pytest.fixture
def memories() -> Memories:
    return Memories(MemoryResources(clock=iter(range(1000)).__next__))


async def test_a_memory_has_a_number_and_is_found_by_it(memories: Memories) -> None:
    first = await memories.add("ann", Memory(content="one"))
    second = await memories.add("ann", Memory(content="two"))
    assert first.number < second.number
    assert (await memories.find("ann", first.number)).memory == Memory(content="one")
    assert first.updated_at is None


async def test_other_peoples_are_not_found(memories: Memories) -> None:
    kept = await memories.add("ann", Memory(content="one"))
    for call in (
        memories.find("bob", kept.number), memories.remove("bob", kept.number),
        memories.change("bob", kept.number, content="x"), memories.find("ann", 99),
    ):
        with pytest.raises(NotFound):
            await call
    assert await memories.remove_all("bob", [kept.number]) == 0
    assert await memories.search("bob", MemoryFilter()) == ([], 0)


async def test_a_change_is_of_what_was_said(memories: Memories) -> None:
    kept = await memories.add("ann", Memory(content="one", topic="t"))
    changed = await memories.change("ann", kept.number, content="two")
    assert changed.memory == Memory(content="two", topic="t")
    assert (changed.number, changed.created_at) == (kept.number, kept.created_at)
    assert changed.updated_at is not None


async def test_a_search_wants_all_that_is_said(memories: Memories) -> None:
    for number in range(5):
        await memories.add("ann", Memory(content=f"Note {number}", topic="even" if number % 2 == 0 else "odd"))
    page, total = await memories.search("ann", MemoryFilter(topic="even"), offset=1, limit=1)
    assert ([kept.memory.content for kept in page], total) == (["Note 2"], 3)
    page, total = await memories.search("ann", MemoryFilter(topic="even"), "nOTE 4")
    assert ([kept.memory.content for kept in page], total) == (["Note 4"], 1)
    assert await memories.search("ann", MemoryFilter(topic=None)) == ([], 0)


async def test_many_are_changed_and_removed_at_once(memories: Memories) -> None:
    numbers = [(await memories.add("ann", Memory(content=str(n)))).number for n in range(3)]
    assert await memories.change_all("ann", [*numbers[:2], 99], disabled=True) == 2
    assert (await memories.search("ann", MemoryFilter(disabled=True)))[1] == 2
    assert await memories.remove_all("ann", numbers[:2]) == 2
    assert (await memories.search("ann", MemoryFilter()))[1] == 1


async def test_a_user_has_so_many(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.memories.MAX_MEMORIES", 1)
    await memories.add("ann", Memory(content="one"))
    with pytest.raises(Conflict):
        await memories.add("ann", Memory(content="two"))
