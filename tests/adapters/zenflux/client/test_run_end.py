"""How a run ends follows from what was told of it before."""

import pytest

from adapters.zenflux.client.run_decoder import RunEnd
from gateway.model import Fault, FaultCode, Outcome, StopReason


def told(
    stop: StopReason = StopReason.END_TURN, fault: FaultCode | None = None, stopped: StopReason | None = None,
) -> RunEnd:
    ending = RunEnd()
    ending.stop, ending.stopped = stop, stopped
    ending.fault = None if fault is None else Fault(code=fault, message="oh")
    return ending


@pytest.mark.parametrize(("ending", "outcome", "stop", "decided"), [
    (told(), Outcome.COMPLETED, StopReason.END_TURN, False),
    (told(StopReason.MAX_TOKENS), Outcome.COMPLETED, StopReason.MAX_TOKENS, False),
    (told(StopReason.TOOL_USE), Outcome.COMPLETED, StopReason.END_TURN, False),
    (told(StopReason.NEEDS_INPUT), Outcome.COMPLETED, StopReason.END_TURN, False),
    (told(stopped=StopReason.INTERRUPTED), Outcome.INTERRUPTED, StopReason.INTERRUPTED, True),
    (told(stopped=StopReason.MAX_STEPS), Outcome.INTERRUPTED, StopReason.MAX_STEPS, True),
    (told(fault=FaultCode.BACKEND), Outcome.FAILED, StopReason.ERROR, True),
    (told(fault=FaultCode.TIMEOUT), Outcome.FAILED, StopReason.TIMEOUT, True),
    (told(fault=FaultCode.BACKEND, stopped=StopReason.INTERRUPTED), Outcome.FAILED, StopReason.ERROR, True),
])
def test_what_was_told_decides_how_it_ends(ending: RunEnd, outcome: Outcome, stop: StopReason, decided: bool) -> None:
    assert (ending.outcome, ending.stop_of(outcome), ending.decided) == (outcome, stop, decided)


def test_a_status_that_says_otherwise_is_believed() -> None:
    assert told().stop_of(Outcome.FAILED) is StopReason.ERROR
    assert told().stop_of(Outcome.INTERRUPTED) is StopReason.INTERRUPTED
    assert told(StopReason.REFUSAL, fault=FaultCode.BACKEND).stop_of(Outcome.COMPLETED) is StopReason.REFUSAL
