"""Every store finds what a look at every text finds: words and parts of words in any script, and nobody else's."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Conflict
from gateway.ports import Resource, Resources
from gateway.resources import Memories, Memory, MemoryFilter
from gateway.search_terms import words_of
from gateway.storage.sqlite.schema import MIGRATIONS, migrate
from tests.support.examples import examples
from tests.support.storage.resource_stores import COMPARED_STORES, STORES

PLENTY = 100_000
PIECES = (
    "tea", "Tea", "te", "a", "I", "ß", "SS", "İ", "用", "户", "用户", "简短", "東京", "の", "ชา", "ร้อน", "é", "🙂",
    " ", ". ", "_", "x'y", "\0", "%",
)
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
KINDS_OF_CHANGES = st.sampled_from(("add", "change", "off", "delete"))
CHANGES = st.lists(st.tuples(KINDS_OF_CHANGES, TEXTS, st.integers(0, 9)), max_size=12)


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Resources]:
    async with STORES[request.param](tmp_path, lambda: 1.0, lambda: PLENTY) as opened:
        yield opened


@pytest.mark.parametrize("name", COMPARED_STORES)
@given(changes=CHANGES, keyword=TEXTS, asked=TEXTS)
@examples(60)
async def test_the_index_finds_what_a_look_at_every_text_finds(
    name: str, changes: list[tuple[str, str, int]], keyword: str, asked: str,
) -> None:
    with TemporaryDirectory() as folder:
        async with STORES[name](Path(folder), lambda: 1.0, lambda: PLENTY) as store:
            await _compare(Memories(store, clock=lambda: 5.0), changes, keyword, asked)


async def _compare(memories: Memories, changes: list[tuple[str, str, int]], keyword: str, asked: str) -> None:
    owner = "ann"
    await memories.add("somebody else", Memory(content=keyword + asked))
    kept: dict[int, Memory] = {}
    for change, text, place in changes:
        number = [*kept][place % len(kept)] if kept else 0
        if change == "add":
            added = await memories.add(owner, Memory(content=text))
            kept[added.number] = added.memory
        elif change == "delete" and kept:
            await memories.remove(owner, number)
            del kept[number]
        elif kept:
            changed = {"content": text} if change == "change" else {"disabled": True}
            kept[number] = (await memories.change(owner, number, **changed)).memory
    newest_first = sorted(kept.items(), reverse=True)
    found, total = await memories.search(owner, MemoryFilter(), keyword, limit=100)
    expected = [number for number, memory in newest_first if keyword.casefold() in memory.content.casefold()]
    assert ([one.number for one in found], total) == (expected, len(expected))
    words = words_of(asked)
    shares = [(-len(words & words_of(memory.content)) / max(1, len(words)), -number)
              for number, memory in newest_first if not memory.disabled]
    fitting = [(-number, -share) for share, number in sorted(shares) if share < 0][:5]
    assert [(one.stored.number, one.score) for one in await memories.recall(owner, asked)] == fitting


async def test_a_common_word_counts_only_where_no_other_is_had(store: Resources) -> None:
    contents = [f"tea {'green' if n < 2 else 'black'} {n}" for n in range(6)]
    made = [await store.create("note", "ann", {"content": content}) for content in contents]
    ranking = await store.ranked("note", "ann", sorted(words_of("which green tea")), common=4, limit=9)
    assert (ranking.terms, [one.resource_id for one, _ in ranking.found]) == (
        2, [made[1].resource_id, made[0].resource_id])
    ranking = await store.ranked("note", "ann", sorted(words_of("which tea")), common=4, limit=2, offset=1)
    assert (ranking.terms, ranking.found) == (2, [(made[4], 1), (made[3], 1)])


async def test_what_is_archived_or_goes_with_its_parent_is_not_found(store: Resources) -> None:
    above = await store.create("memory_store", "ann", {})
    below = await store.create("memory", "ann", {"path": "a.md"}, parent=above.resource_id)
    other = await store.create("memory", "ann", {"path": "a.md"})
    assert await store.with_terms("memory", "ann", {"pa.md"}) == [other, below]
    await store.archive("memory", "ann", other.resource_id)
    assert await store.with_terms("memory", "ann", {"pa.md"}) == [below]
    await store.update("memory", "ann", other.resource_id, {"path": "b.md"})
    assert await store.with_terms("memory", "ann", {"pb.md"}) == []
    await store.delete("memory_store", "ann", above.resource_id)
    assert await store.with_terms("memory", "ann", {"pa.md"}) == []


async def test_an_amendment_is_no_version(store: Resources) -> None:
    made = await store.create("note", "ann", {"content": "tea", "hits": 0}, secrets={"token": "hush"})
    amended = await store.amend("note", "ann", made.resource_id, lambda body: {**body, "hits": body["hits"] + 1})
    assert amended == msgspec.structs.replace(made, body={"content": "tea", "hits": 1})
    assert await store.versions("note", "ann", made.resource_id) == (amended,)
    assert await store.with_terms("note", "ann", {"cte"}) == [amended]


async def test_room_is_counted_with_what_was_archived_and_deleted(store: Resources) -> None:
    made = [await store.create("note", "ann", {"content": str(n)}, most=2) for n in range(2)]
    await store.archive("note", "ann", made[0].resource_id)
    await store.create("note", "ann", {"content": "third"}, most=2)
    await store.delete("note", "ann", made[0].resource_id)  # it was archived, and makes no room
    with pytest.raises(Conflict, match="2 of the kind"):
        await store.create("note", "ann", {"content": "fourth"}, most=2)
    await store.delete("note", "ann", made[1].resource_id)
    await store.create("note", "ann", {"content": "fourth"}, most=2)


async def test_notes_of_an_older_file_are_found(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "dragoman.db", isolation_level=None)
    migrate(old, MIGRATIONS[:2])
    for number, archived in ((1, None), (2, 1.0)):
        one = Resource(
            kind="note", resource_id=f"note_{number}", owner="ann", ordinal=number, version=1, created_at=0.0,
            updated_at=0.0, body={"content": "喝绿茶"}, archived_at=archived,
        )
        old.execute("INSERT INTO resources VALUES ('note', ?, 1, ?, 'ann', '', 1, ?, ?)",
                    (one.resource_id, number, archived, msgspec.json.encode(one)))
    old.close()
    async with STORES["sqlite"](tmp_path, lambda: 1.0, lambda: PLENTY) as store:
        assert [one.ordinal for one in await store.with_terms("note", "ann", {"c绿茶"})] == [1]
        with pytest.raises(Conflict, match="1 of the kind"):
            await store.create("note", "ann", {"content": "x"}, most=1)


async def test_notes_from_before_the_index_are_found_in_redis(tmp_path: Path) -> None:
    async with STORES["redis"](tmp_path, lambda: 1.0, lambda: PLENTY) as store:
        made = [await store.create("note", "ann", {"content": text}) for text in ("喝绿茶", "coffee")]
        redis = store._redis  # type: ignore[attr-defined]
        keys = [key for [keys] in [await redis.read_all([("KEYS", f"{redis.prefix}*")])] for key in keys]
        for key in keys:
            if b":" in key and key.decode()[len(redis.prefix):].split(":")[0] in ("term", "terms", "indexed"):
                await redis.read_all([("DEL", key)])
        assert await store.with_terms("note", "ann", {"c绿茶"}) == [made[0]]
        assert (await store.ranked("note", "ann", {"wcoffee"}, common=9, limit=9)).found == [(made[1], 1)]
