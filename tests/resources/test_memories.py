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


async def test_what_fits_best_comes_first_and_is_counted() -> None:
    memories = Memories(MemoryResources(clock=lambda: 1.0), clock=lambda: 7.0)
    for content in ("Likes green tea.", "Drinks tea at four, and likes cake.", "Has a dog."):
        await memories.add("ann", Memory(content=content))
    found = await memories.recall("ann", "Who likes tea and cake?")
    assert [one.stored.memory.content for one in found] == [
        "Drinks tea at four, and likes cake.", "Likes green tea."]
    assert [one.score for one in found] == [4 / 5, 2 / 5]
    assert [(one.stored.memory.hits, one.stored.memory.last_hit_at) for one in found] == [(1, 7.0), (1, 7.0)]
    assert (await memories.recall("ann", "tea"))[0].stored.memory.hits == 2
    assert await memories.recall("bob", "tea") == []
    assert await memories.recall("ann", "?!") == []


@pytest.mark.parametrize(("text", "asked", "is_found"), [
    ("用户喜欢简短的回答", "简短", True), ("用户喜欢简短的回答", "喜欢什么", True),
    ("用户喜欢简短的回答", "天气", False), ("ユーザーは東京に住む", "東京の天気", True),
    ("Prefers Großbuchstaben", "GROSSBUCHSTABEN", True), ("a b c", "a", False),
    ("Python 3.12用户", "python", True),
])
async def test_words_of_any_script_are_found(memories: Memories, text: str, asked: str, is_found: bool) -> None:
    await memories.add("ann", Memory(content=text))
    assert bool(await memories.recall("ann", asked)) is is_found


async def test_what_is_switched_off_is_not_recalled(memories: Memories) -> None:
    kept = await memories.add("ann", Memory(content="Likes tea.", owner="x"))
    assert await memories.recall("ann", "tea", fits=lambda one: one.owner == "y") == []
    assert len(await memories.recall("ann", "tea", fits=lambda one: one.owner == "x")) == 1
    await memories.change("ann", kept.number, disabled=True)
    assert await memories.recall("ann", "tea") == []
    assert (await memories.find("ann", kept.number)).memory.hits == 1
