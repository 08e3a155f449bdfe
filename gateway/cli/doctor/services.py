"""Findings about what the server uses: its database, Redis, clock, proxies and certificate; nothing is changed."""

import asyncio
import os
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .machine import Finding, ok, problem, version_numbers, warning

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from gateway.client import Proxy
    from gateway.config import Config
    from gateway.storage.redis import RedisAddress

OLDEST_REDIS = 7
EXPIRES_SOON_DAYS = 21
CLOCK_SECONDS = 2.0
"""By how much the clocks of two machines may differ before people notice wrong times."""
REDIS_SECONDS = 5.0
REDIS_COMMANDS = (("TIME",), ("INFO", "server"), ("INFO", "persistence"), ("INFO", "memory"))
"""What a Redis server is asked."""
PROXY_SECONDS = 5.0
SCHEMA_WITH_KEYS = 2


def check_database(config: "Config") -> Iterator[Finding]:
    """The SQLite file: whether it is ours, whether this version can read it, and whether it has keys."""
    from gateway.storage.sqlite import SCHEMA_VERSION, StorageUnusable, open_read_only, version_of
    from gateway.storage_factory import database_path

    path = database_path(config)
    if "://" in config.log or not path.exists() or not path.stat().st_size:
        return
    try:
        connection = open_read_only(path)
    except StorageUnusable as error:
        text, _, mend = error.message.partition("; ")
        yield problem("files", text, mend or "look at it with `dragoman log verify`")
        return
    try:
        version = version_of(connection)
        older = f"; the server will bring it from version {version} to {SCHEMA_VERSION}"
        yield ok("files", f"{path} can be read{older if version < SCHEMA_VERSION else ''}")
        if config.auth_methods == ("keys",) and version >= SCHEMA_WITH_KEYS and not _has_keys(connection):
            yield warning("keys", "`auth: keys` is set, and there is no key", "dragoman keys add NAME")
    finally:
        connection.close()


