"""What an agent says is in the log as it said it; what it has no right to say, or nobody could read, is not."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model import (
    ROOT,
    BlockDelta,
    BlockEnded,
    BlockKind,
    FaultCode,
    InputResolved,
    MessageEnded,
    MessageStarted,
    NoticePosted,
    Outcome,
    Record,
    Resolution,
    StopReason,
    ToolReturned,
    TurnEnded,
    TurnStarted,
)
from gateway.ports import Said, Scoped, Telling
from gateway.ports import Turn as TurnPort
from tests.engine.playing import HELLO, ended, played
from tests.house import names
from tests.streams import backend_turns


@pytest.mark.parametrize("nonsense", [
    BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TEXT, delta="no message"),
    MessageEnded(message_id="m1"),
    TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN),
    TurnStarted(command_id="c"),
    InputResolved(request_id="ask_1", resolution=Resolution.GRANTED),
    ToolReturned(call_id="never made"),
    MessageStarted(message_id=7),  # type: ignore[arg-type]
    MessageStarted(message_id="m", model=object()),  # type: ignore[arg-type]
    NoticePosted(topic="t", title="x", detail=2**70),
    NoticePosted(topic="t", title="\udfff"),
    "a bare string",
    None,
    42,
])
async def test_nonsense_is_a_fault_of_the_turn_and_not_in_the_log(nonsense: object) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[Said, None]:
        yield nonsense  # type: ignore[misc]

    records = await played(play)
    assert names(records)[2:] == ["turn.started", "fault.raised", "turn.ended"]
    fault = ended(records).fault
    assert fault is not None
    assert fault.code is FaultCode.BACKEND


@pytest.mark.parametrize("delta", [5, None, b"bytes", "half a \ud800 pair"])
async def test_a_delta_that_cannot_be_written_does_not_get_out(delta: Any) -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[Said, None]:
        yield HELLO[0]
        yield HELLO[1]
        yield BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TEXT, delta=delta)

    records = await played(play)
    assert "block.delta" not in names(records)
    assert ended(records).outcome is Outcome.FAILED


@given(backend_turns(), st.lists(st.integers(0, 100), max_size=6), st.booleans())
async def test_what_is_told_at_once_is_what_is_told_bit_by_bit(
    said: list[Record], places: list[int], breaks: bool,
) -> None:
    """However the same things are put together, and up to the same unlawful one."""
    things = [Scoped(r.scope_id, r.event) if r.scope_id != ROOT else r.event for r in said]
    things += [TurnStarted(command_id="x")] if breaks else []
    edges = [0, *sorted(place % (len(things) + 1) for place in places), len(things)]

    async def apart(turn: TurnPort) -> AsyncGenerator[Telling, None]:
        for thing in things:
            yield thing

    async def together(turn: TurnPort) -> AsyncGenerator[Telling, None]:
        for start, end in pairwise(edges):
            yield things[start:end]

    one, other = await played(apart), await played(together)
    assert [r.event for r in other[3:-1]] == [r.event for r in one[3:-1]]
    assert [r.scope_id for r in other] == [r.scope_id for r in one]
    assert ended(one).outcome is ended(other).outcome is (Outcome.FAILED if breaks else Outcome.COMPLETED)


async def test_words_before_an_unlawful_one_are_kept() -> None:
    stray = BlockDelta(block_id="b2", message_id="m1", kind=BlockKind.TEXT, delta="stray")

    async def play(turn: TurnPort) -> AsyncGenerator[Telling, None]:
        yield [*HELLO[:4], stray, HELLO[3]]

    records = await played(play)
    assert [r.event for r in records[3:7]] == HELLO[:4]
    assert [r.event.delta for r in records if isinstance(r.event, BlockDelta)] == ["hel", "lo"]
    assert ended(records).outcome is Outcome.FAILED


async def test_a_turn_that_never_stops_talking_is_ended() -> None:
    async def play(turn: TurnPort) -> AsyncGenerator[Said, None]:
        yield HELLO[0]
        yield HELLO[1]
        while True:
            yield HELLO[2]

    records = await played(play, turn_events=1000)
    assert ended(records).outcome is Outcome.FAILED
    assert len(records) < 1100


async def test_words_of_every_script_take_the_short_way() -> None:
    words = ("你", "好\U0001f600")
    said = [BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TEXT, delta=word) for word in words]

    async def play(turn: TurnPort) -> AsyncGenerator[Said, None]:
        for event in (*HELLO[:2], *said):
            yield event
        yield BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TEXT, text="你好\U0001f600")
        yield HELLO[5]

    records = await played(play)
    assert [r.event for r in records if isinstance(r.event, BlockDelta)] == said
    assert records[5].event is said[0], "not copied on the way"
    assert ended(records).outcome is Outcome.COMPLETED
