"""Agents that hang, babble, and go on when they have ended: the turn fails with the right fault, or goes on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

import gateway.model as m
from gateway.errors import BackendFailed, TimedOut
from tests.support.backends.acp_turns import AGENT, backend, call, played, progress, text
from tests.support.dialects.aap.client import Client as Aap
from tests.support.gateway_server import serving


async def test_an_agent_that_hangs_before_its_first_word(tmp_path: Path) -> None:
    async with backend(tmp_path, "--mute", start_seconds=0.3) as made:
        with pytest.raises(TimedOut, match="did not answer initialize") as caught:
            await played(made, ["say", "hello"])
    assert caught.value.fault.code is m.FaultCode.TIMEOUT


async def test_an_agent_that_hangs_in_the_middle_is_ended_by_the_limit(tmp_path: Path) -> None:
    settings = {"command": sys.executable, "args": ["-I", "-S", str(AGENT)], "cancel_seconds": 0.2}
    async with serving(tmp_path, agents={"demo": {"backend": "acp", "settings": settings}}) as served:
        aap, house = Aap(served), served.gateway.runtime
        session = await aap.session()
        assert (await aap.turn(session, json.dumps([text("I run.")]))).text == "I run."
        house.limits = house.limits.model_copy(update={"turn_seconds": 3})
        heard = await aap.turn(session, json.dumps([text("So far"), ["deaf"]]))
        assert (heard.text, heard.stop) == ("So far", "error")
        ended = (await served.gateway.sessions.get("", session)).ended
        assert ended is not None and ended.fault is not None
        assert (ended.stop_reason, ended.fault.code) == (m.StopReason.TIMEOUT, m.FaultCode.TIMEOUT)
        assert (await aap.turn(session, json.dumps([text("Again.")]))).text == "Again."


@pytest.mark.parametrize("hexed", ["c328", "ff", "e282", "f0288cbc"])
async def test_words_that_are_no_text_are_passed_over_and_told(tmp_path: Path, hexed: str) -> None:
    with structlog.testing.capture_logs() as told:
        async with backend(tmp_path) as made:
            turn = await played(made, ["say", "Good "], ["torn", hexed], ["say", "day."])
    assert turn.text == "Good day."
    assert [line["log_level"] for line in told if line["event"] in ("acp_line_ignored", "acp_message_invalid")]


async def test_what_comes_after_the_end_is_nothing(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        mine: dict[str, Any] = {}
        assert (await played(made, ["late", "More!"], ["say", "All."], metadata=mine)).text == "All."
        await played(made, ["say", "When this session has had its turn, that was heard."], metadata={})
        assert (await played(made, ["say", "Next."], metadata=mine)).text == "Next."


async def test_a_reason_nobody_knows_is_an_end_and_a_line_in_the_journal(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as lines:
        async with backend(tmp_path) as made:
            turn = await played(made, ["say", "All."], ["stop", "moonrise"])
    assert (turn.text, turn.stops) == ("All.", [m.StopReason.END_TURN])
    assert [line["reason"] for line in lines if "unknown" in line["event"]] == ["moonrise"]


async def test_a_call_without_an_input_and_one_whose_input_is_no_object(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, call("a", status="in_progress"), call("b", rawInput="words", status="in_progress"),
                            progress("a", status="completed"), progress("b", status="completed"))
    assert [event.call.input for event in turn.all(m.BlockEnded)] == [{}, {"input": "words"}]


async def test_two_calls_with_one_id_are_two_if_the_first_has_come_back(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, call("a", status="completed", rawInput={"n": 1}, rawOutput="one"),
                            call("a", status="completed", rawInput={"n": 2}, rawOutput="two"))
    assert [event.call.input for event in turn.all(m.BlockEnded)] == [{"n": 1}, {"n": 2}]
    assert len({event.call_id for event in turn.all(m.ToolReturned)}) == 2 and turn.results == ["one", "two"]


async def test_half_a_message_before_the_end(tmp_path: Path) -> None:
    half = '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId"'
    async with backend(tmp_path) as made:
        assert (await played(made, ["raw", half], ["say", "here"])).text == "here"
        with pytest.raises(BackendFailed, match=r"ended unexpectedly \(exit code 3\): out of ink"):
            await played(made, ["raw", half], ["die", 3, "out of ink"])
