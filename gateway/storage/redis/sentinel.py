"""Connects to Redis: to the one server of an address, or to the primary that its sentinels name."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakSet

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, RedisError

from .address import Place, RedisAddress

log = structlog.get_logger("dragoman.redis")

Dial = Callable[[float], Awaitable[AbstractConnection]]
"""(seconds that it may take) → an open connection; raises `RedisError`, `OSError` or `TimeoutError`."""
SHARE_FOR_SENTINELS = 0.5
"""How much of the time for a connection the sentinels may take."""


def make_dial(address: RedisAddress, changed: Callable[[], None] = lambda: None) -> Dial:
    """How connections to this address are made; `changed` is called when another server has become the primary."""
    if address.sentinels:
        return SentinelGroup(address, changed).dial

    async def dial(seconds: float) -> AbstractConnection:
        return await open_connection(address.connection(seconds))

    return dial


async def open_connection(connection: AbstractConnection) -> AbstractConnection:
    """The connection, open; it is closed if it cannot be opened."""
    try:
        await connection.connect()  # type: ignore[no-untyped-call]
    except BaseException:
        await close_connection(connection)
        raise
    return connection


async def close_connection(connection: AbstractConnection) -> None:
    with suppress(RedisError, OSError, TimeoutError):
        await connection.disconnect(nowait=True)


class SentinelGroup:
    """The servers behind sentinels: each connection goes to the server that is the primary then.

    The sentinels are asked for every connection. If some of them have not heard of a failover yet, those that know
    the later configuration are believed, and a server that says that it is a replica is not used.
    """

    def __init__(self, address: RedisAddress, changed: Callable[[], None]) -> None:
        self._address = address
        self._changed = changed
        self._primary: tuple[Place, int] | None = None
        """The primary that was used last, and the number of its configuration, which each failover makes greater."""
        self._open: WeakSet[AbstractConnection] = WeakSet()

    async def dial(self, seconds: float) -> AbstractConnection:
        found = place, configuration = await self._find(seconds * SHARE_FOR_SENTINELS)
        connection = await open_connection(self._address.connection(seconds, place))
        try:
            await self._check_role(connection, place)
        except BaseException:
            await close_connection(connection)
            raise
        before, self._primary = self._primary, found
        if before is not None and before != found:
            log.warning("redis_primary_changed", group=self._address.group, primary=f"{place[0]}:{place[1]}",
                        configuration=configuration)
            self._hang_up()
            self._changed()
        self._open.add(connection)
        return connection

    def _hang_up(self) -> None:
        """Break the connections to the primary of before: what it answers may be out of date."""
        for connection in tuple(self._open):
            if connection._writer is not None:
                connection._writer.transport.abort()
        self._open.clear()

    async def _check_role(self, connection: AbstractConnection, place: Place) -> None:
        await connection.send_command("ROLE")
        try:
            role = (await connection.read_response())[0]
        except NoPermissionError:
            return
        if role != b"master":
            raise RedisConnectionError(f"{place[0]}:{place[1]} is not the primary yet, or not any more")

    async def _find(self, seconds: float) -> tuple[Place, int]:
        """The primary by what more than half of the sentinels say; by fewer if no more of them answer in time."""
        asking = [asyncio.create_task(self._ask(one, seconds)) for one in self._address.sentinels]
        known: list[tuple[Place, int]] = []
        failure: Exception = TimeoutError()
        answered = 0
        try:
            for reply in asyncio.as_completed(asking):
                try:
                    found = await reply
                except (RedisError, OSError, TimeoutError) as error:
                    failure = error
                    continue
                answered += 1
                known += [] if found is None else [found]
                if answered > len(asking) // 2 and known:
                    break
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        if known:
            return max(known, key=lambda one: one[1])
        if answered:
            raise RedisConnectionError(
                f"its sentinels watch no primary '{self._address.group}'; write the name that `sentinel monitor` gives")
        raise RedisConnectionError(f"no sentinel answers ({failure or 'no answer in time'})")

    async def _ask(self, sentinel: Place, seconds: float) -> tuple[Place, int] | None:
        """The primary as this sentinel knows it; None if it does not know the group."""
        async with asyncio.timeout(seconds):
            connection = await open_connection(self._address.sentinel_connection(seconds, sentinel))
            try:
                await connection.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.group)
                place = await connection.read_response()
                if place is None:
                    return None
                await connection.send_command("SENTINEL", "MASTER", self._address.group)
                fields = await connection.read_response()
            finally:
                await close_connection(connection)
        known = dict(zip(fields[::2], fields[1::2], strict=True))
        return (place[0].decode(), int(place[1])), int(known[b"config-epoch"])
