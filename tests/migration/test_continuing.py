"""An imported conversation goes on at the old server if that is the agent, and with the history if another agent is."""

from pathlib import Path
from typing import Any

import pytest

from gateway.migration import Destination, Origin, make_records
from gateway.ports import RemoteAddress
from gateway.storage import create_database
from gateway.storage.log import store_sessions
from tests.support.dialect_parts import each
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.gateway_server import Served
from tests.support.migration.old_server import TOOLS, converse, gateway, say


async def bring(old: Served, dialect: str, folder: Path) -> str:
    """Import one conversation of the old server; its id."""
    session_id, spoken = await converse(old, "hello", "/think /tool clock {}"), dialect_of(dialect)
    assert spoken.past_sessions is not None
    url = old.url(spoken.mount)
    source = spoken.past_sessions(RemoteAddress(url=url), "")
    records = make_records(
        await source.read(session_id), Origin(dialect=dialect, url=url), Destination(agent="demo"), 1e10)
    await source.close()
    create_database(folder / "data" / "dragoman.db")
    assert store_sessions(folder / "data" / "dragoman.db", [records], lambda *_: False) == [True]
    return session_id


def messages(view: Any) -> list[str]:
    return [entry.content for entry in view.entries if entry.role == "user"]


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_the_next_turn_is_a_turn_of_the_old_session(tmp_path: Path, dialect: str) -> None:
    async with gateway(tmp_path / "old") as old:
        session_id = await bring(old, dialect, tmp_path / "new")
        settings = {"dialect": dialect, "url": old.url(dialect_of(dialect).mount)}
        agents = {"demo": {"backend": "remote", "settings": settings, "tools": TOOLS}}
        async with gateway(tmp_path / "new", log="sqlite", agents=agents) as new:
            await say(new, session_id, "and now?")
            ours = await new.gateway.sessions.get("", session_id)
        theirs = await old.gateway.sessions.get("", session_id)
        assert len(await old.gateway.sessions.heads("")) == 1
    assert ours.entries[-1].content == theirs.entries[-1].content
    assert len(messages(theirs)) == len(messages(ours)) == 3


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_another_agent_goes_on_with_the_history(tmp_path: Path, dialect: str) -> None:
    async with gateway(tmp_path / "old") as old:
        session_id = await bring(old, dialect, tmp_path / "new")
    async with gateway(tmp_path / "new", log="sqlite") as new:
        await say(new, session_id, "and now?")
        view = await new.gateway.sessions.get("", session_id)
    assert len(messages(view)) == 3
