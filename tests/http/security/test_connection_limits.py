"""The door by itself: whom it lets in, whom it turns away, and for whom a connection counts."""

import asyncio
import logging
from typing import Any, cast

import pytest
from aiohttp.http_exceptions import BadStatusLine
from structlog.testing import capture_logs

from gateway.config.settings import LimitSettings
from gateway.http.security.aiohttp_logger import AiohttpServerLogger
from gateway.http.security.connection_limits import (
    ConnectionLimiter,
    LimitedConnection,
    UnauthenticatedClients,
    client_network_of,
)
from gateway.logging import SampledLogger


class Wire:
    """A transport that has an address, and knows that it was cut."""

    def __init__(self, *peer: Any) -> None:
        self.peer = peer
        self.is_cut = False

    def get_extra_info(self, name: str) -> Any:
        return self.peer

    def abort(self) -> None:
        self.is_cut = True


def limits(**given: int) -> Any:
    made = LimitSettings(**given)  # type: ignore[arg-type]
    return lambda: made


class Caller:
    """A connection as far as the door knows it."""

    is_cut = False

    def abort(self) -> None:
        self.is_cut = True


def enter(door: ConnectionLimiter, address: str) -> tuple[bool, Caller]:
    caller = Caller()
    return door.accept(cast(LimitedConnection, caller), address), caller


@pytest.mark.parametrize(("peer", "address"), [
    (("203.0.113.9", 50_000), "203.0.113.9"),
    (("2001:db8:1:2:3:4:5:6", 50_000, 0, 0), "2001:db8:1:2::/64"),
    (("fe80::1%eth0", 50_000, 0, 2), "fe80::/64"),
    (("::ffff:203.0.113.9", 50_000, 0, 0), "::ffff:203.0.113.9"),
    (("::1", 50_000, 0, 0), "::1"),
    ((), ""),
])
def test_a_connection_counts_for_its_address(peer: tuple[Any, ...], address: str) -> None:
    assert client_network_of(cast(asyncio.BaseTransport, Wire(*peer))) == address


async def test_an_address_has_so_many_connections_even_of_those_who_are_in() -> None:
    door = ConnectionLimiter(limits(max_connections_per_address=2))
    for _ in range(2):
        entered, caller = enter(door, "203.0.113.9")
        assert entered
        door.unauthenticated.discard(caller)
    assert not enter(door, "203.0.113.9")[0]
    assert enter(door, "203.0.113.10")[0]
    door.release(cast(LimitedConnection, Caller()), "203.0.113.9")
    assert enter(door, "203.0.113.9")[0]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", ""])
async def test_a_proxy_on_the_same_machine_brings_as_many_as_it_wants(address: str) -> None:
    door = ConnectionLimiter(limits(max_connections_per_address=1))
    assert [enter(door, address)[0] for _ in range(3)] == [True] * 3


async def test_where_there_is_no_room_a_stranger_gives_way_and_a_member_does_not() -> None:
    door = ConnectionLimiter(limits(max_connections=2))
    _, member = enter(door, "203.0.113.1")
    door.unauthenticated.discard(member)
    _, stranger = enter(door, "203.0.113.2")
    entered, newcomer = enter(door, "203.0.113.3")
    assert (entered, stranger.is_cut, member.is_cut) == (True, True, False)
    door.release(cast(LimitedConnection, stranger), "203.0.113.2")
    door.unauthenticated.discard(newcomer)
    assert not enter(door, "203.0.113.4")[0]
    assert len(door) == 2


async def test_one_address_does_not_push_out_the_strangers_of_another() -> None:
    room = UnauthenticatedClients[str](limits(max_unauthenticated=10, max_unauthenticated_per_address=2))
    assert room.add("friend", "203.0.113.1") is None
    assert [room.add(number, "203.0.113.2") for number in range(5)] == [None, None, 0, 1, 2]
    assert len(room) == 3


def test_what_the_server_does_wrong_has_its_traceback() -> None:
    logger = cast(logging.Logger, AiohttpServerLogger(SampledLogger(None)))
    with capture_logs() as journal:
        logger.exception("Error handling request from %s", "127.0.0.1", exc_info=KeyError("ours"))
        logger.exception("Error handling request from %s", "127.0.0.1", exc_info=ConnectionResetError())
    assert [(entry["log_level"], "exc_info" in entry) for entry in journal] == [("error", True)]


async def test_who_speaks_no_http_at_all_is_a_line_too() -> None:
    lines: list[tuple[str, Any]] = []

    class Log:
        def info(self, event: str, **fields: Any) -> None:
            lines.append((event, fields["reason"]))

    logger = cast(logging.Logger, AiohttpServerLogger(SampledLogger(Log())))
    logger.debug("Error handling request from %s", "127.0.0.1", exc_info=BadStatusLine("\x16\x03"))
    assert lines == [("malformed_request", "BadStatusLine")]
