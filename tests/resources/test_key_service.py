"""A running server knows keys by heart, and learns within a moment what other processes and servers change."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.errors import NotFound, Overloaded
from gateway.ports import Caller
from gateway.ports.keys import AsyncKeyTable, Key, KeyUse, with_use
from gateway.resources import KeyService
from gateway.storage.redis import RedisAddress, RedisClient
from gateway.storage.resources.key_tables import SqliteKeyTable, ThreadedKeyTable
from gateway.storage.resources.redis import RedisKeyTable
from tests.support.gateway_server import simulation, until
from tests.support.redis_server import redis_of_this_run


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncIterator[AsyncKeyTable]:
    yield ThreadedKeyTable(SqliteKeyTable(folder / "dragoman.db"))


@asynccontextmanager
async def in_redis(folder: Path) -> AsyncIterator[AsyncKeyTable]:
    redis = RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={quote(str(folder))}"))
    await redis.open()
    yield RedisKeyTable(redis)
    await redis.close()


TABLES: dict[str, Callable[[Path], AbstractAsyncContextManager[AsyncKeyTable]]] = {
    "sqlite": in_sqlite, "redis": in_redis,
}


class Server:
    """The keys of one server, and the hashes that it was told are gone."""

    def __init__(self, table: AsyncKeyTable, folder: Path) -> None:
        self.gone: list[str] = []
        self.audit: list[tuple[str, str, str]] = []
        self.keys = KeyService(
            table, folder, simulation().wall_clock, on_removed=self._removed,
            audit=lambda event, caller, target: self.audit.append((event, caller.user if caller else "", target)),
        )

    def _removed(self, hashes: Iterable[str]) -> None:
        self.gone += hashes


@pytest.fixture(params=TABLES)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[Server]]:
    @asynccontextmanager
    async def server() -> AsyncIterator[Server]:
        async with TABLES[request.param](tmp_path) as table:
            made = Server(table, tmp_path)
            await made.keys.open()
            watching = asyncio.create_task(made.keys.poll())
            yield made
            watching.cancel()
            await asyncio.wait([watching])
            await made.keys.close()

    return server


async def test_what_one_server_changes_the_other_knows(servers: Any) -> None:
    async with servers() as one, servers() as two:
        token = await one.keys.add("laptop", "ada")
        key = await two.keys.verify(token, "1.2.3.4")
        assert (key.name, key.user) == ("laptop", "ada")
        await one.keys.remove("laptop")
        assert one.gone == [key.hash]
        await until(lambda: two.gone)
        assert two.gone == [key.hash]
        assert await two.keys.verify(token) is None
        assert (len(one.keys), len(two.keys)) == (0, 0)


async def test_a_key_dies_with_the_key_that_made_it_on_every_server(servers: Any) -> None:
    async with servers() as one, servers() as two:
        token = await one.keys.add("laptop", "ada")
        parent = await one.keys.verify(token)
        ada = Caller(user="ada", credential=parent.hash, key="laptop")
        made, child = await one.keys.issue(ada, "mine")
        assert (await two.keys.verify(child)).parent == parent.hash
        await two.keys.remove("laptop", by=Caller(user="root"))
        await until(lambda: len(one.gone) == 2)
        assert await one.keys.verify(child) is None
        assert one.audit == [("key.created", "", "laptop of ada"), ("key.created", "ada", made.name)]
        assert two.audit == [("key.revoked", "root", "laptop"), ("key.revoked", "root", f"{made.name}, made by laptop")]
        assert token not in str((one.audit, two.audit))


async def test_last_use_and_its_address_are_known_at_once_and_soon_elsewhere(servers: Any) -> None:
    async with servers() as one, servers() as two:
        token = await one.keys.add("ada")
        assert [(key.used, key.used_from) for key in await one.keys.of("ada")] == [(None, "")]
        await one.keys.verify(token, "192.0.2.7")
        [mine] = await one.keys.of("ada")
        assert (mine.used is None, mine.used_from) == (False, "192.0.2.7")
        await asyncio.sleep(10)
        assert [(key.used, key.used_from) for key in await two.keys.of("ada")] == [(mine.used, "192.0.2.7")]
        assert (await two.keys.find("ada", mine.key_id)).used_from == "192.0.2.7"


async def test_a_users_keys_are_their_own_and_can_be_called_otherwise(servers: Any) -> None:
    async with servers() as server:
        ada, bob = Caller(user="ada"), Caller(user="bob")
        made, token = await server.keys.issue(ada, "one", "sk-x-")
        for call in (server.keys.revoke(bob, made.key_id), server.keys.relabel(bob, made.key_id, "x"),
                     server.keys.find("bob", made.key_id)):
            with pytest.raises(NotFound):
                await call
        assert (await server.keys.relabel(ada, made.key_id, "two")).label == "two"
        assert (await server.keys.verify(token)).label == "two"
        await server.keys.revoke(ada, made.key_id)
        assert await server.keys.verify(token) is None
        assert [event for event, *_ in server.audit] == ["key.created", "key.updated", "key.revoked"]


class Counted:
    """A table with one key that counts how often it is asked, and may be away."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_away = False

    async def version(self) -> int:
        self.looks += 1
        if self.is_away:
            raise Overloaded("the store is away")
        return 0

    async def load(self) -> tuple[int, list[Key]]:
        return 0, []

    async def close(self) -> None: ...


async def test_strangers_make_the_server_look_seldom(tmp_path: Path) -> None:
    table = Counted()
    keys = KeyService(table, tmp_path, simulation().wall_clock, on_removed=lambda gone: None)  # type: ignore[arg-type]
    await keys.open()
    before = table.looks
    for _ in range(10):
        assert await asyncio.gather(*(keys.verify(f"dgm_{number}") for number in range(100))) == [None] * 100
    assert table.looks - before <= 10


async def test_while_the_store_is_away_known_keys_open_and_nobody_can_say_of_others(tmp_path: Path) -> None:
    table = Counted()
    keys = KeyService(table, tmp_path, simulation().wall_clock, on_removed=lambda gone: None)  # type: ignore[arg-type]
    await keys.open()
    table.is_away = True
    with pytest.raises(Overloaded, match="the store is away"):
        await keys.verify("dgm_unknown")
    watching = asyncio.create_task(keys.poll())
    await asyncio.sleep(5)
    assert not watching.done()
    watching.cancel()


def test_the_later_use_counts() -> None:
    at = datetime.fromtimestamp(5, UTC)
    key = Key(name="a", user="a", hash="h", created=at, used=at, used_from="x")
    assert with_use(key, KeyUse(4, "y")).used_from == "x"
    assert with_use(key, KeyUse(6, "y")).used_from == "y"
    assert with_use(key, None) is key
