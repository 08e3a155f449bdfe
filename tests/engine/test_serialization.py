"""Nothing gets into the log that could not be written there, or not be read again; and a fault is always told."""

import pytest

import gateway.model as m
from gateway.engine.event_sink import check_scope_id, ensure_serializable, ensure_serializable_fault, is_valid_text
from tests.support.engine.single_turn import deep


def test_what_can_be_written_is_given_back_as_the_log_will_have_it() -> None:
    said = m.CustomEvent(topic="t", payload={"pair": (1, 2), "name": "äöü 🎈"})
    assert ensure_serializable(said) == m.CustomEvent(topic="t", payload={"pair": [1, 2], "name": "äöü 🎈"})
    assert ensure_serializable(m.CustomEvent(topic="t", payload=deep(100))) == m.CustomEvent(
        topic="t", payload=deep(100)
    )


@pytest.mark.parametrize("said", [
    m.NoticePosted(topic="t", title="\udfff"),
    m.NoticePosted(topic=b"t", title="x"),  # type: ignore[arg-type]
    m.CustomEvent(topic="t", payload={"one": object()}),
    m.CustomEvent(topic="t", payload={"big": 2**70}),
    m.CustomEvent(topic="t", payload=deep(200)),
    m.CustomEvent(topic="t", payload=deep(5000)),
    m.ToolReturned(call_id=7),  # type: ignore[arg-type]
])
def test_what_cannot_be_is_a_broken_law(said: m.Event) -> None:
    with pytest.raises(m.GrammarError, match=r"cannot be written|exceeds a limit"):
        ensure_serializable(said)


def test_a_fault_is_told_as_far_as_it_can_be() -> None:
    fine = m.Fault(code=m.FaultCode.BACKEND, message="gone", details={"status": 502})
    assert ensure_serializable_fault(fine) == fine
    odd = m.Fault(code=m.FaultCode.TIMEOUT, message="late \udfff", retryable=True, details={"deep": deep(300)})
    assert ensure_serializable_fault(odd) == m.Fault(code=m.FaultCode.TIMEOUT, message="late ?", retryable=True)


def test_text_is_what_every_wire_can_carry() -> None:
    assert is_valid_text("abc")
    assert is_valid_text("äöü 🎈")
    assert not any(map(is_valid_text, ("\ud83d", b"abc", 7, None)))
    assert check_scope_id("scope_1") == "scope_1"
    with pytest.raises(m.GrammarError, match="id of a scope"):
        check_scope_id("\ud83d")
