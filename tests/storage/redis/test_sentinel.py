"""Behind sentinels: whom a client believes, and what it does when another server becomes the primary."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from gateway.errors import GatewayError
from gateway.storage.redis import RedisAddress, RedisClient, RedisConnection, RedisUnreachable
from tests.support.gateway_server import until


class Node:
    """A server that answers a command, or a sentinel: what it says is decided by the test."""

    def __init__(self) -> None:
        self.port = 0
        self.role = b"master"
        self.primary: Node | None = None
        self.configuration = 0
        self.replicas = 0
        self.refuses = b""
        self.is_silent = False
        self.asked: list[bytes] = []
        self.ends: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ends.add(writer)
        try:
            while count := await reader.readline():
                words = []
                for _ in range(int(count[1:])):
                    size = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(size + 2))[:-2])
                if not self.is_silent:
                    writer.write(self._reply(words))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.ends.discard(writer)
            writer.transport.abort()

    def _reply(self, words: list[bytes]) -> bytes:
        self.asked.append(b" ".join(words))
        match words:
            case [b"ROLE"]:
                return b"*1\r\n" + bulk(self.role)
            case [b"SENTINEL", _, b"other"]:
                return b"*-1\r\n"
            case [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", _]:
                return b"*2\r\n" + bulk(b"127.0.0.1") + bulk(b"%d" % self._primary_port)
            case [b"SENTINEL", b"MASTER", _]:
                return b"*2\r\n" + bulk(b"config-epoch") + bulk(b"%d" % self.configuration)
            case [b"WAIT", *_]:
                return b":%d\r\n" % self.replicas
            case [b"GET", _]:
                return self.refuses or bulk(b"%d" % self.port)
        return b"+OK\r\n"

    @property
    def _primary_port(self) -> int:
        assert self.primary is not None
        return self.primary.port


def bulk(word: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(word), word)


@asynccontextmanager
async def nodes(number: int) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        made = [Node() for _ in range(number)]
        for node in made:
            server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
            node.port = server.sockets[0].getsockname()[1]
            stack.callback(server.close)
        try:
            yield made
        finally:
            for node in made:
                for end in tuple(node.ends):
                    end.transport.abort()


def behind(*sentinels: Node, group: str = "group", query: str = "") -> RedisAddress:
    places = ",".join(f"127.0.0.1:{node.port}" for node in sentinels)
    return RedisAddress.read(f"redis+sentinel://{places}/{group}{query}")


async def serving_port(connection: RedisConnection) -> int:
    return int(await connection.ask("GET", "x"))


@pytest.mark.parametrize(("written", "sentinels", "shown"), [
    ("redis+sentinel://ann:hush@h1,h2:1,h3/main?prefix=mine", (("h1", 26379), ("h2", 1), ("h3", 26379)),
     "redis+sentinel://h1:26379,h2:1,h3:26379/main"),
    ("rediss+sentinel://h1/main?db=3&wait=2", (("h1", 26379),), "rediss+sentinel://h1:26379/main"),
])
def test_an_address_names_the_sentinels_and_the_group(written: str, sentinels: object, shown: str) -> None:
    address = RedisAddress.read(written)
    assert (address.sentinels, address.shown, address.group) == (sentinels, shown, "main")
    assert address.wait == (2 if "wait" in written else 1)


async def test_sentinels_that_have_not_heard_of_a_failover_are_not_believed() -> None:
    async with nodes(5) as (old, new, *sentinels):
        for sentinel in sentinels:
            sentinel.primary, sentinel.configuration = old, 4
        sentinels[1].primary, sentinels[1].configuration = new, 5
        sentinels[2].is_silent = True
        connection = RedisConnection(behind(*sentinels), 2)
        assert await serving_port(connection) == new.port
        await connection.close()


async def test_one_sentinel_is_enough_if_the_others_are_silent() -> None:
    async with nodes(4) as (primary, *sentinels):
        for sentinel in sentinels:
            sentinel.primary, sentinel.is_silent = primary, sentinel is not sentinels[2]
        connection = RedisConnection(behind(*sentinels), 2)
        assert await serving_port(connection) == primary.port
        await connection.close()


async def test_a_server_that_says_that_it_is_a_replica_is_not_used() -> None:
    async with nodes(2) as (primary, sentinel):
        sentinel.primary, primary.role = primary, b"slave"
        connection = RedisConnection(behind(sentinel), 2)
        with pytest.raises(RedisUnreachable, match="is not the primary yet, or not any more"):
            await serving_port(connection)
        primary.role = b"master"
        assert await serving_port(connection) == primary.port
        await connection.close()


async def test_a_group_that_the_sentinels_do_not_watch_is_told() -> None:
    async with nodes(2) as (primary, sentinel):
        sentinel.primary = primary
        with pytest.raises(RedisUnreachable, match="its sentinels watch no primary 'other'"):
            await serving_port(RedisConnection(behind(sentinel, group="other"), 2))


async def test_that_no_sentinel_answers_is_told() -> None:
    async with nodes(1) as (sentinel,):
        sentinel.is_silent = True
        with pytest.raises(RedisUnreachable, match="no sentinel answers"):
            await serving_port(RedisConnection(behind(sentinel), 2))


@pytest.mark.parametrize("refusal", [
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
])
async def test_after_a_refusal_of_a_replica_the_sentinels_are_asked_again(refusal: bytes) -> None:
    async with nodes(3) as (old, new, sentinel):
        sentinel.primary = old
        connection = RedisConnection(behind(sentinel), 2)
        assert await serving_port(connection) == old.port
        sentinel.primary, sentinel.configuration, old.refuses = new, 1, refusal
        [reply] = await asyncio.gather(connection.ask("GET", "x"), return_exceptions=True)
        assert isinstance(reply, Exception)
        assert await serving_port(connection) == new.port
        await connection.close()


async def test_all_connections_leave_a_primary_that_was_replaced_and_the_observer_hears_of_it() -> None:
    async with nodes(3) as (old, new, sentinel):
        sentinel.primary = old
        redis, observer = RedisClient(behind(sentinel, query="?wait=0")), Changes()
        redis.attach(observer)
        assert await redis.read_all([("GET", "x")]) == [b"%d" % old.port]
        sentinel.primary, sentinel.configuration = new, 1
        await redis._writing.ask("PING")  # this connection is new, and finds the new primary
        assert (observer.changes, redis.failovers) == (1, 1)
        assert await redis.read_all([("GET", "x")]) == [b"%d" % new.port]
        await until(lambda: not old.ends)
        await redis.close()


class Changes:
    def __init__(self) -> None:
        self.changes = 0

    def failed(self, error: GatewayError) -> None: ...
    def data_lost(self) -> None: ...
    def primary_changed(self) -> None:
        self.changes += 1


@pytest.mark.parametrize("have", [0, 1])
async def test_what_too_few_replicas_have_is_not_known_to_be_stored(have: int) -> None:
    async with nodes(2) as (primary, sentinel):
        sentinel.primary, primary.replicas = primary, have
        redis = RedisClient(behind(sentinel, query="?wait=1"))
        if have:
            assert await redis.run_script("beat", redis.replica, 1000) == b"OK"
        else:
            with pytest.raises(RedisUnreachable, match="0 of 1 replicas") as told:
                await redis.run_script("beat", redis.replica, 1000)
            assert told.value.was_sent
        script, write, waited = primary.asked[-3:]
        assert script.startswith(b"EVALSHA") and write.endswith(b":synced") and waited.startswith(b"WAIT 1 ")
        await redis.close()


async def test_what_too_few_replicas_have_is_not_read() -> None:
    async with nodes(2) as (primary, sentinel):
        sentinel.primary, primary.replicas = primary, 1
        redis = RedisClient(behind(sentinel))
        assert await redis.read_all([("GET", "x")]) == [b"%d" % primary.port]
        primary.replicas = 0
        with pytest.raises(RedisUnreachable, match="0 of 1 replicas"):
            await redis.read_all([("GET", "x")])
        await redis.close()
