"""Why a server's turn has ended is why the turn here has ended, and no word is late because of it."""

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.backends.remote.turn_reader import StopReasonFilter
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports.remote import DecodedItem, RemoteTurnEnd
from tests.backends.remote.test_backend import OWNER, ended, far, near, say, where
from tests.support.backends.remote_turns import filtered

START, END = m.MessageStarted(message_id="m"), m.MessageEnded(message_id="m")
WORD = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="hi")
RESULT, NOTICE = m.ToolReturned(call_id="c"), m.NoticePosted(topic="t", title="n")
STEPS = RemoteTurnEnd(stop_reason=m.StopReason.MAX_STEPS)


async def stream(heard: Iterable[DecodedItem | Exception]) -> AsyncGenerator[DecodedItem, None]:
    for one in heard:
        if isinstance(one, Exception):
            raise one
        yield one


async def all_of(*heard: DecodedItem | Exception) -> list[DecodedItem]:
    return [one async for one in filtered(stream(heard), StopReasonFilter(make_mint("t")))]


def reasons(heard: list[DecodedItem]) -> list[m.StopReason]:
    return [one.stop_reason for one in heard if isinstance(one, m.MessageEnded)]


async def test_the_last_message_ends_as_the_turn_does() -> None:
    heard = await all_of(START, WORD, END, NOTICE, STEPS)
    assert heard == [START, WORD, NOTICE, m.MessageEnded(message_id="m", stop_reason=m.StopReason.MAX_STEPS), STEPS]


async def test_where_no_message_is_left_to_tell_it_an_empty_one_does() -> None:
    calls = m.MessageEnded(message_id="m", stop_reason=m.StopReason.TOOL_USE)
    *before, started, closed, end = await all_of(START, calls, RESULT, STEPS)
    assert (before, end) == ([START, calls, RESULT], STEPS)
    assert isinstance(started, m.MessageStarted)
    assert closed == m.MessageEnded(message_id=started.message_id, stop_reason=m.StopReason.MAX_STEPS)


@pytest.mark.parametrize(("message", "turn"), [
    ("end_turn", "end_turn"), ("max_tokens", "end_turn"), ("max_tokens", "max_tokens"), ("refusal", "max_steps"),
])
async def test_what_a_message_says_by_itself_stays(message: str, turn: str) -> None:
    said = m.MessageEnded(message_id="m", stop_reason=m.StopReason(message))
    assert await all_of(START, said, RemoteTurnEnd(stop_reason=m.StopReason(turn))) == [
        START, said, RemoteTurnEnd(stop_reason=m.StopReason(turn))]


async def test_how_a_turn_failed_is_not_how_its_message_ended() -> None:
    failed = RemoteTurnEnd(stop_reason=m.StopReason.ERROR, outcome=m.Outcome.FAILED)
    assert await all_of(START, END, failed) == [START, END, failed]


async def test_a_message_that_was_whole_is_told_whole_before_a_failure_and_before_a_pause() -> None:
    assert reasons(await all_of(START, END)) == [m.StopReason.END_TURN]
    told = list[DecodedItem]()
    with pytest.raises(BackendFailed):
        async for one in filtered(stream([START, END, BackendFailed("cut")]), StopReasonFilter(make_mint("t"))):
            told.append(one)
    assert told == [START, END]


async def test_nothing_but_the_end_of_a_message_waits() -> None:
    """Every other thing is there before the next one is asked for."""
    asked_for: list[Any] = []

    async def watched() -> AsyncGenerator[DecodedItem, None]:
        for one in (START, WORD, END, START, WORD, END):
            asked_for.append(one)
            yield one

    had = list[DecodedItem]()
    async for one in filtered(watched(), StopReasonFilter(make_mint("t"))):
        had.append(one)
        assert len(had) >= len(asked_for) - 1
        if one is WORD:
            assert had == asked_for


@pytest.mark.parametrize("words", ["/max-steps", "/tool clock /max-steps", "hello"])
async def test_a_blade_server_that_ran_out_of_steps(tmp_path: Path, words: str) -> None:
    async with far(tmp_path) as there, near(tmp_path, "blade", where(there, "blade")) as here:
        view = await here.gateway.sessions.create(OWNER, "demo")
        await say(here, view, words)
        [end] = await ended(here, view)
        expected = m.StopReason.END_TURN if words == "hello" else m.StopReason.MAX_STEPS
        assert (end.outcome, end.stop_reason) == (m.Outcome.COMPLETED, expected)
