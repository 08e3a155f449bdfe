"""Events as the table reads them: absent values are nothing, impossible ones are a failure in clear words."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.decoder import HANDLERS, MALFORMED, Decoder, frame_decoder, listed_event, read_event
from adapters.cas.client.readers import CAS, PREVIEWS, ReceivedEvent, read_fault, read_parts, simplified_content
from gateway.client import read_names, read_usage
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports.remote import ParsedFrame
from tests.support.dialects.cas.reader import PASSING as NEVER_KEPT


def told(type: str, **body: Any) -> ReceivedEvent:
    return listed_event({"type": type, "id": "e1", **body})


# -- which event it is ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("frame", "cue", "id"), [
    (ParsedFrame("agent.message", {"type": "agent.thinking", "id": "e1"}, "e2"), "said.thinking", "e1"),
    (ParsedFrame("agent.message", {}, "e2"), "said.text", "e2"),
    (ParsedFrame("agent.message", {"type": 5, "id": 5}, "e2"), "said.text", "e2"),
    (ParsedFrame("agent.message", {"id": ""}), "said.text", ""),
    (ParsedFrame("agent.message", {"schema_version": "2.5"}, "e2"), "said.text", "e2"),
    (ParsedFrame("message", {"type": "agent.sings", "id": "e1"}, "e2"), "", "e2"),
    (ParsedFrame("a", [1], "e2"), "", "e2"),
])
def test_what_an_event_says_of_itself_goes_before(frame: ParsedFrame, cue: str, id: str) -> None:
    event = read_event(frame)
    assert (event.cue, event.id) == (cue, id)


@pytest.mark.parametrize(("body", "cue"), [
    ({"type": "session.status_idle"}, "turn.ended"),
    ({"type": "session.status_idle", "status": "sleeping", "stop_reason": {"type": "bored"}}, "turn.ended"),
    ({"type": "session.status_idle", "stop_reason": {"type": "requires_action"}}, "turn.suspended"),
    ({"type": "session.status_running", "status": "busy"}, "turn.started"),
    ({"type": "session.updated", "title": "t"}, "session.updated"),
    ({"type": "session.updated", "title": "t", "archived_at": "2026-01-01T00:00:00Z"}, "session.closed.archived"),
    ({"type": "session.thread_status_idle", "status": "idle"}, "scope.status.idle"),
    ({"type": "session.thread_status_idle", "stop_reason": {"type": "requires_action"}}, "scope.status.blocked"),
    ({"type": "session.thread_status_terminated"}, "scope.status.ended"),
    ({"type": "session.thread_status_terminated", "status": "archived"}, "scope.status.archived"),
    ({"type": "session.error", "error": {"retry_status": "retrying"}}, "fault.retried"),
    ({"type": "agent.content_block_start", "content_block": {"type": "server_tool_use"}}, "raw.start.tool_use"),
    ({"type": "agent.content_block_start"}, "raw.start.tool_use"),
    ({"type": "agent.content_block_delta", "delta": {"type": "citations_delta"}}, ""),
    ({"type": "agent.content_block_delta"}, ""),
])
def test_what_tells_events_of_one_type_apart(body: dict[str, Any], cue: str) -> None:
    assert listed_event(body).cue == cue


def test_a_preview_names_its_event() -> None:
    for body in ({"type": "event_start", "event": {"id": "e1"}}, {"type": "event_delta", "event_id": "e1"}):
        assert listed_event(body).given["final_id"] == "e1"
    for other in ({}, {"event": {}}, {"event": [1]}, {"event": {"id": 5}}):
        assert listed_event({"type": "event_start", **other}).given["final_id"] is None


def test_what_passes_is_not_kept() -> None:
    events = [listed_event({"type": type}) for type in NEVER_KEPT]
    assert all(event.is_preview or not event.cue for event in events)
    passing = {cue for cue, frames in CAS.table._draft.frames.items()
               if any(frame.envelope == "passing" for frame in frames)}
    assert passing == {cue for cue in CAS.table._draft.frames if cue.startswith(PREVIEWS)}
    unread = {"raw.message_stop", "raw.delta.tool_use"}
    assert HANDLERS.keys() & passing == passing - unread, "the span and the event of the call say the same"
    assert told("event_delta").is_preview and not told("agent.message").is_preview


def test_every_event_that_is_read_is_known_to_the_table() -> None:
    known = CAS.table._draft.frames
    assert HANDLERS.keys() - {MALFORMED} <= known.keys()
    forms = CAS.table._spellings.forms(("json",)).values()
    spellings = [one for rows in forms for spellings in rows.values() for one in spellings]
    for cue, names in read_names(HANDLERS).items():
        bound = [{one.name for one in spelling.readers} for spelling in spellings if spelling.cue == cue]
        optional = {name for name, one in signature(HANDLERS[cue]).parameters.items() if one.default is None}
        assert cue == MALFORMED or (bound and all({*names} - optional <= each for each in bound)), cue
    assert frame_decoder().find("agent.message", {}) is not None


# -- values -----------------------------------------------------------------------------------------------------------

def test_what_is_not_there_is_nothing() -> None:
    message, thought = told("agent.message"), told("agent.thinking", thinking=None)
    call = told("agent.tool_use", name="t")
    assert (message.given["content"], message.thread_id, thought.given["text"]) == (None, "", None)
    assert call.given["call"] == {"name": "t", "input": None, "permission": None}
    assert read_parts(message.given["content"]) == ()
    assert simplified_content(read_parts(told("agent.message", content="").given["content"])) == ""


@pytest.mark.parametrize(("type", "body", "words"), [
    ("agent.thinking", {"thinking": 1}, "'thinking' should be a text"),
    ("agent.tool_use", {"name": "t", "input": "s"}, "'input' should be an object"),
    ("agent.tool_use", {"name": ""}, "'name' should be a text that is not empty"),
    ("agent.message", {"content": {}}, "'content' should be a text or a list of blocks"),
    ("agent.message", {"content": [1]}, "'content' should be a text or a list of blocks"),
    ("agent.message", {"content": "x", "session_thread_id": 5}, "'session_thread_id' should be a text"),
    ("session.updated", {"metadata": "x"}, "'metadata' should be an object"),
    ("agent.tool_result", {"tool_use_id": 5}, "'tool_use_id' should be a text"),
])
def test_what_cannot_be_is_a_failure(type: str, body: Mapping[str, Any], words: str) -> None:
    event = told(type, **body)
    assert event.cue == MALFORMED
    with pytest.raises(BackendFailed, match=rf"'{type}' in a shape that cannot be: {words}"):
        Decoder(make_mint("t")).take(event)


def test_what_cannot_be_is_no_failure_after_the_end() -> None:
    decoder = Decoder(make_mint("t"))
    said = [decoder.take(one) for one in (told("session.status_idle"), told("agent.thinking", thinking=1))]
    assert decoder.over and said[1] == []


def test_blocks_are_parts() -> None:
    parts = read_parts(told("agent.message", content=[
        {"type": "text", "text": "a"}, {"type": "text"}, {"type": "video"}, {"type": "image", "source": "x"},
        {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.test/b.png", "media_type": "image/png"}},
        {"type": "image", "source": {"url": "https://example.test/c.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A A=\n="}},
        {"type": "image", "source": {"type": "base64", "data": "AA=="}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "title": "a.txt", "source": {"type": "file", "file_id": "file_2"}},
        {"type": "document", "title": "b.txt",
         "source": {"type": "base64", "media_type": "text/plain", "data": "AA=="}},
        {"type": "document", "source": {"type": "url", "url": "https://example.test/d.pdf"}},
        {"type": "document", "title": "nowhere", "source": {"type": "hologram"}},
        {"type": "document", "source": {"type": "text", "data": "words"}},
    ]).given["content"])
    assert parts == (
        m.TextPart(text="a"),
        m.ImagePart(url="https://example.test/a.png"),
        m.ImagePart(url="https://example.test/b.png", media_type="image/png"),
        m.ImagePart(url="https://example.test/c.png"),
        m.ImagePart(url="data:image/png;base64,AA==", media_type="image/png"),
        m.FilePart(name="file_1", file_id="file_1"),
        m.FilePart(name="a.txt", file_id="file_2"),
        m.FilePart(name="b.txt", url="data:text/plain;base64,AA==", media_type="text/plain"),
        m.FilePart(name="document", url="https://example.test/d.pdf"),
        m.TextPart(text="words"),
    )
    assert simplified_content(parts) is parts
    assert simplified_content(parts[1:2]) == parts[1:2]
    assert (simplified_content(()), simplified_content(parts[:1])) == ("", "a")


@pytest.mark.parametrize("name", ["usage", "model_usage"])
def test_usage_is_counted(name: str) -> None:
    body = {"input_tokens": 5, "output_tokens": -1, "cache_read_input_tokens": "x", "cache_creation_input_tokens": True}
    assert read_usage(told("span.model_request_end", **{name: body}).given["usage"]) == m.Usage(input_tokens=5)
    assert read_usage(told("span.model_request_end").given["usage"]) == m.Usage()
    total, known = m.Usage(input_tokens=5, output_tokens=1), m.Usage(input_tokens=2, output_tokens=3)
    assert total.beyond(known) == m.Usage(input_tokens=3)


@pytest.mark.parametrize(("error", "code", "retryable", "again"), [
    ({"type": "model_overloaded_error"}, m.FaultCode.OVERLOADED, True, False),
    ({"type": "model_rate_limited_error"}, m.FaultCode.RATE_LIMITED, True, False),
    ({"type": "model_request_failed_error"}, m.FaultCode.BACKEND, False, False),
    ({"type": "a_new_error"}, m.FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "exhausted"}}, m.FaultCode.BACKEND, False, False),
    ({"type": "unknown_error", "retry_status": {"type": "retrying"}}, m.FaultCode.BACKEND, True, True),
    ({"type": "unknown_error", "retry_status": "retrying"}, m.FaultCode.BACKEND, True, True),
    ({}, m.FaultCode.BACKEND, False, False),
])
def test_errors_are_faults(error: dict[str, Any], code: m.FaultCode, retryable: bool, again: bool) -> None:
    event = told("session.error", error={"message": "It broke.", **error})
    fault = read_fault(event.given["fault"], is_retried=again)
    assert (fault.code, fault.message, fault.retryable) == (code, "It broke.", retryable)
    assert event.cue == ("fault.retried" if again else "fault.raised")
    assert read_fault(told("session.error").given["fault"]).message


@pytest.mark.parametrize(("word", "meant"), [
    ("cancelled", m.StopReason.INTERRUPTED), ("end_turn", m.StopReason.END_TURN), ("error", m.StopReason.ERROR),
    ("max_tokens", m.StopReason.MAX_TOKENS), ("max_steps", m.StopReason.MAX_STEPS), ("refusal", m.StopReason.REFUSAL),
    ("retries_exhausted", m.StopReason.ERROR), ("timeout", m.StopReason.TIMEOUT), ("bored", m.StopReason.END_TURN),
    (None, m.StopReason.END_TURN),
])
def test_why_a_turn_has_ended(word: str | None, meant: m.StopReason) -> None:
    [*_, ended] = Decoder(make_mint("t")).take(told("session.status_idle", stop_reason={"type": word}))
    assert ended.stop_reason is meant


def test_words_of_the_table_are_members() -> None:
    for permission in m.Permission:
        call = told("agent.tool_use", name="t", evaluated_permission=str(permission)).given["call"]
        assert call["permission"] is permission
    stop = told("agent.message_delta", delta={"stop_reason": "tool_use"})
    assert stop.given["stop_reason"] is m.StopReason.TOOL_USE
    assert told("session.thread_status_terminated", status="terminated").given["status"] is m.ScopeStatus.ENDED
