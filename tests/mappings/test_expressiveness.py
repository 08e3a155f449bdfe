"""What the language must be able to say: the shapes that real dialects have on the wire."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.ports import Framing
from mappings.language import Table, Vocabulary, load_table
from tests.support.frames import BodyEncoder

MakeRecord = Callable[..., m.Record]


def spelled(text: str, path: Path, base: Path, words: Vocabulary, **added: Any) -> Table:
    """The plain table with other envelopes and frames."""
    path.write_text(text)
    return load_table(base, Vocabulary(**{**vars(words), **added}), [path])


def payloads(frames: tuple[bytes, ...]) -> list[Any]:
    return [orjson.loads(frame.split(b"data: ")[-1]) for frame in frames]


def text_delta() -> m.BlockDelta:
    return m.BlockDelta(block_id="b", message_id="msg_1", kind=m.BlockKind.TEXT, delta="lo")


def test_patches_in_an_envelope_of_their_own(
    tmp_path: Path, plain_path: Path, plain_words: Vocabulary, record: MakeRecord,
) -> None:
    table = spelled("""
enums:
  tool_status: { running: pending, awaiting_input: awaiting_answer, "*": done }
envelopes:
  default: { type: $drop, id: $drop, body: $drop, event: $wire, data: $body }
  patch:
    event: turn:patch
    data:
      session_id: $session_id
      sequence: $patch_seq
      turn_id: $message_id
      loop_id: $scope_id
      patch_type: $wire
      data: $body
frames:
  block.delta.text: [ { add_content: { type: text, content: $text_so_far, text_delta: $delta }, envelope: patch } ]
  block.ended.tool_use:
    - add_tool_call:
        { id: $call.call_id, arguments: $call.input | json, server: $call.server, status: $status | tool_status }
      envelope: patch
  session.compacted:
    - turn:start: &compaction { id: $compaction_id, kind: compaction, blocks: [], trigger: $trigger }
    - turn:end: *compaction
  message.started: [ turn:start: $turn ]
  turn.suspended: [ chat:end: { session_id: $session_id, result: null } ]
""", tmp_path / "patches.yaml", plain_path, plain_words, names={
        **plain_words.names, "*": ("patch_seq",), "block.delta": ("index", "text_so_far"), "block.ended": ("status",),
        "message.started": ("turn",)})
    say = BodyEncoder(table, "json").record
    assert payloads(say(record(text_delta()), {"text_so_far": "hello", "patch_seq": 4})) == [
        {"event": "turn:patch", "data": {
            "session_id": "ses_1", "sequence": 4, "turn_id": "msg_1", "loop_id": "root", "patch_type": "add_content",
            "data": {"type": "text", "content": "hello", "text_delta": "lo"}}}]
    call = m.ToolCall(call_id="c", name="n", input={"a": 1})
    ended = m.BlockEnded(block_id="b", message_id="msg_1", kind=m.BlockKind.TOOL_USE, call=call)
    (patch,) = payloads(say(record(ended), {"status": "awaiting_input", "patch_seq": 5}))
    assert patch["data"]["data"] == {"id": "c", "arguments": '{"a":1}', "server": None, "status": "awaiting_answer"}
    entry = {"id": "cmp", "kind": "compaction", "blocks": [], "trigger": "auto"}
    assert payloads(say(record(m.SessionCompacted(compaction_id="cmp", summary="s")))) == [
        {"event": "turn:start", "data": entry}, {"event": "turn:end", "data": entry}]
    assert payloads(say(record(m.MessageStarted(message_id="m")), {"turn": {"id": "t1"}})) == [
        {"event": "turn:start", "data": {"id": "t1"}}]
    assert payloads(say(record(m.TurnSuspended(pending=("r",))))) == [
        {"event": "chat:end", "data": {"session_id": "ses_1", "result": None}}]


def test_flat_events_that_repeat_their_id(
    tmp_path: Path, plain_path: Path, plain_words: Vocabulary, record: MakeRecord,
) -> None:
    table = spelled("""
enums:
  fault: { overloaded: model_overloaded_error, "*": unknown_error }
envelopes:
  default@sse:
    event: $wire
    id: $event_id
    retry: $drop
    data:
      id: $event_id
      type: $wire
      at: $drop
      session_id: $session_id
      session_thread_id: $thread_id | optional
      turn_id: $turn_id | optional
      created_at: $at | iso
  bare: { event: $wire, data: { type: $wire, ...: $body } }
