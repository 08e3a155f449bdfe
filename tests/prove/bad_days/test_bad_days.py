"""Three servers under load on days when names, passwords, certificates and clocks change; judged as a fleet is."""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import trustme

import gateway.model as m
from gateway.cluster import read_cluster
from gateway.storage.redis import RedisAddress, RedisClient
from tests.prove.crash.killable_server import ROOT
from tests.prove.fleet.conversations import created, records, say
from tests.prove.fleet.gateways import FleetConversation, calling, fleet, server_says
from tests.support.redis_server import RedisServer
from tests.support.sentinel_servers import ask

NAME = "redis.example"
OTHERS = Path("/etc/hosts").read_text()
OWN_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'
"""Runs a program in a mount namespace of its own, with another file of names."""
AHEAD = """import os, time
told, ahead = time.time, float(os.environ["CLOCK_AHEAD"])
time.time = lambda: told() + ahead
"""
SECONDS_AHEAD = (30, -30, 0)
SESSIONS, CLIENTS = 10_000, 50
OLD, NEW = "old-password", "new-password"


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with calling() as made:
        yield made


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path / "redis")
    try:
        made.start()
        yield made
    finally:
        made.stop(kill=True)


@pytest.mark.timeout(600)
async def test_redis_has_another_address_by_the_same_name(
    tmp_path: Path, redis: RedisServer, http: aiohttp.ClientSession,
) -> None:
    """The name is resolved for each new connection."""
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{OTHERS}\n127.0.0.1 {NAME}\n")
    own = ("unshare", "--mount", "sh", "-c", OWN_HOSTS, str(hosts))
    async with fleet(tmp_path, logs=[f"redis://{NAME}:{redis.port}/0"] * 3, within=lambda number: own) as three:
        talk = FleetConversation(three, http, seed=31)
        await talk.begin()
        await talk.until_heard(150)
        await asyncio.to_thread(redis.stop)
        moved = RedisServer(redis.folder, redis.port, "--bind", "127.0.0.2")
        hosts.write_text(f"{OTHERS}\n127.0.0.2 {NAME}\n")
        await asyncio.to_thread(moved.start)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", redis.port)
        try:
            await talk.until_heard(150)
            assert await talk.verdict() == [], three.errors()
        finally:
            moved.stop(kill=True)


