"""What an agent says is in the log as it said it; what it has no right to say, or nobody could read, is not."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.ports import BackendEvent, BackendOutput, ScopedEvent
from gateway.ports import Turn as TurnPort
from tests.support.engine.engine_fixture import EngineFixture, lawful, names
from tests.support.engine.single_turn import HELLO, ended, played
from tests.support.record_streams import backend_turns


@pytest.mark.parametrize("nonsense", [
    m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta="no message"),
    m.MessageEnded(message_id="m1"),
    m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    m.TurnStarted(command_id="c"),
    m.InputResolved(request_id="ask_1", resolution=m.Resolution.GRANTED),
    m.ToolReturned(call_id="never made"),
    m.MessageStarted(message_id=7),  # type: ignore[arg-type]
    m.MessageStarted(message_id="m", model=object()),  # type: ignore[arg-type]
    m.NoticePosted(topic="t", title="x", detail=2**70),
    m.NoticePosted(topic="t", title="\udfff"),
    "a bare string",
    None,
    42,
])
async def test_nonsense_is_a_fault_of_the_turn_and_not_in_the_log(nonsense: object) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield nonsense  # type: ignore[misc]

    records = await played(play)
    assert names(records)[2:] == ["turn.started", "fault.raised", "turn.ended"]
    fault = ended(records).fault
    assert fault is not None
    assert fault.code is m.FaultCode.BACKEND


@pytest.mark.parametrize("delta", [5, None, b"bytes", "half a \ud800 pair"])
async def test_a_delta_that_cannot_be_written_does_not_get_out(delta: Any) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        yield HELLO[1]
        yield m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta=delta)

    records = await played(play)
    assert "block.delta" not in names(records)
    assert ended(records).outcome is m.Outcome.FAILED


@given(backend_turns(), st.lists(st.integers(0, 100), max_size=6), st.booleans())
async def test_what_is_told_at_once_is_what_is_told_bit_by_bit(
    said: list[m.Record], places: list[int], breaks: bool,
) -> None:
    """However the same things are put together, and up to the same unlawful one."""
    things = [ScopedEvent(r.scope_id, r.event) if r.scope_id != m.ROOT else r.event for r in said]
    things += [m.TurnStarted(command_id="x")] if breaks else []
    edges = [0, *sorted(place % (len(things) + 1) for place in places), len(things)]

    async def apart(turn: TurnPort) -> AsyncGenerator[BackendOutput, None]:
        for thing in things:
            yield thing

    async def together(turn: TurnPort) -> AsyncGenerator[BackendOutput, None]:
        for start, end in pairwise(edges):
            yield things[start:end]

    one, other = await played(apart), await played(together)
    assert [r.event for r in other[3:-1]] == [r.event for r in one[3:-1]]
    assert [r.scope_id for r in other] == [r.scope_id for r in one]
    assert ended(one).outcome is ended(other).outcome is (m.Outcome.FAILED if breaks else m.Outcome.COMPLETED)


async def test_words_before_an_unlawful_one_are_kept() -> None:
    stray = m.BlockDelta(block_id="b2", message_id="m1", kind=m.BlockKind.TEXT, delta="stray")

    async def play(turn: TurnPort) -> AsyncGenerator[BackendOutput, None]:
        yield [*HELLO[:4], stray, HELLO[3]]

    records = await played(play)
    assert [r.event for r in records[3:7]] == HELLO[:4]
    assert [r.event.delta for r in records if isinstance(r.event, m.BlockDelta)] == ["hel", "lo"]
    assert ended(records).outcome is m.Outcome.FAILED


async def test_a_turn_that_never_stops_talking_is_ended() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield HELLO[0]
        yield HELLO[1]
        while True:
            yield HELLO[2]

    records = await played(play, turn_events=1000)
    assert ended(records).outcome is m.Outcome.FAILED
    assert len(records) < 1100


async def test_words_of_every_script_take_the_short_way() -> None:
    words = ("你", "好\U0001f600")
    said = [m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta=word) for word in words]

    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        for event in (*HELLO[:2], *said):
            yield event
        yield m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, text="你好\U0001f600")
        yield HELLO[5]

    records = await played(play)
    assert [r.event for r in records if isinstance(r.event, m.BlockDelta)] == said
    assert records[5].event is said[0], "not copied on the way"
    assert ended(records).outcome is m.Outcome.COMPLETED


def _statuses(records: list[m.Record]) -> list[tuple[str, m.StopReason | None]]:
    changes = [(record.scope_id, record.event) for record in records if isinstance(record.event, m.ScopeStatusChanged)]
    assert {scope_id for scope_id, _ in changes} == {"scope_1"}
    return [(event.status, event.stop_reason) for _, event in changes]


@pytest.mark.parametrize("says_so", [True, False], ids=["in full", "the least"])
async def test_the_status_of_a_sub_agent_is_told_whether_its_backend_says_it_or_not(says_so: bool) -> None:
    def status(word: m.ScopeStatus, why: m.StopReason | None = None) -> list[BackendEvent]:
        return [ScopedEvent("scope_1", m.ScopeStatusChanged(status=word, stop_reason=why))] if says_so else []

    async def play(turn: TurnPort) -> AsyncGenerator[BackendEvent, None]:
        yield ScopedEvent("scope_1", m.ScopeOpened(parent=m.ROOT))
        for said in (*status(m.ScopeStatus.RUNNING), *status(m.ScopeStatus.BLOCKED, m.StopReason.NEEDS_INPUT)):
            yield said
        await turn.ask(m.ContinuationAsk(turn=1, message="on?"), scope_id="scope_1")
        for said in (*status(m.ScopeStatus.RUNNING), *status(m.ScopeStatus.IDLE, m.StopReason.REFUSAL)):
            yield said
        yield ScopedEvent("scope_1", m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.REFUSAL))

    stage = EngineFixture(play)
    session = await stage.session()
    session.submit([m.SendMessage(content="hi")])
    await stage.until(session, m.TurnSuspended)
    [request_id] = session.view.asks
    assert session.view.scopes["scope_1"].status is m.ScopeStatus.BLOCKED
    session.submit([m.ContinueTurn(request_id=request_id)])
    await stage.until(session, m.TurnEnded)
    records = await stage.records(session)
    lawful(records)
    assert ended(records).outcome is m.Outcome.COMPLETED
    assert _statuses(records) == [
        (m.ScopeStatus.RUNNING, None), (m.ScopeStatus.BLOCKED, m.StopReason.NEEDS_INPUT), (m.ScopeStatus.RUNNING, None),
        (m.ScopeStatus.IDLE, m.StopReason.REFUSAL), (m.ScopeStatus.ENDED, m.StopReason.REFUSAL),
    ]
