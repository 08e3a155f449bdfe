"""The store of resources: versions are kept, other people's are not found, pages follow each other."""

import pytest

from gateway.errors import Conflict, NotFound, Overloaded
from gateway.resources import MemoryResources


@pytest.fixture
def store() -> MemoryResources:
    return MemoryResources(clock=iter(range(1000)).__next__)


async def test_versions_are_kept_and_checked(store: MemoryResources) -> None:
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


async def test_other_peoples_are_not_found(store: MemoryResources) -> None:
    made = await store.create("agent", "ann", {})
    for call in (
        store.get("agent", "bob", made.resource_id), store.versions("agent", "bob", made.resource_id),
        store.update("agent", "bob", made.resource_id, {}), store.archive("agent", "bob", made.resource_id),
        store.delete("agent", "bob", made.resource_id), store.get("file", "ann", made.resource_id),
    ):
        with pytest.raises(NotFound):
            await call
    assert await store.list("agent", "bob") == []


async def test_pages_follow_each_other_both_ways(store: MemoryResources) -> None:
    made = [await store.create("file", "ann", {"n": n}) for n in range(5)]
    first = await store.list("file", "ann", limit=2)
    second = await store.list("file", "ann", limit=2, before=first[-1].ordinal)
    assert [one.body["n"] for one in (*first, *second)] == [4, 3, 2, 1]
    oldest = await store.list("file", "ann", oldest_first=True, after=made[1].ordinal)
    assert [one.body["n"] for one in oldest] == [2, 3, 4]


async def test_archived_ones_are_listed_only_if_asked_for(store: MemoryResources) -> None:
    made = await store.create("agent", "ann", {})
    archived = await store.archive("agent", "ann", made.resource_id)
    assert archived.archived_at is not None
    assert await store.archive("agent", "ann", made.resource_id) == archived
    assert await store.list("agent", "ann") == []
    assert await store.list("agent", "ann", archived=True) == [archived]


async def test_what_belongs_to_a_resource_goes_with_it(store: MemoryResources) -> None:
    vault = await store.create("vault", "ann", {})
    inside = await store.create("credential", "ann", {}, parent=vault.resource_id)
    await store.create("credential", "ann", {}, parent="other")
    assert await store.list("credential", "ann", parent=vault.resource_id) == [inside]
    await store.delete("vault", "ann", vault.resource_id)
    with pytest.raises(NotFound):
        await store.get("credential", "ann", inside.resource_id)
    assert len(await store.list("credential", "ann")) == 1


async def test_an_id_is_used_once(store: MemoryResources) -> None:
    await store.create("agent", "ann", {}, resource_id="agent_x")
    with pytest.raises(Conflict):
        await store.create("agent", "bob", {}, resource_id="agent_x")


async def test_what_belongs_together_is_listed_and_deleted_together(store: MemoryResources) -> None:
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


async def test_there_is_room_for_so_many_and_deleting_makes_some() -> None:
    store = MemoryResources(lambda: 0.0, lambda: 3)
    first, second = [await store.create("agent", "ann", {}) for _ in range(2)]
    await store.update("agent", "ann", first.resource_id, {"name": "x"})
    for call in (store.create("agent", "ann", {}), store.update("agent", "ann", second.resource_id, {})):
        with pytest.raises(Overloaded):
            await call
    await store.delete("agent", "ann", first.resource_id)
    for _ in range(2):
        await store.create("agent", "bob", {})


async def test_nobody_reads_secrets_in_a_journal(store: MemoryResources) -> None:
    made = await store.create("key", "ann", {"note": "mine"}, secrets={"token": "hush"})
    assert "hush" not in f"{made} {made!r}"
