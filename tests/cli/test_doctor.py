"""`dragoman doctor` in worlds where one thing is wrong: it names that thing, says how to mend it, tells no secret."""

import json
import os
import shutil
import socket
import sqlite3
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from zoneinfo import ZoneInfoNotFoundError

import pytest
import trustme
from typer.testing import Result

from gateway.cli.doctor import machine, services
from gateway.cli.doctor.machine import Finding, Level
from gateway.storage import create_database
from gateway.storage.redis import Command, CommandRefused, RedisConnection
from tests.support.free_ports import free_port
from tests.support.redis_server import cluster_url, redis_of_this_run
from tests.support.s3.server import s3_server

Run = Callable[..., Result]
Usage = namedtuple("Usage", "total used free")
SETTINGS = "dialects: {{aap: }}\nagents: {{demo: {{backend: demo}}}}\nport: {port}\n{more}\n"


@pytest.fixture(autouse=True)
def enough_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (50_000, 50_000))


@pytest.fixture
def found(home: Path, dragoman: Run) -> Callable[..., list[Finding]]:
    """What the doctor finds wrong with these settings; the exit code is held against it."""
    def look(more: str = "", port: int = 0) -> list[Finding]:
        (home / "config.yaml").write_text(SETTINGS.format(port=port, more=more))
        done = dragoman("doctor", "--json")
        told = json.loads(done.stdout)
        findings = [Finding(**{**one, "level": Level(one["level"])}) for one in told["findings"]]
        has_problem = any(one.level is Level.PROBLEM for one in findings)
        assert (told["ok"], done.exit_code) == (not has_problem, int(has_problem))
        return [one for one in findings if one.level is not Level.OK]
    return look


Look = Callable[..., list[Finding]]


def alone(findings: list[Finding], topic: str, level: Level, words: str, mend: str) -> None:
    [one] = findings
    assert (one.topic, one.level) == (topic, level)
    assert words in one.text
    assert mend in one.mend


def test_a_sound_world_has_no_problem_and_is_left_as_it_is(home: Path, dragoman: Run, found: Look) -> None:
    assert found() == []
    assert [path.name for path in home.iterdir()] == ["config.yaml"], "nothing was made"
    told = dragoman("doctor").stdout
    assert all(line.startswith("✓") for line in told.splitlines())
    for topic in ("versions", "settings", "port", "files", "rights", "clock"):
        assert f"✓ {topic}" in told


def test_for_people_the_remedy_stands_below_the_problem(home: Path, dragoman: Run) -> None:
    (home / "config.yaml").write_text(SETTINGS.format(port=0, more="host: no.such.host.invalid\nauth: keys"))
    done = dragoman("doctor")
    assert done.exit_code == 1
    assert "✗ port      there is no host 'no.such.host.invalid'\n            → set another `host:`" in done.stdout


