"""What every store promises: versions, pages, archives, families, room, and other people's that are not found."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Conflict, GatewayError, NotFound, Overloaded
from gateway.ports import Resource, Resources
from gateway.storage.resources.memory import MemoryResources
from tests.support.examples import examples
from tests.support.storage.resource_stores import COMPARED_STORES, STORES

PLENTY = 1000


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Resources]:
    ticks = count()
    async with STORES[request.param](tmp_path, lambda: float(next(ticks)), lambda: PLENTY) as opened:
        yield opened


async def test_versions_are_kept_and_checked(store: Resources) -> None:
    made = await store.create("agent", "ann", {"name": "a"}, secrets={"token": "hush"})
    changed = await store.update("agent", "ann", made.resource_id, {"name": "b"}, expected=1)
    assert (changed.version, changed.body, changed.secrets) == (2, {"name": "b"}, {"token": "hush"})
    assert changed.created_at == made.created_at < changed.updated_at
    with pytest.raises(Conflict, match="at version 2, not 1"):
        await store.update("agent", "ann", made.resource_id, {"name": "c"}, expected=1)
    assert await store.get("agent", "ann", made.resource_id) == changed
    assert await store.get("agent", "ann", made.resource_id, 1) == made
    assert await store.versions("agent", "ann", made.resource_id) == (made, changed)
    for version in (0, 3):
        with pytest.raises(NotFound, match="no version"):
            await store.get("agent", "ann", made.resource_id, version)


async def test_the_kinds_in_use_are_known_at_once(store: Resources) -> None:
    kinds = ("agent", "skill", "memory")
    assert await store.kinds_in_use("ann", kinds) == frozenset()
    agent = await store.create("agent", "ann", {}, parent="p")
    skill = await store.create("skill", "ann", {})
    await store.create("memory", "bob", {})
    assert await store.kinds_in_use("ann", kinds) == {"agent", "skill"}
    assert await store.kinds_in_use("ann", ("skill", "memory")) == {"skill"}
    await store.archive("agent", "ann", agent.resource_id)
    await store.delete("skill", "ann", skill.resource_id)
    assert await store.kinds_in_use("ann", kinds) == frozenset()
    assert await store.kinds_in_use("ann", ()) == frozenset()
    assert await store.kinds_in_use("\ud800", kinds) == frozenset()


async def test_the_owners_are_known_with_their_kinds(store: Resources) -> None:
    assert await store.owners() == {}
    agent = await store.create("agent", "ann", {}, parent="p")
    await store.create("file", "ann", {})
    await store.create("file", "bob*", {})
    await store.archive("agent", "ann", agent.resource_id)
    assert await store.owners() == {"ann": {"agent", "file"}, "bob*": {"file"}}
    await store.delete("agent", "ann", agent.resource_id)
    assert await store.owners() == {"ann": {"file"}, "bob*": {"file"}}


async def test_other_peoples_are_not_found(store: Resources) -> None:
    made = await store.create("agent", "ann", {})
    for call in (
        store.get("agent", "bob", made.resource_id), store.versions("agent", "bob", made.resource_id),
        store.update("agent", "bob", made.resource_id, {}), store.archive("agent", "bob", made.resource_id),
        store.delete("agent", "bob", made.resource_id), store.get("file", "ann", made.resource_id),
    ):
        with pytest.raises(NotFound):
            await call
    assert await store.list("agent", "bob") == []


async def test_pages_follow_each_other_both_ways(store: Resources) -> None:
    made = [await store.create("file", "ann", {"n": n}) for n in range(5)]
    first = await store.list("file", "ann", limit=2)
    second = await store.list("file", "ann", limit=2, before=first[-1].ordinal)
    assert [one.body["n"] for one in (*first, *second)] == [4, 3, 2, 1]
    oldest = await store.list("file", "ann", oldest_first=True, after=made[1].ordinal)
    assert [one.body["n"] for one in oldest] == [2, 3, 4]


async def test_archived_ones_are_listed_only_if_asked_for(store: Resources) -> None:
    made = await store.create("agent", "ann", {})
    archived = await store.archive("agent", "ann", made.resource_id)
    assert archived.archived_at is not None
    assert await store.archive("agent", "ann", made.resource_id) == archived
    assert await store.list("agent", "ann") == []
    assert await store.list("agent", "ann", archived=True) == [archived]


async def test_what_belongs_to_a_resource_goes_with_it(store: Resources) -> None:
    vault = await store.create("vault", "ann", {})
    inside = await store.create("credential", "ann", {}, parent=vault.resource_id)
    await store.create("credential", "ann", {}, parent="other")
    assert await store.list("credential", "ann", parent=vault.resource_id) == [inside]
    await store.delete("vault", "ann", vault.resource_id)
    with pytest.raises(NotFound):
        await store.get("credential", "ann", inside.resource_id)
    assert len(await store.list("credential", "ann")) == 1


async def test_an_id_is_used_once(store: Resources) -> None:
    await store.create("agent", "ann", {}, resource_id="agent_x")
    with pytest.raises(Conflict):
        await store.create("agent", "bob", {}, resource_id="agent_x")


async def test_what_belongs_together_is_listed_and_deleted_together(store: Resources) -> None:
    vault, other = [await store.create("vault", "ann", {}) for _ in range(2)]
    keys = [await store.create("key", "ann", {}, parent=vault.resource_id) for _ in range(3)]
    lone = await store.create("key", "ann", {}, parent=other.resource_id)
    below = await store.create("use", "ann", {}, parent=keys[0].resource_id)
    assert await store.list("key", "ann", parent=vault.resource_id, oldest_first=True) == keys
    assert await store.list("key", "ann") == [lone, *reversed(keys)]
    assert await store.list("key", "ann", parent="") == []
    await store.delete("key", "ann", keys[1].resource_id)
    await store.delete("vault", "ann", vault.resource_id)
    assert await store.list("key", "ann") == [lone]
    with pytest.raises(NotFound):
        await store.get("use", "ann", below.resource_id)


@pytest.mark.parametrize("name", STORES)
async def test_there_is_room_for_so_many_and_deleting_makes_some(name: str, tmp_path: Path) -> None:
    async with STORES[name](tmp_path, lambda: 0.0, lambda: 3) as store:
        first, second = [await store.create("agent", "ann", {}) for _ in range(2)]
        await store.update("agent", "ann", first.resource_id, {"name": "x"})
        for call in (store.create("agent", "ann", {}), store.update("agent", "ann", second.resource_id, {})):
            with pytest.raises(Overloaded):
                await call
        await store.delete("agent", "ann", first.resource_id)
        for _ in range(2):
            await store.create("agent", "bob", {})


async def test_nobody_reads_secrets_in_a_journal(store: Resources) -> None:
    made = await store.create("key", "ann", {"note": "mine"}, secrets={"token": "hush"})
    assert "hush" not in f"{made} {made!r}"


async def test_what_is_archived_still_has_its_versions_and_takes_new_ones(store: Resources) -> None:
    made = await store.create("agent", "ann", {"n": 1}, resource_id="x")
    changed = await store.update("agent", "ann", "x", {"n": 2})
    archived = await store.archive("agent", "ann", "x")
    assert await store.versions("agent", "ann", "x") == (made, archived)
    assert (archived.version, archived.updated_at) == (changed.version, changed.updated_at)
    assert (await store.update("agent", "ann", "x", {"n": 3})).archived_at == archived.archived_at


async def test_families_in_a_circle_go_together(store: Resources) -> None:
    await store.create("agent", "ann", {}, resource_id="a", parent="b")
    await store.create("agent", "bob", {}, resource_id="b", parent="a")
    await store.create("file", "ann", {}, resource_id="self", parent="self")
    await store.delete("agent", "ann", "a")
    assert (await store.list("agent", "ann"), await store.list("agent", "bob")) == ([], [])
    await store.delete("file", "ann", "self")
    assert await store.list("file", "ann") == []


async def test_ordinals_are_never_used_again(store: Resources) -> None:
    first = await store.create("agent", "ann", {}, resource_id="a")
    await store.delete("agent", "ann", "a")
    again = await store.create("agent", "ann", {}, resource_id="a")
    assert (again.ordinal > first.ordinal, again.version) == (True, 1)


async def test_words_that_are_no_text_and_numbers_beyond_all_bounds_find_nothing(store: Resources) -> None:
    made = await store.create("agent", "ann", {}, resource_id="a")
    for call in (store.get("agent", "ann", "\udcff"), store.get("agent", "ann", "a", 2**70),
                 store.delete("agent", "ann", "\udcff")):
        with pytest.raises(NotFound):
            await call
    assert await store.list("agent", "ann", parent="\udcff") == []
    assert await store.list("agent", "ann", before=2**70, after=-2**70) == [made]
    assert await store.list("agent", "ann", after=2**70) == []


# -- any order of anything, compared with the store that is easy to understand -----------------------------------------

KINDS, OWNERS, IDS, PARENTS = ("agent", "key"), ("ann", "bob"), ("a", "b", "c", "d"), ("", "a", "b", "zz")
kinds, owners, ids = st.sampled_from(KINDS), st.sampled_from(OWNERS), st.sampled_from(IDS)
leaves = st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=6)
values = st.recursive(
    leaves | words, lambda below: st.lists(below, max_size=3) | st.dictionaries(words, below, max_size=3), max_leaves=6,
)
bodies = st.dictionaries(words, values, max_size=3)
secrets = st.none() | st.dictionaries(words, words, max_size=2)
places = st.none() | st.integers(-1, 15)
versions = st.none() | st.integers(0, 4)
Move = tuple[str, tuple[Any, ...], dict[str, Any]]


def move(name: str, *given: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Move]:
    return st.tuples(st.just(name), st.tuples(*given), st.fixed_dictionaries(named))


moves = st.one_of(
    move("create", kinds, owners, bodies, secrets=secrets, parent=st.sampled_from(PARENTS), resource_id=ids),
    move("update", kinds, owners, ids, bodies, secrets=secrets, expected=versions),
    move("archive", kinds, owners, ids),
    move("delete", kinds, owners, ids),
    move("get", kinds, owners, ids, versions),
    move("versions", kinds, owners, ids),
    move(
        "list", kinds, owners, parent=st.none() | st.sampled_from(PARENTS), before=places, after=places,
        limit=st.integers(1, 5), archived=st.booleans(), oldest_first=st.booleans(),
    ),
)


async def outcome(store: Resources, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        found = await getattr(store, name)(*given, **named)
    except GatewayError as error:
        return type(error), error.message
    return found if found is None or isinstance(found, Resource) else list(found)


async def everything(store: Resources) -> list[Resource]:
    return [one for kind in KINDS for owner in OWNERS for one in await store.list(kind, owner, archived=True)]


@pytest.mark.parametrize("name", [name for name in COMPARED_STORES if name != "memory"])
@examples(50)
@given(st.lists(moves, max_size=40), st.integers(1, 12))
async def test_whatever_is_done_comes_out_as_in_memory(name: str, told: list[Move], most: int) -> None:
    now = 0.0
    plain = MemoryResources(lambda: now, lambda: most)
    with TemporaryDirectory() as folder:
        async with STORES[name](Path(folder), lambda: now, lambda: most) as store:
            for one in told:
                now += 1.0
                assert await outcome(store, *one) == await outcome(plain, *one)
            assert await everything(store) == await everything(plain)


@pytest.mark.parametrize("name", [name for name in COMPARED_STORES if name != "memory"])
@examples(15)
@given(st.lists(st.lists(moves, max_size=15), max_size=4))
async def test_it_is_all_there_when_the_store_is_opened_again(name: str, lives: list[list[Move]]) -> None:
    now = [0.0]
    plain = MemoryResources(lambda: now[0], lambda: 8)
    with TemporaryDirectory() as folder:
        for told in [*lives, []]:
            async with STORES[name](Path(folder), lambda: now[0], lambda: 8) as store:
                assert await everything(store) == await everything(plain)
                for one in told:
                    now[0] += 1.0
                    assert await outcome(store, *one) == await outcome(plain, *one)