@pytest.mark.timeout(600)
async def test_a_password_is_rotated(tmp_path: Path, redis: RedisServer, http: aiohttp.ClientSession) -> None:
    """Redis takes both, the servers are restarted one by one, and the old password goes."""
    ask(redis.port, "ACL", "SETUSER", "gateway", "on", f">{OLD}", "~*", "&*", "+@all")
    async with fleet(tmp_path, logs=[f"redis://gateway:{OLD}@127.0.0.1:{redis.port}/0"] * 3) as three:
        talk = FleetConversation(three, http, seed=32)
        await talk.begin()
        await talk.until_heard(100)
        ask(redis.port, "ACL", "SETUSER", "gateway", f">{NEW}")
        for number, server in enumerate(three.servers):
            await server.end(signal.SIGTERM)
            settings = server.folder / "config.yaml"
            settings.write_text(settings.read_text().replace(OLD, NEW))
            await three.back(number)
            await talk.until_heard(50)
        ask(redis.port, "ACL", "SETUSER", "gateway", f"<{OLD}")
        ask(redis.port, "CLIENT", "KILL", "USER", "gateway")
        await talk.until_heard(100)
        assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_the_certificate_of_redis_expires_and_is_renewed(tmp_path: Path, http: aiohttp.ClientSession) -> None:
    """Open connections live on; new ones are refused until there is a certificate that is valid."""
    authority, expired = trustme.CA(), datetime.now(UTC) - timedelta(days=1)
    for name, until in (("first", None), ("expired", expired), ("renewed", None)):
        one = authority.issue_cert("127.0.0.1", not_after=until)
        one.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.crt")
        one.private_key_pem.write_to_path(tmp_path / f"{name}.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    options = ("--tls-port", str(tls_port := unused_port()), "--tls-auth-clients", "no",
               "--tls-ca-cert-file", str(tmp_path / "ca.crt"), "--tls-cert-file", str(tmp_path / "first.crt"),
               "--tls-key-file", str(tmp_path / "first.key"))
    redis = RedisServer(tmp_path / "redis", None, *options)

    def use(name: str) -> None:
        ask(redis.port, "CONFIG", "SET", "tls-cert-file", str(tmp_path / f"{name}.crt"),
            "tls-key-file", str(tmp_path / f"{name}.key"))

    redis.start()
    try:
        log = f"rediss://127.0.0.1:{tls_port}/0?ssl_ca_certs={tmp_path / 'ca.crt'}"
        async with fleet(tmp_path, logs=[log] * 3) as three:
            talk = FleetConversation(three, http, seed=33)
            await talk.begin()
            await talk.until_heard(100)
            use("expired")
            await talk.until_heard(100)
            ask(redis.port, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            ask(redis.port, "CLIENT", "KILL", "TYPE", "pubsub")
            for server in three.servers:
                await server_says(server, "certificate has expired")
            use("renewed")
            await talk.until_heard(150)
            assert await talk.verdict() == [], three.errors()
    finally:
        redis.stop(kill=True)


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.timeout(600)
async def test_clocks_are_a_minute_apart(tmp_path: Path, redis: RedisServer, http: aiohttp.ClientSession) -> None:
    """Leases are counted by Redis and by clocks that nobody sets; records of a session never go back in time."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(AHEAD)

    def within(number: int) -> tuple[str, ...]:
        return "env", f"PYTHONPATH={tmp_path / 'clock'}:{ROOT}", f"CLOCK_AHEAD={SECONDS_AHEAD[number]}"

    async with fleet(tmp_path, logs=[redis.url] * 3, within=within) as three:
        talk = FleetConversation(three, http, seed=34)
        await talk.begin()
        for number in (0, 1, 2):
            await talk.until_heard(100)
            await three.servers[number].end(signal.SIGKILL)
            await talk.until_heard(50)
            await three.back(number)
        assert await talk.verdict() == [], three.errors()
        latest = max(records[-1].at for records in talk.world.history.logs.values())
        assert latest > time.time() + 20, "a server writes times that are ahead"


@pytest.mark.timeout(900)
async def test_a_server_dies_that_holds_ten_thousand_sessions_in_a_turn(tmp_path: Path, redis: RedisServer) -> None:
    """The others take over all of them: who was asked is asked still."""
    timeout, connector = aiohttp.ClientTimeout(total=None, sock_connect=60), aiohttp.TCPConnector(limit=CLIENTS)
    async with (
        fleet(tmp_path, logs=[redis.url] * 3, lease=5.0) as three,
        aiohttp.ClientSession(timeout=timeout, connector=connector) as http,
    ):
        dying, other, _ = (server.address for server in three.servers)
        asked, left = list[str](), iter(range(SESSIONS))

        async def ask_people() -> None:
            for _ in left:
                session = await created(http, dying)
                await say(http, session, dying, "/ask")
                asked.append(session)

        async with asyncio.TaskGroup() as clients:
            for _ in range(CLIENTS):
                clients.create_task(ask_people())
        client = RedisClient(RedisAddress.read(redis.url))
        assert (await read_cluster(client)).open_turns == SESSIONS
        await three.servers[0].end()
        view = await read_cluster(client)
        while len(view.replicas) > 2:  # the dead one is there until nothing is left of it
            await asyncio.sleep(0.5)
            view = await read_cluster(client)
        assert sum(one.open_turns for one in view.replicas) == SESSIONS
        await client.close()
        for session in asked[:: SESSIONS // 100]:
            view_of_one = m.fold(session, await records(http, session, other))
            assert len(view_of_one.asks) == 1
            assert view_of_one.ended is None