# -- versions and settings --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("version", ["3.9.9", None])
def test_an_old_or_missing_library(found: Look, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    real = metadata.version

    def changed(name: str) -> str:
        if name == "aiohttp" and version is None:
            raise metadata.PackageNotFoundError(name)
        return str(version) if name == "aiohttp" else real(name)

    monkeypatch.setattr(metadata, "version", changed)
    alone(found(), "versions", Level.PROBLEM, f"aiohttp {version or 'is not installed'}", "install 'aiohttp>=3.14'")


def test_a_sqlite_without_search(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    class Poor:
        def execute(self, statement: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None: ...

    monkeypatch.setattr(machine.sqlite3, "connect", lambda place: Poor())
    alone(found(), "versions", Level.PROBLEM, "has no full-text search", "FTS5")


def test_mistakes_of_the_settings_are_told_with_their_places(found: Look) -> None:
    told = found("prot: 1\nmappings: {aap: nowhere.yaml}")
    assert [one.topic for one in told] == ["settings"] * len(told)
    assert any("config.yaml:4:1" in one.text and "prot" in one.text for one in told)
    assert any("nowhere.yaml" in one.text for one in told)


def test_an_old_name_of_a_setting_is_a_warning(found: Look) -> None:
    alone(found("limits: {sessions_at_hand: 5}"), "settings", Level.WARNING, "cached_sessions", "change the name")


# -- the port ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def neighbour() -> Iterator[Callable[[bytes], int]]:
    """A server of somebody's that answers everything with this body."""
    servers = []

    def serve(body: bytes) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None: ...

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return int(server.server_address[1])

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_port_that_another_program_uses(found: Look, neighbour: Callable[[bytes], int]) -> None:
    port = neighbour(b"hello")
    alone(found(port=port), "port", Level.PROBLEM, f"another program uses 127.0.0.1:{port}", "set another `port:`")


def test_a_server_of_ours_at_the_port_is_no_problem(found: Look, neighbour: Callable[[bytes], int]) -> None:
    assert found(port=neighbour(b'{"status": "ok"}')) == []


@pytest.mark.parametrize(("number", "words", "mend"), [
    ("EACCES", "may not listen", "1024"), ("EADDRNOTAVAIL", "does not have the address", "0.0.0.0"),
    ("ENETDOWN", "cannot be used", "set another"),
])
def test_a_port_that_the_system_refuses(
    found: Look, monkeypatch: pytest.MonkeyPatch, number: str, words: str, mend: str,
) -> None:
    class Refused(socket.socket):
        def bind(self, place: object) -> None:
            raise OSError(getattr(machine.errno, number), "refused")

    monkeypatch.setattr(machine.socket, "socket", Refused)
    alone(found(), "port", Level.PROBLEM, words, mend)


# -- files and rights -------------------------------------------------------------------------------------------------

def test_a_data_folder_that_is_a_file(found: Look, home: Path) -> None:
    (home / "data").write_text("")
    told = found()
    assert ("files", Level.PROBLEM, f"{home}/data is not a folder") in [(t.topic, t.level, t.text) for t in told]


def test_a_data_folder_that_this_user_may_not_write(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, how: False)
    alone(found(), "files", Level.PROBLEM, "may not write to", "chown")


@pytest.mark.parametrize(("free", "level"), [(10 * 1024**2, Level.PROBLEM), (500 * 1024**2, Level.WARNING)])
def test_a_disk_that_is_nearly_full(
    found: Look, monkeypatch: pytest.MonkeyPatch, free: int, level: Level,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(1, 1, free))
    alone(found(), "files", level, "MB are free", "free some space")


def test_secrets_that_others_may_read(found: Look, home: Path) -> None:
    (home / "data").mkdir(mode=0o700)
    (home / "data/secrets.key").write_text("x")
    (home / "data/secrets.key").chmod(0o640)
    alone(found(), "rights", Level.WARNING, "secrets.key (mode 640)", f"chmod 600 {home}/data/secrets.key")
    (home / "data/secrets.key").chmod(0o600)
    (home / "data").chmod(0o755)
    alone(found(), "rights", Level.WARNING, "(mode 755)", f"chmod 700 {home}/data")


def test_too_few_files_for_the_connections(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1024, 4096))
    alone(found(), "rights", Level.WARNING, "may open 4,096 files", "LimitNOFILE=20100")
    assert found("limits: {max_connections: 3000}") == []


# -- the database -----------------------------------------------------------------------------------------------------

@pytest.fixture
def database(home: Path) -> Path:
    create_database(home / "data/dragoman.db")
    return home / "data/dragoman.db"


def test_a_database_without_keys(found: Look, database: Path, dragoman: Run) -> None:
    assert found() == []
    alone(found("auth: keys"), "keys", Level.WARNING, "there is no key", "dragoman keys add NAME")
    assert dragoman("keys", "add", "me").exit_code == 0
    assert found("auth: keys") == []


def test_a_database_of_a_newer_version(found: Look, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    alone(found(), "files", Level.PROBLEM, "written by a newer Dragoman", "install that one")


def test_a_database_that_is_none(found: Look, home: Path) -> None:
    (home / "data").mkdir(mode=0o700)
    (home / "data/dragoman.db").touch(mode=0o600)
    (home / "data/dragoman.db").write_bytes(b"something else, long enough to have a header" * 10)
    alone(found(), "files", Level.PROBLEM, "not a database", "name another file")


# -- Redis and the clock ----------------------------------------------------------------------------------------------

def test_a_redis_that_answers(found: Look) -> None:
    assert found(f"log: {redis_of_this_run().url}") == []


def test_the_primaries_of_a_cluster_are_asked(found: Look) -> None:
    assert found(f"log: {cluster_url('doctor')}") == []
    told = found("log: redis+cluster://127.0.0.1:1")
    alone(told, "redis", Level.PROBLEM, "redis+cluster://127.0.0.1:1 cannot be reached", "start it")


def test_a_redis_that_is_not_there_and_its_password(found: Look, home: Path, dragoman: Run) -> None:
    secret = "kept-from-everybody-1234567890-abcdef"
    port = free_port()
    (home / "config.yaml").chmod(0o600)
    alone(found(f"log: redis://me:{secret}@127.0.0.1:{port}/0\nsecrets_key: {secret}"), "redis", Level.PROBLEM,
          f"Redis at redis://127.0.0.1:{port}/0 cannot be reached", "start it")
    assert secret not in dragoman("doctor").output + dragoman("doctor", "--json").output


def test_a_bucket_that_works_and_one_that_refuses(
    found: Look, home: Path, dragoman: Run, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        assert found("files: s3://agents/site") == []
        assert server.objects() == {}
        alone(found("files: s3://nowhere"), "bucket", Level.PROBLEM, "NoSuchBucket", "check bucket, endpoint")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-never-printed")
        alone(found("files: s3://agents"), "bucket", Level.PROBLEM, "SignatureDoesNotMatch", "credentials")
        assert "wrong-and" not in dragoman("doctor").output
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.setenv("HOME", str(home))
        alone(found("files: s3://agents"), "bucket", Level.PROBLEM, "no credentials", "credentials")


def test_a_file_with_a_password_that_others_may_read(found: Look, home: Path) -> None:
    (home / "config.yaml").chmod(0o644)
    told = found(f"secrets_key: {'k' * 40}")
    alone(told, "rights", Level.WARNING, "config.yaml (mode 644)", "chmod 600")


@pytest.mark.parametrize(("fields", "level", "words", "mend"), [
    ({"redis_version": "6.2.1"}, Level.PROBLEM, "is version 6.2.1", "use Redis 7"),
    ({"maxmemory_policy": "allkeys-lru"}, Level.PROBLEM, "removes data", "noeviction"),
    ({"aof_enabled": "0"}, Level.WARNING, "may lose everything", "appendonly yes"),
])
def test_a_redis_that_should_not_be_used(
    found: Look, home: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], level: Level, words: str,
    mend: str,
) -> None:
    async def asked(address: object) -> list[tuple[str, dict[str, str], float]]:
        return [("the server", {"redis_version": "7.2.0", **fields}, services.time.time())]

    monkeypatch.setattr(services, "_ask_redis", asked)
    (home / "config.yaml").chmod(0o600)
    told = found("log: redis://me:kept-from-everybody@127.0.0.1:1/0")
    alone(told, "redis", level, words, mend)
    assert "kept-from-everybody" not in str(told)


def test_a_redis_that_refuses_this_user(found: Look, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: RedisConnection, commands: Sequence[Command]) -> list[CommandRefused]:
        return [CommandRefused("NOPERM", "this user has no permissions") for _ in commands]

    monkeypatch.setattr(RedisConnection, "ask_all", refuse)
    (home / "config.yaml").chmod(0o600)
    told = found("log: redis://me:kept-from-everybody@127.0.0.1:1/0")
    alone(told, "redis", Level.PROBLEM, "refuses commands: NOPERM", "allow this user")
    assert "kept-from-everybody" not in str(told)


def test_a_clock_that_differs_from_that_of_redis(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(address: object) -> list[tuple[str, dict[str, str], float]]:
        return [("the server", {"redis_version": "7.2.0"}, services.time.time() + 90)]

    monkeypatch.setattr(services, "_ask_redis", asked)
    alone(found("log: redis://127.0.0.1:1/0"), "clock", Level.WARNING, "differ by 90 s", "keep time")


def test_a_clock_that_went_back(found: Look, database: Path) -> None:
    later = services.time.time() + 1000
    os.utime(database, (later, later))
    alone(found(), "clock", Level.WARNING, "behind the newest data", "keep time")


def test_a_system_without_time_zones(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ZoneInfoNotFoundError(name)

    monkeypatch.setattr("zoneinfo.ZoneInfo", missing)
    alone(found(), "clock", Level.PROBLEM, "no time zones", "install tzdata")


# -- the way out ------------------------------------------------------------------------------------------------------

def test_a_proxy_that_accepts_connections(found: Look, monkeypatch: pytest.MonkeyPatch, dragoman: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://u:secret@127.0.0.1:{proxy.getsockname()[1]}")
        assert found() == []
        told = dragoman("doctor").stdout
    assert "✓ proxy     HTTPS_PROXY is http://127.0.0.1:" in told and "secret" not in told


@pytest.mark.parametrize(("variable", "given", "level", "words", "mend"), [
    ("HTTPS_PROXY", "socks5://u:secret@proxy.corp:1080", Level.PROBLEM, "socks5:// are not supported", "http://host:port"),
    ("http_proxy", "https://proxy.corp", Level.PROBLEM, "HTTP_PROXY is not the address of a proxy", "http://host:port"),
    ("HTTP_PROXY", "http://127.0.0.1:1", Level.PROBLEM, "cannot be reached (", "correct HTTP_PROXY"),
    ("ALL_PROXY", "socks5://proxy.corp:1080", Level.WARNING, "ALL_PROXY is not read", "HTTPS_PROXY and HTTP_PROXY"),
])
def test_a_proxy_that_cannot_be_used(
    found: Look, monkeypatch: pytest.MonkeyPatch, variable: str, given: str, level: Level, words: str, mend: str,
) -> None:
    monkeypatch.setenv(variable, given)
    alone(findings := found(), "proxy", level, words, mend)
    assert "secret" not in findings[0].text


# -- TLS --------------------------------------------------------------------------------------------------------------

TLS = "tls: {certificate: server.crt, key: server.key}\nhosts: [gateway.example.com]"


@pytest.fixture
def certificate(home: Path) -> Callable[..., None]:
    def write(*names: str, days: float = 90, since: float = -1) -> None:
        now = datetime.now(UTC)
        made = trustme.CA().issue_cert(
            *names, not_before=now + timedelta(days=since), not_after=now + timedelta(days=days))
        (home / "server.crt").write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
        (home / "server.key").touch(mode=0o600)
        (home / "server.key").write_bytes(made.private_key_pem.bytes())
    return write


def test_a_certificate_that_is_right(found: Look, certificate: Callable[..., None]) -> None:
    certificate("gateway.example.com", "10.0.0.1")
    assert found(TLS) == []
    certificate("*.example.com")
    assert found(TLS) == []


@pytest.mark.parametrize(("dates", "level", "words"), [
    ({"days": -1, "since": -5}, Level.PROBLEM, "expired on"), ({"days": 5}, Level.WARNING, "is valid until"),
    ({"since": 5}, Level.PROBLEM, "is not valid before"),
])
def test_a_certificate_at_a_wrong_time(
    found: Look, certificate: Callable[..., None], dates: dict[str, float], level: Level, words: str,
) -> None:
    certificate("gateway.example.com", **dates)
    alone(found(TLS), "tls", level, words, "certificate")


def test_a_certificate_for_another_name(found: Look, certificate: Callable[..., None]) -> None:
    certificate("other.example.org")
    alone(found(TLS), "tls", Level.WARNING, "is not for gateway.example.com", "all names in `hosts:`")


def test_a_key_that_others_may_read_or_that_does_not_fit(
    found: Look, certificate: Callable[..., None], home: Path,
) -> None:
    certificate("gateway.example.com")
    (home / "server.key").chmod(0o644)
    alone(found(TLS), "rights", Level.WARNING, "server.key (mode 644)", "chmod 600")
    kept = (home / "server.crt").read_bytes()
    certificate("gateway.example.com")
    (home / "server.crt").write_bytes(kept)
    alone(found(TLS), "settings", Level.PROBLEM, "does not belong to the certificate", "")
