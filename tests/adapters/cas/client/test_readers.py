"""The fields of an event: absent ones are nothing, impossible ones are a failure in clear words."""

from typing import Any

import pytest

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
from gateway.model import (
    FaultCode,
    FilePart,
    ImagePart,
    Permission,
    ScopeStatus,
    StopReason,
    TextPart,
    Usage,
)
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
        TextPart(text="a"), ImagePart(url="https://example.test/a.png"),
        ImagePart(url="data:image/png;base64,AA==", media_type="image/png"),
        FilePart(name="file_1", file_id="file_1"), FilePart(name="a.txt", file_id="file_2"), TextPart(text="words"),
    )
    assert simplified_content(parts) is parts
    assert simplified_content(parts[1:2]) == parts[1:2]
    assert (simplified_content(()), simplified_content(parts[:1])) == ("", "a")


def test_usage_is_counted() -> None:
    body = {"input_tokens": 5, "output_tokens": -1, "cache_read_input_tokens": "x", "cache_creation_input_tokens": True}
    assert read_usage(body) == Usage(input_tokens=5)
    total, told = Usage(input_tokens=5, output_tokens=1), Usage(input_tokens=2, output_tokens=3)
    assert usage_difference(total, told) == Usage(input_tokens=3)


@pytest.mark.parametrize(("error", "code", "retryable", "again"), [
    ({"type": "model_overloaded_error"}, FaultCode.OVERLOADED, True, False),
    ({"type": "model_rate_limited_error"}, FaultCode.RATE_LIMITED, True, False),
    ({"type": "model_request_failed_error"}, FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "exhausted"}}, FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "retrying"}}, FaultCode.BACKEND, True, True),
    ({}, FaultCode.BACKEND, False, False),
])
def test_errors_are_faults(error: dict[str, Any], code: FaultCode, retryable: bool, again: bool) -> None:
    fault, tried = read_fault(ReceivedEvent("session.error", "e1", {"error": {"message": "It broke.", **error}}))
    assert (fault.code, fault.message, fault.retryable, tried) == (code, "It broke.", retryable, again)
    assert read_fault(ReceivedEvent("session.error", "e1", {}))[0].message


def test_the_table_is_read_from_right_to_left() -> None:
    known = meanings()
    assert known.permissions == {str(one): one for one in Permission}
    assert known.stops == {
        "cancelled": StopReason.INTERRUPTED, "end_turn": StopReason.END_TURN, "error": StopReason.ERROR,
        "max_tokens": StopReason.MAX_TOKENS, "max_steps": StopReason.MAX_STEPS, "refusal": StopReason.REFUSAL,
    }
    assert known.message_stops["tool_use"] is StopReason.TOOL_USE
    assert known.scopes["terminated"] is ScopeStatus.ENDED
    assert "unknown_error" not in known.faults, "it stands for many"
    assert reversed_words(table("cas"), "fault@refusal", FaultCode)["not_found_error"] is FaultCode.NOT_FOUND
