"""A session here has one there: found again after a restart, waited for, stopped, and told of when it is gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.backends.remote import client_dialects
from gateway.backends.remote.backend import SESSION_KEY, SessionLink, StoredAsks
from tests.support.dialect_tables import DIALECTS, dialects_with_feature
from tests.support.gateway_server import Served, serving, until

OWNER = "ann"
CAN_ASK = dialects_with_feature("permissions")
"""The dialects in which a server can ask."""
ASKING = m.Settings(tools={"calc": m.Permission.ASK})


@asynccontextmanager
async def far(folder: Path) -> AsyncIterator[Served]:
    """The server that has the agent."""
    (folder / "far").mkdir(exist_ok=True)
    async with serving(folder / "far", dialects={name: {} for name in DIALECTS}, log="memory") as served:
        yield served


@asynccontextmanager
async def near(folder: Path, dialect: str, url: str, **more: Any) -> AsyncIterator[Served]:
    """The gateway whose agent is a server elsewhere."""
    (folder / "near").mkdir(exist_ok=True)
    remote = {"backend": "remote", "settings": {"dialect": dialect, "url": url, **more}}
    agents = {"demo": {**remote, "tools": [{"name": "calc", "permission": "ask"}]}}
    async with serving(folder / "near", log="sqlite", agents=agents) as served:
        yield served


def where(served: Served, dialect: str) -> str:
    return served.url(served.gateway.contexts[dialect].mount)


async def say(served: Served, view: m.SessionView, text: str) -> None:
    await served.gateway.sessions.submit(OWNER, view.session_id, [m.SendMessage(content=text)])
    await until(lambda: view.status is not m.SessionStatus.RUNNING)


async def ended(served: Served, view: m.SessionView) -> list[m.TurnEnded]:
    await served.gateway.runtime.log.wait_stored(view.session_id, view.head)
    records = await served.gateway.sessions.records(OWNER, view.session_id)
    return [record.event for record in records if isinstance(record.event, m.TurnEnded)]


def words(view: m.SessionView) -> str:
    return m.text_of(view.entries[-1].content)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_it_talks_on_in_the_same_session_after_a_restart(tmp_path: Path, dialect: str) -> None:
    async with far(tmp_path) as there:
        url = where(there, dialect)
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.create(OWNER, "demo", metadata={"mine": "yes"})
            await say(here, view, "one")
            assert words(view) == "You said: one"
            theirs = view.metadata[SESSION_KEY]
            assert view.metadata["mine"] == "yes"
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.get(OWNER, view.session_id)
            await say(here, view, "two")
            assert words(view) == "You said: two"
            assert view.metadata[SESSION_KEY] == theirs
        heads = await there.gateway.sessions.heads("", limit=10)
        assert len(heads) == 1


async def test_metadata_that_a_client_exchanged_does_not_lose_the_session(tmp_path: Path) -> None:
    async with far(tmp_path) as there:
        async with near(tmp_path, "cas", where(there, "cas")) as here:
            view = await here.gateway.sessions.create(OWNER, "demo")
            await say(here, view, "one")
            await here.gateway.sessions.update(OWNER, view.session_id, metadata={"other": "things"})
        async with near(tmp_path, "cas", where(there, "cas")) as here:
            view = await here.gateway.sessions.get(OWNER, view.session_id)
            await say(here, view, "two")
            assert view.shown_metadata == {"other": "things"}
        assert len(await there.gateway.sessions.heads("", limit=10)) == 1


@pytest.mark.parametrize("dialect", CAN_ASK)
async def test_what_was_asked_is_answered_after_a_restart(tmp_path: Path, dialect: str) -> None:
    async with far(tmp_path) as there:
        url = where(there, dialect)
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.create(OWNER, "demo", settings=ASKING)
            await say(here, view, "/permit")
            assert view.status is m.SessionStatus.SUSPENDED
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.get(OWNER, view.session_id)
            assert view.status is m.SessionStatus.SUSPENDED
            await here.gateway.sessions.submit(OWNER, view.session_id, [answer(*one) for one in view.asks.items()])
            await until(lambda: view.status is m.SessionStatus.IDLE)
            (end,) = await ended(here, view)
            records = await here.gateway.sessions.records(OWNER, view.session_id)
        assert (end.outcome, end.fault) == (m.Outcome.COMPLETED, None)
        results = [record.event for record in records if isinstance(record.event, m.ToolReturned)]
        assert [(result.content, result.is_error) for result in results] == [("42", False)]


@pytest.mark.parametrize("words", ["/continue", "/rollback", "/ask", "/fork-ask"])
@pytest.mark.parametrize("dialect", CAN_ASK)
async def test_so_is_what_is_not_about_a_call(tmp_path: Path, dialect: str, words: str) -> None:
    """The far server is never restarted: it waits, is answered by a process that never heard it ask, and goes on."""
    async with far(tmp_path) as there:
        url = where(there, dialect)
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.create(OWNER, "demo")
            await say(here, view, f"{words} and so on")
            assert view.status is m.SessionStatus.SUSPENDED
            theirs = await there.gateway.sessions.get("", view.metadata[SESSION_KEY])
        assert theirs.status is m.SessionStatus.SUSPENDED
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.get(OWNER, view.session_id)
            assert view.status is m.SessionStatus.SUSPENDED
            await here.gateway.sessions.submit(OWNER, view.session_id, [answer(*one) for one in view.asks.items()])
            await until(lambda: view.status is m.SessionStatus.IDLE)
            (end,) = await ended(here, view)
            assert (end.outcome, end.fault) == (m.Outcome.COMPLETED, None)
            assert m.text_of(view.entries[-1].content) == m.text_of(theirs.entries[-1].content) != ""
        assert (theirs.status, len(await ended_there(there, theirs))) == (m.SessionStatus.IDLE, 1)


async def ended_there(served: Served, view: m.SessionView) -> list[m.TurnEnded]:
    records = await served.gateway.sessions.records("", view.session_id)
    return [record.event for record in records if isinstance(record.event, m.TurnEnded)]


@pytest.mark.parametrize("dialect", CAN_ASK)
async def test_every_pause_of_a_turn_can_be_answered_after_a_restart(tmp_path: Path, dialect: str) -> None:
    """Of what was asked before, nothing is taken for what is asked now."""
    async with far(tmp_path) as there:
        url = where(there, dialect)
        async with near(tmp_path, dialect, url) as here:
            view = await here.gateway.sessions.create(OWNER, "demo")
            await say(here, view, "/continue /rollback /continue /permit done")
        ends, pauses = list[m.TurnEnded](), 0
        while not ends:
            ends, pauses = await answered(tmp_path, dialect, url, view.session_id), pauses + 1
        assert [(end.outcome, end.fault) for end in ends] == [(m.Outcome.COMPLETED, None)]
        assert pauses >= 3


async def answered(folder: Path, dialect: str, url: str, session_id: str) -> list[m.TurnEnded]:
    """The gateway comes back, all that is open is answered, and the turn goes on to its next pause or its end."""
    async with near(folder, dialect, url) as here:
        view = await here.gateway.sessions.get(OWNER, session_id)
        open_asks = dict(view.asks)
        assert open_asks
        await here.gateway.sessions.submit(OWNER, session_id, [answer(*one) for one in open_asks.items()])
        await until(lambda: view.status is not m.SessionStatus.RUNNING and not open_asks.keys() & view.asks.keys())
        return await ended(here, view)


def answer(request_id: str, pending: Any) -> m.AnyCommand:
    match pending.ask.kind:
        case "permission":
            return m.DecidePermission(request_id=request_id, granted=True)
        case "continuation":
            return m.ContinueTurn(request_id=request_id)
        case "rollback":
            return m.RollBack(request_id=request_id, option="all")
        case "question":
            count = len(pending.ask.questions)
            return m.AnswerQuestion(request_id=request_id, selections={str(number): (0,) for number in range(count)})
        case _:
            return m.ReturnResult(request_id=request_id, content="painted")


async def test_an_interrupt_is_carried_on(tmp_path: Path) -> None:
    async with far(tmp_path) as there, near(tmp_path, "cas", where(there, "cas")) as here:
        view = await here.gateway.sessions.create(OWNER, "demo")
        await here.gateway.sessions.submit(OWNER, view.session_id, [m.SendMessage(content="/slow 1000")])
        await until(lambda: view.metadata.get(SESSION_KEY) and view.head > 8)
        theirs = await there.gateway.sessions.get("", view.metadata[SESSION_KEY])
        assert theirs.status is m.SessionStatus.RUNNING
        await here.gateway.sessions.submit(OWNER, view.session_id, [m.Interrupt()])
        await until(lambda: theirs.status is m.SessionStatus.IDLE)
        assert theirs.ended is not None and theirs.ended.outcome is m.Outcome.INTERRUPTED
        (end,) = await ended(here, view)
        assert end.outcome is m.Outcome.INTERRUPTED


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_that_is_not_there_is_a_fault_in_clear_words(tmp_path: Path, dialect: str) -> None:
    async with near(tmp_path, dialect, "http://127.0.0.1:9", attempts=1) as here:
        view = await here.gateway.sessions.create(OWNER, "demo")
        await say(here, view, "hello")
        (end,) = await ended(here, view)
        assert end.fault is not None
        assert end.fault.code in (m.FaultCode.BACKEND, m.FaultCode.OVERLOADED)
        assert "127.0.0.1:9" in end.fault.message


def test_whoever_is_spoken_has_both_ears_and_a_mouth() -> None:
    assert list(client_dialects()) == DIALECTS


async def test_results_for_the_first_messages_go_on_to_a_server_that_takes_them(tmp_path: Path) -> None:
    call = m.ToolUsePart(call=m.ToolCall(call_id="call_1", name="weather"))
    seed = [
        m.SeedMessage(role=m.Role.USER, content="Is it warm?"),
        m.SeedMessage(role=m.Role.ASSISTANT, content=(call,)),
    ]
    result = m.SeedMessage(role=m.Role.TOOL, content="sunny", call_id="call_1")
    command = m.SendMessage(content="weather returned sunny", results=(result,))
    async with far(tmp_path) as there, near(tmp_path, "aap", where(there, "aap")) as here:
        view = await here.gateway.sessions.create(OWNER, "demo", history=seed)
        await here.gateway.sessions.submit(OWNER, view.session_id, [command])
        await until(lambda: view.status is m.SessionStatus.IDLE)
        theirs = await there.gateway.sessions.get("", view.metadata[SESSION_KEY])
    assert words(view) == "You said: weather returned sunny"
    for one in (view, theirs):
        assert [(entry.role, entry.call_id) for entry in one.entries] == [
            (m.Role.USER, None), (m.Role.ASSISTANT, None), (m.Role.TOOL, "call_1"), (m.Role.ASSISTANT, None)]


def test_a_link_is_read_as_it_was_stored_and_what_is_none_is_no_link() -> None:
    link = SessionLink(upstream_session="s", upstream_url="u", upstream_dialect="d")
    asked = SessionLink(upstream_session="s", asked=StoredAsks(turn="t", asks=(("question", "c", "r", "root"),)))
    for one in (link, asked):
        assert SessionLink.read(one.stored({"a": 1, m.PRIVATE: {"other": 2}})) == one
    assert link.stored({"a": 1, m.PRIVATE: {"other": 2}}) == {"a": 1, m.PRIVATE: {"other": 2, "remote": link.public}}
    for kept in (None, 7, {}, {"remote": None}, {"remote": {"upstream_session": 7}}, {"remote": {"asked": [1]}}):
        assert SessionLink.read({m.PRIVATE: kept}) == SessionLink()
