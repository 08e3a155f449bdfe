"""Read back in its dialect, an imported conversation is what the old server said, up to the declared loss."""

from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.migration import Destination, Origin, make_records
from gateway.ports import PastSession, RemoteAddress
from gateway.storage import create_database
from gateway.storage.log import store_sessions
from tests.support.dialect_parts import each, part
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.gateway_server import Served
from tests.support.migration.old_server import converse, differences, gateway, read

SAID = (
    "hello", "/think /tool clock {}", "/ask", "/fork", "/permit", "/parallel", "/image", "/fail", "/continue",
    "/slow 3", "/title Another", "/refuse", "/rollback", "/compact", "/plan", "/annotate",
)
TITLE = "A trip to Rome"


async def read_past(served: Served, dialect: str, session_id: str) -> PastSession:
    """The session as an import reads it."""
    spoken = dialect_of(dialect)
    assert spoken.past_sessions is not None
    source = spoken.past_sessions(RemoteAddress(url=served.url(spoken.mount)), "")
    try:
        return await source.read(session_id)
    finally:
        await source.close()


def records_of(past: PastSession, dialect: str, now: float) -> list[m.Record]:
    return make_records(past, Origin(dialect=dialect, url="http://old"), Destination(agent="demo"), now)


async def bodies(served: Served, dialect: str, session_id: str) -> Any:
    reading = part(dialect, "read_back")
    return reading.comparable(await read(served, [path.format(session_id) for path in reading.PATHS]))


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_an_imported_conversation_reads_as_before(tmp_path: Path, dialect: str) -> None:
    database = tmp_path / "new" / "data" / "dragoman.db"
    create_database(database)
    async with gateway(tmp_path / "old") as old:
        session_id = await converse(old, *SAID, "and after all that?", title=TITLE)
        past = await read_past(old, dialect, session_id)
        before = await bodies(old, dialect, session_id)
        records = records_of(past, dialect, (await old.gateway.sessions.get("", session_id)).at)
    assert store_sessions(database, [records], lambda *_: False) == [True]
    async with gateway(tmp_path / "new", log="sqlite") as new:
        after = await bodies(new, dialect, session_id)
    assert [*differences(before, after)] == []
