"""A turn ends exactly once and well-formed, whatever its backend does."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.errors import BackendFailed, RateLimited
from gateway.ports import BackendEvent, ScopedEvent
from gateway.ports import Turn as TurnPort
from tests.support.engine.engine_fixture import EngineFixture, names
from tests.support.engine.single_turn import HELLO, deep, ended, played
from tests.support.record_streams import backend_turns

CALL = m.ToolCall(call_id="c1", name="clock")
CALLING = [
    m.MessageStarted(message_id="m1"),
    m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL),
    m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL),
    m.MessageEnded(message_id="m1", stop_reason=m.StopReason.TOOL_USE),
]


async def test_a_plain_turn_is_logged_as_it_was_said() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for event in HELLO:
            yield event

    records = await played(play)
    assert [r.event for r in records[3:-1]] == HELLO
    assert ended(records).outcome is m.Outcome.COMPLETED
    assert ended(records).stop_reason is m.StopReason.END_TURN
    assert ended(records).usage == m.Usage(output_tokens=2)


@pytest.mark.parametrize("said", range(len(HELLO) + 1))
async def test_an_exception_at_any_point_becomes_a_fault(said: int) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for event in HELLO[:said]:
            yield event
        raise ZeroDivisionError("the secret is 42")

    records = await played(play)
    assert ended(records).outcome is m.Outcome.FAILED
    assert ended(records).stop_reason is m.StopReason.ERROR
    fault = ended(records).fault
    assert fault is not None
    assert fault.code is m.FaultCode.INTERNAL
    assert "42" not in fault.message, "what an agent throws is not for clients"
    assert isinstance(records[-2].event, m.FaultRaised)


async def test_an_error_of_ours_keeps_its_code_and_words() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        raise RateLimited("slow down")

    fault = ended(await played(play)).fault
    assert fault is not None
    assert (fault.code, fault.message, fault.retryable) == (m.FaultCode.RATE_LIMITED, "slow down", True)


async def test_a_call_that_was_being_written_is_torn_and_not_carried_out() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield CALLING[0]
        yield CALLING[1]
        yield m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, delta='{"a":')
        raise BackendFailed("gone")

    records = await played(play)
    torn = next(r.event for r in records if isinstance(r.event, m.BlockEnded))
    assert torn.torn
    assert torn.variant == "torn"


async def test_a_call_left_open_comes_back_as_an_error() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for event in CALLING:
            yield event

    records = await played(play)
    back = next(r.event for r in records if isinstance(r.event, m.ToolReturned))
    assert (back.call_id, back.is_error) == ("c1", True)
    assert ended(records).stop_reason is m.StopReason.END_TURN, "nobody waits for a tool any more"


async def test_a_sub_agent_left_talking_is_ended_too() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield ScopedEvent("child", m.ScopeOpened(parent=m.ROOT))
        yield ScopedEvent("child", m.MessageStarted(message_id="m9"))
        yield ScopedEvent("child", m.BlockStarted(block_id="b9", message_id="m9", kind=m.BlockKind.TEXT))
        raise BackendFailed("gone")

    records = await played(play)
    closing = [(r.scope_id, r.event.name) for r in records[-5:]]
    assert closing == [
        ("child", "block.ended"), ("child", "message.ended"), ("child", "scope.status"),
        (m.ROOT, "fault.raised"), (m.ROOT, "turn.ended"),
    ]


@given(backend_turns(), st.data())
async def test_a_stream_that_breaks_anywhere_is_closed(said: list[m.Record], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(said)))
    how = data.draw(st.sampled_from(["raise", "return", "nonsense", "repeat"]))

    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for record in said[:cut]:
            yield ScopedEvent(record.scope_id, record.event) if record.scope_id != m.ROOT else record.event
        if how == "raise":
            raise RuntimeError("broke")
        if how == "nonsense":
            yield m.TurnStarted(command_id="x")
        if how == "repeat" and cut:
            yield said[cut - 1].event

    records = await played(play)
    spoken, kept = ([r.event for r in some if not isinstance(r.event, m.ScopeStatusChanged)]
                    for some in (said[:cut], records[3:]))
    assert kept[:len(spoken)] == spoken


async def test_an_interrupt_ends_the_turn_at_once_even_if_the_backend_will_not_stop() -> None:
    stubborn = asyncio.Event()

    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await stubborn.wait()
            yield HELLO[1]

    stage = EngineFixture(play)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.MessageStarted)
    run = session.run
    session.submit([m.Interrupt()])
    records = await stage.records(session)
    assert names(records)[-3:] == ["input.accepted", "message.ended", "turn.ended"]
    assert ended(records).outcome is m.Outcome.INTERRUPTED
    stubborn.set()
    assert run is not None
    await run.wait_finished(5)
    assert await stage.records(session) == records, "what a stopped backend still says does not count"


async def test_a_turn_that_never_ends_is_timed_out() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        await asyncio.Event().wait()

    records = await played(play, turn_seconds=0.01)
    assert ended(records).stop_reason is m.StopReason.TIMEOUT
    fault = ended(records).fault
    assert fault is not None
    assert fault.code is m.FaultCode.TIMEOUT


async def test_a_backend_that_raises_while_it_is_closed_does_no_harm() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        try:
            yield HELLO[0]
            await asyncio.Event().wait()
        finally:
            raise OSError("cleanup failed")

    stage = EngineFixture(play)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.MessageStarted)
    run = session.run
    session.submit([m.Interrupt()])
    assert run is not None
    await run.wait_finished(5)
    assert names(await stage.records(session)).count("turn.ended") == 1


async def test_an_ask_nobody_answers_expires_and_the_turn_goes_on() -> None:
    answers: list[object] = []

    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for event in CALLING:
            yield event
        answers.extend(await turn.ask(m.PermissionAsk(call=CALL)))
        yield m.ToolReturned(call_id="c1", is_error=True)

    records = await played(play, ask_seconds=0.01)
    assert isinstance(answers[0], m.Withdraw)
    resolved = next(r.event for r in records if isinstance(r.event, m.InputResolved))
    assert resolved.resolution is m.Resolution.EXPIRED
    assert any(isinstance(r.event, m.TurnResumed) for r in records)
    assert ended(records).outcome is m.Outcome.COMPLETED


async def test_asking_in_the_middle_of_a_message_is_a_fault() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        await turn.ask(m.PermissionAsk(call=CALL))

    assert ended(await played(play)).outcome is m.Outcome.FAILED


async def test_a_backend_that_breaks_before_its_first_word_breaks_its_turn() -> None:
    class Broken:
        def run(self, turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
            raise RuntimeError("no such model")

        async def close(self) -> None:
            """Nothing to put away."""

    async def never(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        return
        yield

    stage = EngineFixture(never)
    stage.runtime.backends = {"agent": Broken()}
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    records = await stage.records(session)
    assert names(records)[2:] == ["turn.started", "fault.raised", "turn.ended"]
    assert ended(records).outcome is m.Outcome.FAILED


UNWRITABLE: list[m.AnyAsk] = [
    m.QuestionAsk(questions=(m.Question(question="half of a pair: \ud83d"),)),
    m.QuestionAsk(questions=(m.Question(question=7),)),  # type: ignore[arg-type]
    m.RollbackAsk(task_id="t", options=({"deep": deep(500)},)),
    m.RollbackAsk(task_id="t", options=({"at": object()},)),
]


@pytest.mark.parametrize("ask", UNWRITABLE)
async def test_what_cannot_be_written_cannot_be_asked(ask: m.AnyAsk) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        await turn.ask(m.ContinuationAsk(turn=1, message="fine"), ask)
        yield m.NoticePosted(topic="t", title="never")

    records = await played(play)
    assert names(records)[2:] == ["turn.started", "fault.raised", "turn.ended"]
    fault = ended(records).fault
    assert fault is not None
    assert fault.code is m.FaultCode.BACKEND


async def test_a_fault_with_words_that_cannot_be_written_is_told_with_others() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        raise RateLimited("too fast: \ud83d", details={"deep": deep(1000)})
        yield

    records = await played(play)
    assert ended(records).fault == m.Fault(code=m.FaultCode.RATE_LIMITED, message="too fast: ?", retryable=True)
    assert [m.decode_record(m.encode_record(record)) for record in records] == records
