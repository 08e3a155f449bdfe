"""One session, driven by every dialect in turn, watched in every dialect: each watcher hears the same conversation."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import gateway.model as m
from gateway.ports import Frame
from tests.support.dialect_parts import dialects_with, part, quick_settings, skipped
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.directives import directives
from tests.support.gateway_server import Served, serving, until

DIRECTIVES = directives(without=('/tool search {"wrong": 1}', "/max-steps", "/card"))
TOOLS = ("clock", "calc", "search")
CROSSED = [name for name in dialects_with("rest_requests") if name in dialects_with("watched_frames")]
PICTURE = re.compile(r"!\[image\]\([^)]*\)")


@dataclass
class Heard:
    """What every dialect can tell: the agent's own words, and the tools it used."""

    text: str
    tools: list[str]


def _of(text: str, names: list[str]) -> Heard:
    return Heard(PICTURE.sub("", text), [name for name in names if name in TOOLS])


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects=quick_settings()) as served:
        yield served


async def _settle(served: Served, session: str) -> None:
    """Whatever a turn asks of people is answered, so that it comes to its own end."""
    view = await served.gateway.sessions.get("", session)
    await until(lambda: view.status is not m.SessionStatus.RUNNING)
    while view.status is m.SessionStatus.SUSPENDED:
        answers = [_answer(pending) for pending in view.asks.values()]
        await served.gateway.sessions.submit("", session, answers)
        await until(lambda: view.status is not m.SessionStatus.RUNNING)


def _answer(pending: m.OpenAsk) -> m.AnyCommand:
    request_id, ask = pending.request_id, pending.ask
    if isinstance(ask, m.QuestionAsk):
        return m.AnswerQuestion(request_id=request_id, custom={str(n): "both" for n in range(len(ask.questions))})
    if isinstance(ask, m.PermissionAsk):
        return m.DecidePermission(request_id=request_id, granted=True)
    if isinstance(ask, m.ContinuationAsk):
        return m.ContinueTurn(request_id=request_id)
    return (m.RollBack(request_id=request_id, option=str(ask.options[0]["id"])) if isinstance(ask, m.RollbackAsk)
            else m.ReturnResult(request_id=request_id, content="done"))


async def _frames(served: Served, session: str, name: str) -> list[Frame]:
    """All that a watcher of the whole session gets, up to the end of its last turn."""
    records = await served.gateway.sessions.records("", session)
    last = max(record.seq for record in records if isinstance(record.event, m.TurnEnded))
    watcher = await served.gateway.sessions.subscribe("", session, name, dialect(name).default_options)
    frames: list[Frame] = []
    async with asyncio.timeout(60):
        seen = 0
        while seen < last:
            chunks = await watcher.chunks()
            frames += [frame for chunk in chunks for frame in chunk.frames]
            seen = chunks[-1].seq
    watcher.close()
    return frames


def _kept(view: m.SessionView) -> Heard:
    """The same from the log, through no dialect at all."""
    own = [entry.content for entry in view.entries if entry.role is m.Role.ASSISTANT and entry.scope_id == m.ROOT]
    calls = [part.call.name for content in own for part in m.parts_of(content) if isinstance(part, m.ToolUsePart)]
    return _of("".join(map(m.text_of, own)), calls)


def test_every_dialect_is_crossed() -> None:
    assert set(CROSSED) == {name for name in DIALECTS if not skipped(name, "rest_requests", "watched_frames")}
    assert len(CROSSED) > 3


async def drive(served: Served, session: str, dialect: str, words: str) -> None:
    """Say something in the session, as a client of this dialect."""
    path, body = part(dialect, "rest_requests").message(session, words)
    async with served.http.post(served.url(path), json=body) as response:
        told = await response.text()
        assert response.status < 300, (path, response.status, told)


@pytest.mark.parametrize("words", DIRECTIVES)
async def test_every_watcher_hears_the_same(served: Served, words: str) -> None:
    session = (await served.gateway.sessions.create("", "demo")).session_id
    for name in CROSSED:
        await drive(served, session, name, f"{words} for {name}" if not words.startswith("/title") else words)
        await _settle(served, session)
    view = await served.gateway.sessions.get("", session)
    assert view.turns == len(CROSSED)
    heard = {name: _of(*part(name, "watched_frames").spoken(await _frames(served, session, name))) for name in CROSSED}
    said = _kept(view)
    assert heard == dict.fromkeys(CROSSED, said), "what each watcher heard, and what the log keeps"
    assert said.text or words in ("/fail-start",), "there was something to hear"
    if words == "hello there":
        assert all(f"hello there for {name}" in heard["aap"].text for name in CROSSED)
