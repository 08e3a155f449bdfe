"""One session, driven by every dialect in turn, watched in every dialect: each watcher hears the same conversation."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import gateway.model as m
from gateway.ports import Frame
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.dialects.aap import reader as aap
from tests.support.dialects.blade.reader import Page
from tests.support.dialects.cas import reader as cas
from tests.support.dialects.zenflux import reader as zenflux
from tests.support.frames import bodies
from tests.support.gateway_server import Served, serving, until

DIRECTIVES = [
    "hello", "/think why", "/tool clock", '/tool calc {"expression": "6*7"} well', '/tool search {"query": "dragoman"}',
    "/permit", "/parallel", "/ask", "/fork", "/fork-ask", "/continue", "/rollback", "/fail", "/fail-start", "/refuse",
    "/max-tokens", "/slow 3", "/burst 200", "/annotate", "/bridge", "/ui", "/image", "/plan", "/title Trip", "/compact",
    "/json", "/client-tool", "/provider-tool",
]
TOOLS = ("clock", "calc", "search")
PICTURE = re.compile(r"!\[image\]\([^)]*\)")


@dataclass
class Heard:
    """What every dialect can tell: the agent's own words, and the tools it used."""

    text: str
    tools: list[str]


def _of(text: str, names: list[str]) -> Heard:
    return Heard(PICTURE.sub("", text), [name for name in names if name in TOOLS])


def over_aap(frames: list[Frame]) -> Heard:
    """AAP's streams belong to requests: each is from a turn_start to its turn_stop, and between them nobody listens."""
    streams = re.findall(rb"event: turn_start\n.*?event: turn_stop\n[^\n]*\n\n", b"".join(bodies(frames)), re.DOTALL)
    turns = aap.read_stream(b"".join(streams))
    return _of("".join(turn.text for turn in turns), [name for turn in turns for _, name, _ in turn.calls])


def over_cas(frames: list[Frame]) -> Heard:
    heard = cas.read_stream(b"".join(bodies(frames)))
    words = "".join(frame.text for frame in heard if frame.type == "agent.message")
    return _of(words, [frame.body["name"] for frame in heard if frame.type.endswith("tool_use")])


def over_blade(frames: list[Frame]) -> Heard:
    page = Page().read(frames)
    own = [turn for turn in page.turns.values()
           if turn["role"] == "assistant" and turn["parent_fork_tool_call_id"] is None and turn["kind"] == "message"]
    words = "".join(block["content"] for turn in own for block in turn["blocks"] if block["type"] == "text")
    return _of(words, [call["tool_name"] for turn in own for call in turn["tool_calls"]])


def over_zenflux(frames: list[Frame]) -> Heard:
    runs = zenflux.read_stream(zenflux.payloads(bodies(frames)))
    calls = [block["name"] for run in runs for block in run.blocks if block["type"].endswith("tool_use")]
    return _of("".join(word for run in runs for word in run.words("text")), calls)


READERS: dict[str, Callable[[list[Frame]], Heard]] = {
    "aap": over_aap, "cas": over_cas, "blade": over_blade, "zenflux": over_zenflux,
}


# -- driving ----------------------------------------------------------------------------------------------------------

async def _post(served: Served, path: str, body: object) -> None:
    async with served.http.post(served.url(path), json=body) as response:
        told = await response.text()
        assert response.status < 300, (path, response.status, told)


async def drive_aap(served: Served, session: str, words: str) -> None:
    await _post(served, f"/aap/sessions/{session}/turns", {"messages": [{"role": "user", "content": words}]})


async def drive_cas(served: Served, session: str, words: str) -> None:
    await _post(served, f"/api/v1/cloud/sessions/{session}/events", {
        "events": [{"type": "user.message", "content": words}]})


async def drive_blade(served: Served, session: str, words: str) -> None:
    await _post(served, f"/api/sessions/{session}/chat", {"message": words})


async def drive_zenflux(served: Served, session: str, words: str) -> None:
    await _post(served, "/api/v1/chat", {
        "message": words, "userId": "local", "conversationId": session, "stream": False})


DRIVERS: dict[str, Callable[[Served, str, str], Awaitable[None]]] = {
    "aap": drive_aap, "cas": drive_cas, "blade": drive_blade, "zenflux": drive_zenflux,
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    dialects: dict[str, dict[str, object]] = {name: {} for name in DIALECTS}
    dialects["zenflux"] = {"sync_seconds": 1}
    async with serving(tmp_path, dialects=dialects) as served:
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


def test_every_dialect_has_a_reader_and_a_driver() -> None:
    assert set(READERS) == set(DRIVERS) == set(DIALECTS)


@pytest.mark.parametrize("words", DIRECTIVES)
async def test_every_watcher_hears_the_same(served: Served, words: str) -> None:
    session = (await served.gateway.sessions.create("", "demo")).session_id
    for name in DIALECTS:
        await DRIVERS[name](served, session, f"{words} for {name}" if not words.startswith("/title") else words)
        await _settle(served, session)
    view = await served.gateway.sessions.get("", session)
    assert view.turns == len(DIALECTS)
    heard = {name: READERS[name](await _frames(served, session, name)) for name in DIALECTS}
    said = _kept(view)
    assert heard == dict.fromkeys(DIALECTS, said), "what each watcher heard, and what the log keeps"
    assert said.text or words in ("/fail-start",), "there was something to hear"
    if words == "hello":
        assert all(f"hello for {name}" in heard["aap"].text for name in DIALECTS)
