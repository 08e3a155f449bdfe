"""The simulated Redis answers as the real one does, keeps the time that it is given, and loses what Redis may lose."""

from pathlib import Path
from typing import Any

import pytest
from hiredis import ReplyError

from gateway.storage.redis.scripts import scripts
from tests.prove.simulation.redis_commands import COMMANDS, Command
from tests.prove.simulation.redis_comparison import SimulatedLink, compare
from tests.prove.simulation.redis_server import SimulatedRedis
from tests.support.redis_server import SERVER, RedisServer

CALLS = 1000


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> SimulatedRedis:
    return SimulatedRedis(clock)


@pytest.fixture
def link(server: SimulatedRedis) -> SimulatedLink:
    return SimulatedLink(server)


@pytest.fixture
def real(tmp_path: Path) -> Any:
    if SERVER is None:
        pytest.skip("redis-server is not installed")
    started = RedisServer(tmp_path / "redis")
    started.start()
    yield started
    started.stop(kill=True)


def test_it_answers_and_stores_as_the_real_server_does(real: RedisServer) -> None:
    compared = compare(real.port, 7, CALLS)
    assert compared.calls.keys() >= scripts().keys()
    assert compared.messages > CALLS / 10
    assert not compared.differences, "\n".join(compared.differences[:10])


def test_a_wrong_command_is_found(real: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    one = COMMANDS[b"ZCARD"]
    monkeypatch.setitem(COMMANDS, b"ZCARD", Command(lambda call: 3, one.least, one.most, one.writes))
    compared = compare(real.port, 7, CALLS)
    assert compared.differences, "scripts use the command, so that the first difference may be one of theirs"


def test_a_key_expires_by_the_clock_that_the_server_is_given(clock: Clock, link: SimulatedLink) -> None:
    link.ask("SET", "key", "value", "PX", 1500)
    clock.now += 1.4
    assert (link.ask("GET", "key"), link.ask("PTTL", "key")) == (b"value", 100)
    clock.now += 0.2
    assert (link.ask("GET", "key"), link.ask("PTTL", "key"), link.ask("KEYS", "*")) == (None, -2, [])


def test_a_server_that_is_killed_loses_no_data_but_its_scripts(server: SimulatedRedis, link: SimulatedLink) -> None:
    digest, text = scripts()["listed_all"]
    link.ask("SCRIPT", "LOAD", text)
    link.ask("SET", "key", "value")
    server.crash("all")
    after = SimulatedLink(server)
    assert after.ask("GET", "key") == b"value"
    assert str(after.ask("EVALSHA", digest, 0)).startswith("NOSCRIPT")


def test_a_machine_that_dies_loses_what_was_written_since_the_last_second(
    clock: Clock, server: SimulatedRedis, link: SimulatedLink,
) -> None:
    def state(link: SimulatedLink) -> list[Any]:
        return [
            link.ask("GET", "text"), link.ask("HGETALL", "hash"), link.ask("SMEMBERS", "set"),
            link.ask("ZRANGE", "zset", 0, -1, "WITHSCORES"), link.ask("XRANGE", "log", "-", "+"),
            link.ask("PTTL", "lease"), link.ask("EXISTS", "new"),
        ]

    def write(link: SimulatedLink, number: int) -> None:
        link.ask("SET", "text", number)
        link.ask("HSET", "hash", f"field{number}", number)
        link.ask("SADD", "set", number)
        link.ask("ZADD", "zset", number, f"member{number}")
        link.ask("XADD", "log", f"{number}-0", "field", number)
        link.ask("SET", "lease", number, "PX", 10_000 * number)

    write(link, 1)
    clock.now += 1.2
    before = state(link)
    write(link, 2)
    link.ask("SET", "new", "")
    link.ask("DEL", "hash")
    assert state(link) != before
    server.crash("fsynced")
    assert state(SimulatedLink(server)) == before


def test_what_a_client_waited_for_is_on_the_disk(server: SimulatedRedis, link: SimulatedLink) -> None:
    link.ask("SET", "key", "value")
    assert link.ask("WAITAOF", 1, 0, 1000) == [1, 0]
    link.ask("SET", "key", "later")
    server.crash("fsynced")
    assert SimulatedLink(server).ask("GET", "key") == b"value"


def test_a_server_without_a_disk_comes_back_empty(server: SimulatedRedis, link: SimulatedLink) -> None:
    link.ask("SET", "key", "value")
    server.crash("nothing")
    assert SimulatedLink(server).ask("KEYS", "*") == []


def test_a_connection_of_before_the_crash_is_answered_no_more(server: SimulatedRedis, link: SimulatedLink) -> None:
    listener = SimulatedLink(server)
    assert listener.ask("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    assert link.ask("PUBLISH", "news", "first") == 1
    assert listener.read() == [b"message", b"news", b"first"]
    server.crash("all")
    with pytest.raises(AssertionError, match="not answered"):
        link.ask("PING")
    assert SimulatedLink(server).ask("PUBLISH", "news", "second") == 0


def test_a_command_that_is_not_simulated_is_an_error_that_a_run_can_find(
    server: SimulatedRedis, link: SimulatedLink,
) -> None:
    assert isinstance(link.ask("GEOADD", "key", 1, 2, "place"), ReplyError)
    assert isinstance(link.ask("EVAL", "return redis.call('GEOADD', 'key')", 0), ReplyError)
    assert [one.split()[0] for one in server.unknown] == ["GEOADD", "EVAL"]


def test_a_server_that_cannot_write_refuses_writes_and_goes_on_reading(
    server: SimulatedRedis, link: SimulatedLink,
) -> None:
    link.ask("SET", "key", "value")
    server.write_refusal = b"MISCONF no room on the disk"
    assert str(link.ask("SET", "key", "other")).startswith("MISCONF")
    assert str(link.ask("EVAL", "return redis.call('DEL', 'key')", 0)).startswith("MISCONF")
    assert link.ask("GET", "key") == b"value"
