"""Databases of every released version stay readable for ever: each is opened, brought up to date, and compared."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gateway.model as m
from gateway.storage import SCHEMA_VERSION, Database, FernetSeal
from gateway.storage.log import SqliteLog
from gateway.storage.log.export_import import ExportHeader
from gateway.storage.log.verification import verify_log
from gateway.storage.resources.key_tables import SqliteKeyTable
from gateway.storage.resources.sqlite import SqliteResources
from gateway.storage.sqlite.schema import MIGRATIONS, migrate, version_of
from tests.storage.fixtures.make import SEALED_WITH

FOLDER = Path(__file__).parent / "fixtures"
VERSIONS = range(1, SCHEMA_VERSION + 1)


def records_of(version: int) -> dict[str, list[m.Record]]:
    """What the JSON beside the database says is in it."""
    header, *lines = (FOLDER / f"v{version}.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(header, type=ExportHeader).model <= m.MODEL_VERSION
    found: dict[str, list[m.Record]] = {}
    for line in lines:
        record = m.decode_record(line)
        found.setdefault(record.session_id, []).append(record)
    return found


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def copy(tmp_path: Path, version: int) -> Path:
    return Path(shutil.copy(FOLDER / f"v{version}.db", tmp_path / "a.db"))


def test_every_version_has_its_database() -> None:
    """Before a version is released: python -m tests.storage.fixtures.make"""
    assert {path.stem for path in FOLDER.glob("*.db")} == {f"v{version}" for version in VERSIONS}


async def test_an_old_database_is_read_as_it_was_written(copy: Path, version: int) -> None:
    expected = records_of(version)
    log = SqliteLog(database := Database(copy))
    await log.open()
    assert await database.read(version_of) == SCHEMA_VERSION
    heads = await log.sessions(None, limit=100, oldest_first=True)
    assert [head.session_id for head in heads] == list(expected)
    for head in heads:
        records = expected[head.session_id]
        assert list(await log.read(head.session_id)) == records
        assert head.head == records[-1].seq
        view = m.fold(head.session_id, records)
        assert (head.owner, head.in_turn) == (view.owner, view.status is m.SessionStatus.SUSPENDED)
        for request_id in view.asks:
            assert await log.session_of(request_id) == head.session_id
        assert {row.session_id: row.summary for row in await log.listed(head.owner, "", "updated", limit=100)}[
            head.session_id] == m.summarize(None, records)
        at = records[0].at
        assert head.session_id in [row.session_id for row in await log.created_between(head.owner, at, at, 100)]
    seal = FernetSeal(lambda: [SEALED_WITH])
    resources = SqliteResources(database, lambda: 0.0, seal=seal)
    [agent] = await resources.list("agent", "ann")
    assert (agent.version, agent.body, agent.secrets) == (2, {"name": "mine still"}, {"token": "not really a secret"})
    assert len(await resources.list("agent", "ann", archived=True)) == 2
    [answer] = await database.read(lambda file: file.execute("SELECT owner, key, status, body FROM answers").fetchall())
    assert (*answer[:3], seal.unseal_bytes(answer[3])) == ("ann", "key-1", 201, b"made")
    await log.close()
    assert [(key.name, key.user) for key in SqliteKeyTable(copy).load()[1]] == [("laptop", "ann")] * (version > 1)
    assert verify_log(copy).problems == []


def test_everything_that_can_happen_is_in_the_newest() -> None:
    told = (FOLDER / f"v{SCHEMA_VERSION}.jsonl").read_bytes()
    for member in (*m.EVENTS, *m.COMMANDS, *m.ASKS):
        tag = msgspec.inspect.type_info(member).tag  # type: ignore[union-attr]
        assert f'"{tag}"'.encode() in told, f"{member.__name__} is not in the fixture"
    views = [m.fold(name, records) for name, records in records_of(SCHEMA_VERSION).items()]
    assert m.SessionStatus.SUSPENDED in [view.status for view in views]


def test_a_released_step_is_never_changed(tmp_path: Path, version: int) -> None:
    """The tables of the fixture are those that the steps up to its version make today."""
    fresh = sqlite3.connect(tmp_path / "fresh.db", isolation_level=None)
    migrate(fresh, MIGRATIONS[:version])
    old = sqlite3.connect(FOLDER / f"v{version}.db")
    assert _tables(old) == _tables(fresh), "the step was changed after its fixture was made"
    assert version_of(old) == version
    old.close()
    fresh.close()


def _tables(connection: sqlite3.Connection) -> list[Any]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [(*names, " ".join((sql or "").split())) for *names, sql in rows]


async def test_the_file_of_today_takes_a_step_of_tomorrow(copy: Path, version: int) -> None:
    expected = records_of(version)
    connection = sqlite3.connect(copy, isolation_level=None)
    migrate(connection, (*MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour TEXT;"))
    assert version_of(connection) == SCHEMA_VERSION + 1
    assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (len(expected),)
    connection.close()
