"""What was said through the gateway is on the old server too, and what is not is told."""

from pathlib import Path

import pytest

import gateway.model as m
from gateway.migration import Comparison, Origin, compare_sessions, spoken_turns
from gateway.ports import RemoteAddress
from gateway.storage.log import open_log_file
from tests.support.dialect_parts import each
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.gateway_server import Served
from tests.support.migration.old_server import TOOLS, converse, gateway, say

SAID = ("hello", "/think /tool clock {}", "/ask", "/fork", "/image", "/slow 3", "/parallel", "/permit", "/refuse")


async def compare(old: Served, folder: Path, dialect: str) -> Comparison:
    spoken = dialect_of(dialect)
    assert spoken.past_sessions is not None
    url = old.url(spoken.mount)
    source = spoken.past_sessions(RemoteAddress(url=url), "")
    try:
        with open_log_file(folder / "data" / "dragoman.db") as file:
            return await compare_sessions(file, source, Origin(dialect=dialect, url=url), 1e10)
    finally:
        await source.close()


def before(old: Served, dialect: str) -> dict[str, object]:
    """The settings of a gateway whose agent is the old server."""
    settings = {"dialect": dialect, "url": old.url(dialect_of(dialect).mount)}
    return {"log": "sqlite", "agents": {"demo": {"backend": "remote", "settings": settings, "tools": TOOLS}}}


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_both_sides_are_equal(tmp_path: Path, dialect: str) -> None:
    async with gateway(tmp_path / "old") as old:
        async with gateway(tmp_path / "new", **before(old, dialect)) as new:
            await converse(new, *SAID)
            await converse(new, "another")
        found = await compare(old, tmp_path / "new", dialect)
    assert found.differences == []
    assert (found.sessions, found.turns) == (2, len(SAID) + 1)
    assert found.words == found.words_there > len(SAID)


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_what_was_said_beside_the_gateway_is_told(tmp_path: Path, dialect: str) -> None:
    async with gateway(tmp_path / "old") as old:
        async with gateway(tmp_path / "new", **before(old, dialect)) as new:
            await converse(new, "through the gateway")
        theirs = (await old.gateway.sessions.heads(""))[0].session_id
        await say(old, theirs, "beside it")
        alone = await converse(old, "never through it")
        found = await compare(old, tmp_path / "new", dialect)
        assert len(found.differences) == 2
        assert found.differences[0].endswith("1 turns here, 2 at the server")
        assert found.differences[1].startswith(f"session {alone}: only the server has it")
        await old.gateway.sessions.delete("", theirs)
        found = await compare(old, tmp_path / "new", dialect)
    assert [line.partition(": ")[2] for line in found.differences[:1]] == ["the server does not have it any more"]


def test_other_words_are_shown_from_where_they_differ() -> None:
    from gateway.migration.comparison import SpokenTurn, _differences

    here, there = SpokenTurn("a", "x" * 100 + "here", ()), SpokenTurn("a", "x" * 100 + "there", ("calc",))
    answered, called = _differences(here, there)
    assert answered == f"the agent answered …{'x' * 20 + 'here'!r} here, …{'x' * 20 + 'there'!r} at the server"
    assert called == "the agent called '' here, 'calc' at the server"


def test_thinking_and_sub_agents_are_no_words() -> None:
    answer = m.ThinkingPart(text="hm"), m.TextPart(text="ho")
    view = m.SessionView(session_id="s", entries=[
        m.HistoryEntry(role=m.Role.USER, content="hi", seq=1, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content=answer, seq=2, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content="psst", seq=3, at=0.0, scope_id="child"),
    ])
    [turn] = spoken_turns(view)
    assert (turn.said, turn.answered, turn.words) == ("hi", "ho", 2)
