"""How a run ends follows from what was told of it before."""

import pytest

import gateway.model as m
from adapters.zenflux.client.run_decoder import RunEnd


def told(
    stop: m.StopReason = m.StopReason.END_TURN, fault: m.FaultCode | None = None, stopped: m.StopReason | None = None,
) -> RunEnd:
    ending = RunEnd()
    ending.stop, ending.stopped = stop, stopped
    ending.fault = None if fault is None else m.Fault(code=fault, message="oh")
    return ending


@pytest.mark.parametrize(("ending", "outcome", "stop", "decided"), [
    (told(), m.Outcome.COMPLETED, m.StopReason.END_TURN, False),
    (told(m.StopReason.MAX_TOKENS), m.Outcome.COMPLETED, m.StopReason.MAX_TOKENS, False),
    (told(m.StopReason.TOOL_USE), m.Outcome.COMPLETED, m.StopReason.END_TURN, False),
    (told(m.StopReason.NEEDS_INPUT), m.Outcome.COMPLETED, m.StopReason.END_TURN, False),
    (told(stopped=m.StopReason.INTERRUPTED), m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED, True),
    (told(stopped=m.StopReason.MAX_STEPS), m.Outcome.INTERRUPTED, m.StopReason.MAX_STEPS, True),
    (told(fault=m.FaultCode.BACKEND), m.Outcome.FAILED, m.StopReason.ERROR, True),
    (told(fault=m.FaultCode.TIMEOUT), m.Outcome.FAILED, m.StopReason.TIMEOUT, True),
    (told(fault=m.FaultCode.BACKEND, stopped=m.StopReason.INTERRUPTED), m.Outcome.FAILED, m.StopReason.ERROR, True),
])
def test_what_was_told_decides_how_it_ends(
    ending: RunEnd, outcome: m.Outcome, stop: m.StopReason, decided: bool
) -> None:
    assert (ending.outcome, ending.stop_of(outcome), ending.decided) == (outcome, stop, decided)


def test_a_status_that_says_otherwise_is_believed() -> None:
    assert told().stop_of(m.Outcome.FAILED) is m.StopReason.ERROR
    assert told().stop_of(m.Outcome.INTERRUPTED) is m.StopReason.INTERRUPTED
    assert told(m.StopReason.REFUSAL, fault=m.FaultCode.BACKEND).stop_of(m.Outcome.COMPLETED) is m.StopReason.REFUSAL
