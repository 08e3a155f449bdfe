"""The fields of an event: absent ones are nothing, impossible ones are a failure in clear words."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.readers import (
    ReceivedEvent,
    meanings,
    read_fault,
    read_usage,
    reversed_words,
    simplified_content,
    usage_difference,
)
from gateway.errors import BackendFailed
from tests.support.dialect_tables import table


def told(**body: Any) -> ReceivedEvent:
    return ReceivedEvent("agent.message", "e1", body)


def test_what_is_not_there_is_nothing() -> None:
    assert (told().text("x"), told(x=None).text("x"), told().object("x"), told().content()) == ("", "", {}, ())
    assert told(content="").content() == ()


@pytest.mark.parametrize("read", [
    lambda: told(x=1).text("x"), lambda: told(x="s").object("x"), lambda: told(content={}).content(),
    lambda: told(content=[1]).content(),
])
def test_what_cannot_be_is_a_failure(read: Any) -> None:
    with pytest.raises(BackendFailed, match=r"'agent\.message' in a shape that cannot be"):
        read()


def test_blocks_are_parts() -> None:
    parts = told(content=[
        {"type": "text", "text": "a"}, {"type": "text"}, {"type": "video"}, {"type": "image", "source": "x"},
        {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A A=\n="}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "title": "a.txt", "source": {"type": "file", "file_id": "file_2"}},
        {"type": "document", "source": {"type": "text", "data": "words"}},
    ]).content()
    assert parts == (
        m.TextPart(text="a"),
        m.ImagePart(url="https://example.test/a.png"),
        m.ImagePart(url="data:image/png;base64,AA==", media_type="image/png"),
        m.FilePart(name="file_1", file_id="file_1"),
        m.FilePart(name="a.txt", file_id="file_2"),
        m.TextPart(text="words"),
    )
    assert simplified_content(parts) is parts
    assert simplified_content(parts[1:2]) == parts[1:2]
    assert (simplified_content(()), simplified_content(parts[:1])) == ("", "a")


def test_usage_is_counted() -> None:
    body = {"input_tokens": 5, "output_tokens": -1, "cache_read_input_tokens": "x", "cache_creation_input_tokens": True}
    assert read_usage(body) == m.Usage(input_tokens=5)
    total, told = m.Usage(input_tokens=5, output_tokens=1), m.Usage(input_tokens=2, output_tokens=3)
    assert usage_difference(total, told) == m.Usage(input_tokens=3)


@pytest.mark.parametrize(("error", "code", "retryable", "again"), [
    ({"type": "model_overloaded_error"}, m.FaultCode.OVERLOADED, True, False),
    ({"type": "model_rate_limited_error"}, m.FaultCode.RATE_LIMITED, True, False),
    ({"type": "model_request_failed_error"}, m.FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "exhausted"}}, m.FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "retrying"}}, m.FaultCode.BACKEND, True, True),
    ({}, m.FaultCode.BACKEND, False, False),
])
def test_errors_are_faults(error: dict[str, Any], code: m.FaultCode, retryable: bool, again: bool) -> None:
    fault, tried = read_fault(ReceivedEvent("session.error", "e1", {"error": {"message": "It broke.", **error}}))
    assert (fault.code, fault.message, fault.retryable, tried) == (code, "It broke.", retryable, again)
    assert read_fault(ReceivedEvent("session.error", "e1", {}))[0].message


def test_the_table_is_read_from_right_to_left() -> None:
    known = meanings()
    assert known.permissions == {str(one): one for one in m.Permission}
    assert known.stops == {
        "cancelled": m.StopReason.INTERRUPTED, "end_turn": m.StopReason.END_TURN, "error": m.StopReason.ERROR,
        "max_tokens": m.StopReason.MAX_TOKENS, "max_steps": m.StopReason.MAX_STEPS, "refusal": m.StopReason.REFUSAL,
    }
    assert known.message_stops["tool_use"] is m.StopReason.TOOL_USE
    assert known.scopes["terminated"] is m.ScopeStatus.ENDED
    assert "unknown_error" not in known.faults, "it stands for many"
    assert reversed_words(table("cas"), "fault@refusal", m.FaultCode)["not_found_error"] is m.FaultCode.NOT_FOUND