def _has_keys(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is not None


# -- Redis and the clock ----------------------------------------------------------------------------------------------

def check_redis(config: "Config") -> Iterator[Finding]:
    """Whether Redis answers, is new enough, stores what it is given, and has the same time."""
    if "://" not in config.log:
        return
    from gateway.storage.redis import RedisAddress, RedisUnreachable

    address = RedisAddress.read(config.log, config.file.parent if config.file else Path())
    try:
        servers = asyncio.run(_ask_cluster(address) if address.nodes else _ask_redis(address))
    except RedisUnreachable as error:
        yield problem("redis", error.message, error.hint)
        return
    for shown, fields, now in servers:
        yield from _judge_redis(fields, shown)
        apart = abs(now - time.time())
        if apart > CLOCK_SECONDS:
            yield warning("clock", f"the clocks of this machine and of Redis at {shown} differ by {apart:.0f} s",
                          "let both machines keep time (timedatectl set-ntp true)")


ServerFields = tuple[str, dict[str, str], float]
"""The address of a Redis server, the fields of its INFO, and its time."""


async def _ask_cluster(address: "RedisAddress") -> list[ServerFields]:
    """Ask each primary of a cluster."""
    from gateway.storage.redis import RedisPartitions

    cluster = RedisPartitions(address, lease=2 * REDIS_SECONDS)
    try:
        found = await cluster.ask_primaries(REDIS_COMMANDS)
    finally:
        await cluster.close()
    return [(f"{host}:{port}", *_read_fields(replies)) for (host, port), replies in found]


async def _ask_redis(address: "RedisAddress") -> list[ServerFields]:
    from gateway.storage.redis import CommandRefused, RedisConnection, RedisUnreachable

    connection = RedisConnection(address, REDIS_SECONDS)
    try:
        replies = await connection.ask_all(REDIS_COMMANDS)
    finally:
        await connection.close()
    if refused := [reply for reply in replies if isinstance(reply, CommandRefused)]:
        unusable = RedisUnreachable(f"Redis at {address.shown} refuses commands: {refused[0]}")
        unusable.hint = "write user and password in DRAGOMAN_LOG, or allow this user TIME, INFO and scripts"
        raise unusable
    return [(address.shown, *_read_fields(replies))]


def _read_fields(replies: Sequence[Any]) -> tuple[dict[str, str], float]:
    lines = b"\n".join(replies[1:]).decode(errors="replace").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return fields, int(replies[0][0]) + int(replies[0][1]) / 1e6


def _judge_redis(fields: dict[str, str], shown: str) -> Iterator[Finding]:
    version, policy = fields.get("redis_version", "0"), fields.get("maxmemory_policy", "noeviction")
    if version_numbers(version)[:1] < [OLDEST_REDIS]:
        yield problem("redis", f"{shown} is version {version}", f"use Redis {OLDEST_REDIS} or newer, or Valkey")
    else:
        yield ok("redis", f"{shown} answers, version {version}")
    if policy != "noeviction":
        yield problem("redis", f"{shown} removes data when its memory is full (maxmemory-policy {policy})",
                      "set `maxmemory-policy noeviction` in redis.conf")
    if fields.get("aof_enabled") == "0":
        yield warning("redis", f"{shown} may lose everything when it restarts (appendonly no)",
                      "set `appendonly yes` in redis.conf")


def check_bucket(config: "Config") -> Iterator[Finding]:
    """Whether the bucket of `files:` takes an object, returns it, lists it, and removes it."""
    if config.files_folder is not None:
        return
    from gateway.errors import GatewayError
    from gateway.file_storage import make_bucket

    async def ask() -> str:
        bucket = make_bucket(config, time.time)
        try:
            await bucket.check()
        finally:
            await bucket.close()
        return bucket.location.shown

    try:
        yield ok("bucket", f"{asyncio.run(ask())} takes objects, lists them, returns them and removes them")
    except GatewayError as error:
        yield problem("bucket", error.message,
                      "check bucket, endpoint and credentials; docs/production.md lists the rights that the key needs")


def check_clock(config: "Config") -> Iterator[Finding]:
    """The time of this machine, compared with the files that a server has written here; and the time zones."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from gateway.storage_factory import database_path

    now, path = time.time(), database_path(config)
    written = max((place.stat().st_mtime for place in (path, path.with_name(f"{path.name}-wal")) if place.exists()),
                  default=0.0)
    if written > now + CLOCK_SECONDS:
        yield warning("clock", f"the clock is {written - now:.0f} s behind the newest data in {config.data}",
                      "let the machine keep time (timedatectl set-ntp true)")
    else:
        yield ok("clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC")
    try:
        ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        yield problem("clock", "this system has no time zones, which schedules of clients name",
                      f"{Path(sys.executable).parent / 'pip'} install tzdata")


# -- the way out ------------------------------------------------------------------------------------------------------

def check_proxies(config: "Config") -> Iterator[Finding]:
    """The company's proxies that the environment names: whether they can be used, and accept connections."""
    from gateway.client import PROXY_VARIABLES, named_proxy
    from gateway.errors import BackendFailed

    for variable in PROXY_VARIABLES:
        try:
            proxy = named_proxy(variable)
        except BackendFailed as error:
            yield problem("proxy", error.message, f"export {variable}=http://host:port")
            continue
        if proxy is not None:
            yield _reached(variable, proxy)
    if any(os.environ.get(name) for name in ("ALL_PROXY", "all_proxy")):
        yield warning("proxy", "ALL_PROXY is not read", f"name the proxy in {' and '.join(PROXY_VARIABLES)}")


def _reached(variable: str, proxy: "Proxy") -> Finding:
    try:
        socket.create_connection((proxy.url.raw_host or "", proxy.url.port or 0), PROXY_SECONDS).close()
    except OSError as error:
        why = f"{variable} is {proxy.name}, which cannot be reached ({error.strerror or error})"
        return problem("proxy", why, f"correct {variable}, or start the proxy")
    return ok("proxy", f"{variable} is {proxy.name}, which accepts connections")


# -- TLS --------------------------------------------------------------------------------------------------------------

def check_tls(config: "Config") -> Iterator[Finding]:
    """When the certificate expires, and whether it is for the names of `hosts:`; that it can be read is known."""
    if not config.tls:
        return
    from cryptography.x509 import load_pem_x509_certificates

    certificate = load_pem_x509_certificates(config.tls.certificate.read_bytes())[0]
    days = (certificate.not_valid_after_utc - datetime.now(UTC)).total_seconds() / 86_400
    until = f"{config.tls.certificate} is valid until {certificate.not_valid_after_utc:%Y-%m-%d}"
    mend = "put a new certificate in its place, then send SIGHUP to the server"
    if days < 0:
        yield problem("tls", f"{config.tls.certificate} expired on {certificate.not_valid_after_utc:%Y-%m-%d}", mend)
    elif days < EXPIRES_SOON_DAYS:
        yield warning("tls", until, mend)
    else:
        yield ok("tls", until)
    if certificate.not_valid_before_utc > datetime.now(UTC):
        since = f"{certificate.not_valid_before_utc:%Y-%m-%d}"
        yield problem("tls", f"{config.tls.certificate} is not valid before {since}",
                      "set the clock of this machine, or use another certificate")
    if missing := [host for host in config.hosts if not _is_for(certificate, host)]:
        yield warning("tls", f"{config.tls.certificate} is not for {', '.join(missing)}",
                      "get a certificate for all names in `hosts:`")


def _is_for(certificate: "Certificate", host: str) -> bool:
    from cryptography.x509 import DNSName, ExtensionNotFound, IPAddress, SubjectAlternativeName

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return False
    known = {*names.get_values_for_type(DNSName), *map(str, names.get_values_for_type(IPAddress))}
    return host in known or f"*.{host.partition('.')[2]}" in known