frames:
  message.ended: [ span.end: { span_id: $message_id, usage: { input_tokens: $usage.input_tokens } } ]
  input.accepted.interrupt: [ user.interrupt: {} ]
  fault.raised: [ session.error: { error: { type: $fault.code | fault, message: $fault.message } } ]
  block.ended.text: [ agent.message: { content: [ { type: text, text: $text } ] } ]
  block.delta.text:
    - event_delta: { event_id: $event_id, delta: { type: content_delta, content: { text: $delta } } }
      envelope: bare
""", tmp_path / "flat.yaml", plain_path, plain_words, names={**plain_words.names, "*": ("thread_id",)})
    say = BodyEncoder(table, "sse").record
    head = {"id": "evt_1_7", "session_id": "ses_1", "turn_id": "turn_1", "created_at": "2026-01-01T00:00:00.250Z"}
    (frame,) = say(record(m.MessageEnded(message_id="m", usage=m.Usage(input_tokens=3))))
    assert frame.startswith(b"event: span.end\nid: evt_1_7\ndata: {")
    assert payloads((frame,)) == [{**head, "type": "span.end", "span_id": "m", "usage": {"input_tokens": 3}}]
    fault = m.FaultRaised(fault=m.Fault(code=m.FaultCode.OVERLOADED, message="later"))
    assert payloads(say(record(fault), {"thread_id": "thr_1"})) == [
        {**head, "session_thread_id": "thr_1", "type": "session.error",
         "error": {"type": "model_overloaded_error", "message": "later"}}]
    ended = m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TEXT, text="Hi")
    assert payloads(say(record(ended)))[0]["content"] == [{"type": "text", "text": "Hi"}]
    assert payloads(say(record(text_delta()))) == [
        {"type": "event_delta", "event_id": "evt_1_7", "delta": {"type": "content_delta", "content": {"text": "lo"}}}]
    assert payloads(say(record(m.InputAccepted(command_id="c", command=m.Interrupt())))) == [
        {**head, "type": "user.interrupt"}]


@pytest.mark.parametrize("framing", ["json", "sse"])
def test_frames_within_frames_on_two_transports(
    tmp_path: Path, plain_path: Path, plain_words: Vocabulary, record: MakeRecord, framing: Framing,
) -> None:
    table = spelled("""
envelopes:
  default: { type: event, id: $drop, body: $drop, event: $wire, payload: { type: $wire, data: $body }, seq: $out_seq }
  default@sse: { event: $drop, id: $drop, retry: $drop, data: { at: $drop, ...: $drop, type: $wire, data: $body } }
  top: { type: event, event: $wire, payload: { type: $wire, ...: $body, timestamp: $at | iso }, seq: $out_seq }
  top@sse: { data: { type: $wire, ...: $body, timestamp: $at | iso } }
frames:
  turn.started:
    - session_start: { session_id: $turn_id, conversation_id: $session_id }
    - conversation_start: { conversation_id: $session_id, created_at: $created_at | iso }
  message.started:
    - message_start: { message: { id: $message_id, content: [], stop_reason: null } }
      envelope: top
  block.delta.text: [ content_delta: { index: $index, delta: $delta } ]
  input.requested.question: [ message_delta: { type: confirmation_request, content: $ask | json } ]
""", tmp_path / "nested.yaml", plain_path, plain_words, names={
        **plain_words.names, "*": ("out_seq",), "turn.started": ("created_at",)})
    extra = {"out_seq": 9, "index": 0, "created_at": 0.0}

    def said(event: m.Event) -> list[Any]:
        frames = payloads(BodyEncoder(table, framing).record(record(event), extra))
        if framing == "json":
            assert all(frame["type"] == "event" and frame["seq"] == 9 for frame in frames)
            assert all(frame["event"] == frame["payload"]["type"] for frame in frames)
        return [frame["payload"] if framing == "json" else frame for frame in frames]

    assert said(m.TurnStarted(command_id="c")) == [
        {"type": "session_start", "data": {"session_id": "turn_1", "conversation_id": "ses_1"}},
        {"type": "conversation_start",
         "data": {"conversation_id": "ses_1", "created_at": "1970-01-01T00:00:00.000Z"}}]
    assert said(m.MessageStarted(message_id="m")) == [
        {"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": None},
         "timestamp": "2026-01-01T00:00:00.250Z"}]
    assert said(text_delta()) == [{"type": "content_delta", "data": {"index": 0, "delta": "lo"}}]
    asked = m.InputRequested(request_id="r", ask=m.QuestionAsk(questions=(m.Question(question="Which?"),)))
    (confirm,) = said(asked)
    assert orjson.loads(confirm["data"]["content"]) == {"kind": "question", "questions": [{"question": "Which?"}]}
