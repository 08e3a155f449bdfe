"""A server that comes back: sessions are as they were, running turns are closed, waiting ones wait on and go on."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.engine.recovery import TurnHistory
from gateway.errors import Conflict
from gateway.ports import BackendEvent, ScopedEvent, Turn
from gateway.storage import Database
from gateway.storage.log import SqliteLog
from tests.support.engine.engine_fixture import EngineFixture, Play, lawful, names, refolded
from tests.support.gateway_server import until


class Server:
    """An engine over a file, that can die and come back."""

    def __init__(self, file: Path) -> None:
        self.file = file

    async def start(self, play: Play, **limits: float) -> EngineFixture:
        stage = EngineFixture(play, log=SqliteLog(Database(self.file)), **limits)
        await stage.runtime.log.open()
        await stage.service.recover()
        return stage

    async def die(self, stage: EngineFixture) -> None:
        """What was committed stays; nobody says goodbye."""
        for session in stage.table:
            if session.run is not None:
                session.run.abandon()
        await stage.runtime.log.close()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "log.db")


async def talk(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """One message; for ever, if it was told to hang."""
    message, block = turn.mint("msg"), turn.mint("blk")
    yield m.MessageStarted(message_id=message)
    yield m.BlockStarted(block_id=block, message_id=message, kind=m.BlockKind.TEXT)
    yield m.BlockDelta(block_id=block, message_id=message, kind=m.BlockKind.TEXT, delta="half a ")
    if "hang" in str(turn.command.content):  # type: ignore[union-attr]
        await turn_for_ever()
    yield m.BlockDelta(block_id=block, message_id=message, kind=m.BlockKind.TEXT, delta="word")
    yield m.BlockEnded(block_id=block, message_id=message, kind=m.BlockKind.TEXT, text="half a word")
    yield m.MessageEnded(message_id=message, usage=m.Usage(input_tokens=3))


async def turn_for_ever() -> None:
    import asyncio

    await asyncio.Event().wait()


async def asking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """Two asks at two pauses, and words about each answer."""
    for number in (1, 2):
        answers = await turn.ask(
            m.ContinuationAsk(turn=number, message="go on?"), m.ContinuationAsk(turn=number, message="sure?"))
        told = " ".join(str(getattr(answer, "proceed", "withdrawn")) for answer in answers)
        yield m.NoticePosted(topic=f"after {number}", title=told)


async def whole(stage: EngineFixture, session_id: str) -> list[m.Record]:
    records = list(await stage.runtime.log.read(session_id))
    lawful(records)
    return records


async def test_a_session_is_as_it_was(server: Server) -> None:
    stage = await server.start(talk)
    session = await stage.session("ann")
    await stage.service.submit("ann", session.view.session_id, [m.SendMessage(content="hi")])
    await stage.until(session, m.TurnEnded)
    before = refolded(session.view, await whole(stage, session.view.session_id))
    await server.die(stage)
    stage = await server.start(talk)
    view = await stage.service.get("ann", session.view.session_id)
    assert view == before
    assert [head.session_id for head in await stage.service.heads("ann")] == [view.session_id]
    receipt = await stage.service.submit("ann", view.session_id, [m.SendMessage(content="again")])
    await until(lambda: view.status is m.SessionStatus.IDLE)
    records = await whole(stage, view.session_id)
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert receipt.after == before.head + 1
    await server.die(stage)


async def test_a_turn_that_ran_is_closed_with_a_fault(server: Server) -> None:
    stage = await server.start(talk)
    session = await stage.session()
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="hang")])
    await until(lambda: session.stored_seq == session.view.head and session.view.head > 5)
    await server.die(stage)
    stage = await server.start(talk)
    records = await whole(stage, session.view.session_id)
    await until(lambda: not stage.table.get(session.view.session_id).changed_seq
                > stage.table.get(session.view.session_id).stored_seq)
    records = await whole(stage, session.view.session_id)
    assert names(records)[-4:] == ["block.ended", "message.ended", "fault.raised", "turn.ended"]
    ended = records[-1].event
    assert isinstance(ended, m.TurnEnded) and ended.fault is not None
    assert (ended.outcome, ended.fault.code, ended.fault.retryable) == ("failed", "interrupted", True)
    assert isinstance(records[-4].event, m.BlockEnded) and records[-4].event.text == "half a "
    view = await stage.service.get("", session.view.session_id)
    assert view.status is m.SessionStatus.IDLE
    await stage.service.submit("", view.session_id, [m.SendMessage(content="hello")])
    await until(lambda: view.ended is not ended and view.status is m.SessionStatus.IDLE)
    await server.die(stage)


async def waiting(server: Server, play: Play) -> tuple[str, list[str]]:
    """A turn that waits for two answers when the server dies."""
    stage = await server.start(play)
    session = await stage.session()
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="go")])
    await stage.until(session, m.TurnSuspended)
    asks = list(session.view.asks)
    await server.die(stage)
    return session.view.session_id, asks


async def answer(stage: EngineFixture, session_id: str, *answers: m.Answer) -> None:
    await stage.service.submit("", session_id, list(answers))


async def test_a_turn_that_waits_waits_on_and_goes_on(server: Server) -> None:
    session_id, [first, second] = await waiting(server, asking)
    stage = await server.start(asking)
    view = await stage.service.get("", session_id)
    assert (view.status, list(view.asks)) == (m.SessionStatus.SUSPENDED, [first, second])
    await answer(stage, session_id, m.ContinueTurn(request_id=first, proceed=False))
    await server.die(stage)  # one of two has answered
    stage = await server.start(asking)
    view = await stage.service.get("", session_id)
    assert list(view.asks) == [second]
    with pytest.raises(Conflict):
        await answer(stage, session_id, m.ContinueTurn(request_id=first, proceed=True))
    await answer(stage, session_id, m.ContinueTurn(request_id=second, proceed=True))
    await until(lambda: len(view.asks) == 2)
    records = await whole(stage, session_id)
    assert [record.event.title for record in records if isinstance(record.event, m.NoticePosted)] == ["False True"]
    third, fourth = view.asks
    await server.die(stage)  # and once more, at the second pause
    stage = await server.start(asking)
    view = await stage.service.get("", session_id)
    await answer(stage, session_id, m.ContinueTurn(request_id=third), m.ContinueTurn(request_id=fourth))
    await until(lambda: view.status is m.SessionStatus.IDLE)
    records = await whole(stage, session_id)
    told = [record.event.title for record in records if isinstance(record.event, m.NoticePosted)]
    assert told == ["False True", "True True"]
    assert isinstance(records[-1].event, m.TurnEnded) and records[-1].event.fault is None
    assert [record.event.settled for record in records if isinstance(record.event, m.TurnResumed)] == [
        (first, second), (third, fourth)]
    await server.die(stage)


async def test_an_agent_that_asks_something_else_fails(server: Server) -> None:
    async def other(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        await turn.ask(m.ContinuationAsk(turn=1, message="just one?"))
        yield m.NoticePosted(topic="never", title="said")

    async def silent(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        yield m.NoticePosted(topic="never", title="said")

    for play in (other, silent):
        session_id, asks = await waiting(server, asking)
        stage = await server.start(play)
        view = await stage.service.get("", session_id)
        await answer(stage, session_id, *(m.ContinueTurn(request_id=ask) for ask in asks))
        await until(lambda view=view: view.status is m.SessionStatus.IDLE)
        records = await whole(stage, session_id)
        ended = records[-1].event
        assert isinstance(ended, m.TurnEnded) and ended.fault is not None and ended.fault.code == "interrupted"
        assert "notice.posted" not in names(records)
        await server.die(stage)


async def test_what_waited_too_long_expires_when_the_server_is_back(server: Server) -> None:
    session_id, asks = await waiting(server, asking)
    stage = await server.start(asking)
    view = await stage.service.get("", session_id)
    await server.die(stage)
    stage = EngineFixture(asking, log=SqliteLog(Database(server.file)))
    stage.now = max(ask.expires_at or 0 for ask in view.asks.values()) + 1
    await stage.runtime.log.open()
    await stage.service.recover()
    view = await stage.service.get("", session_id)
    await until(lambda: len(view.expired) == 2)
    records = await whole(stage, session_id)
    resolved = [record.event.resolution for record in records if isinstance(record.event, m.InputResolved)]
    assert resolved[:2] == [m.Resolution.EXPIRED] * 2
    assert asks == list(view.expired)
    await server.die(stage)


async def test_calls_and_sub_agents_are_the_same_when_run_anew(server: Server) -> None:
    async def forked(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        message, block, call_id, child = (turn.mint(word) for word in ("msg", "blk", "call", "scope"))
        call = m.ToolCall(call_id=call_id, name="calc", input={})
        yield m.MessageStarted(message_id=message)
        yield m.BlockStarted(block_id=block, message_id=message, kind=m.BlockKind.TOOL_USE, call=call)
        yield m.BlockEnded(block_id=block, message_id=message, kind=m.BlockKind.TOOL_USE, call=call)
        yield m.MessageEnded(message_id=message)
        yield ScopedEvent(child, m.ScopeOpened(parent=m.ROOT, call_id=call_id))
        [decided] = await turn.ask(m.PermissionAsk(call=call), scope_id=child)
        yield ScopedEvent(child, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED))
        granted = isinstance(decided, m.DecidePermission) and decided.granted
        yield m.ToolReturned(call_id=call_id, content=f"granted: {granted}")

    session_id, [ask] = await waiting(server, forked)
    stage = await server.start(forked)
    view = await stage.service.get("", session_id)
    await answer(stage, session_id, m.DecidePermission(request_id=ask, granted=True))
    await until(lambda: view.status is m.SessionStatus.IDLE)
    records = await whole(stage, session_id)
    assert [record.event.content for record in records if isinstance(record.event, m.ToolReturned)] == ["granted: True"]
    assert names(records).count("message.started") == 1
    await server.die(stage)


async def test_an_agent_may_take_up_its_turn_by_itself(server: Server) -> None:
    session_id, asks = await waiting(server, asking)
    stage = await server.start(asking)
    seen: list[Any] = []

    async def resume(turn: Turn, answers: Sequence[m.Answer]) -> AsyncGenerator[BackendEvent, None]:
        seen.extend(answers)
        yield m.NoticePosted(topic="taken up", title=f"{len(turn.history)} entries")

    stage.runtime.backends["agent"].resume = resume  # type: ignore[index, attr-defined]
    view = await stage.service.get("", session_id)
    answers = [m.ContinueTurn(request_id=ask) for ask in asks]
    await answer(stage, session_id, *answers)
    await until(lambda: view.status is m.SessionStatus.IDLE)
    assert seen == answers
    records = await whole(stage, session_id)
    assert [record.event.title for record in records if isinstance(record.event, m.NoticePosted)] == ["1 entries"]
    await server.die(stage)


async def test_sessions_whose_agent_is_gone_can_be_read(server: Server) -> None:
    session_id, _ = await waiting(server, asking)
    stage = EngineFixture(asking, log=SqliteLog(Database(server.file)))
    stage.runtime.agents, stage.runtime.backends = {}, {}
    await stage.runtime.log.open()
    await stage.service.recover()
    view = await stage.service.get("", session_id)
    assert (view.status, view.asks) == (m.SessionStatus.IDLE, {})
    assert view.ended is not None and view.ended.fault is not None
    await server.die(stage)


async def test_who_rests_is_let_go_and_comes_back(server: Server) -> None:
    stage = await server.start(talk, cached_sessions=3)
    ids = [(await stage.session()).view.session_id for _ in range(10)]
    assert len(stage.table) == 3
    for session_id in ids:
        await stage.service.submit("", session_id, [m.SendMessage(content="hi")])
        view = await stage.service.get("", session_id)
        await until(lambda view=view: view.status is m.SessionStatus.IDLE)
        records = await whole(stage, session_id)
        assert names(records).count("turn.ended") == 1
    views, _ = await stage.service.list("")
    assert {view.session_id for view in views} == set(ids)
    assert all(len(view.entries) == 2 for view in views)
    assert len(stage.table) <= 4
    await server.die(stage)


def test_the_past_of_a_turn_leaves_other_turns_out() -> None:
    past = TurnHistory("turn_9", [])
    assert (past.pauses, past.command) == ([], None)
