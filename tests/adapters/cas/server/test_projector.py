"""CAS, outward: what each event of the house is on the wire, told as a conversation."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.server import ask_projection, frame_writer, previews, thread_projection
from adapters.cas.server.projector import CUES, NAMES, Projector, make_projector
from adapters.cas.server.stream_options import StreamOptions
from mappings.language.filters import iso
from tests.support.dialect_tables import table
from tests.support.playbook import KID, Playbook, silence

NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


class Cas(Playbook):
    """A playbook that expects events in short: what every event has is added."""

    def __init__(self, **reading: Any) -> None:
        super().__init__(
            make_projector(table("cas"), StreamOptions(agent="demo", agent_id="agent_demo", **reading))
        )

    def __lshift__(self, expected: Any) -> "Cas":
        if expected is silence:
            return super().__lshift__(silence)
        kind, seq, body = expected
        at = iso(1_700_000_000 + self._seq / 8)
        event_id = seq if isinstance(seq, str) else f"evt_1_{seq or self._seq}"
        event_id = f"evt_1_{self._seq}-{event_id}" if event_id.startswith("p") else event_id
        passing = kind.startswith(("event_", "agent.content_block", "agent.message_"))
        times = {} if passing else {"schema_version": "1.0", "created_at": at, "processed_at": at}
        whole = {"id": event_id, "type": kind, "session_id": "sess_1", "turn_id": "turn_1", **times, **body}
        return super().__lshift__({"id": event_id, "event": kind, "data": whole})

    def __rshift__(self, event: Any) -> "Cas":
        return super().__rshift__(event)


def said(kind: str, seq: int | str = 0, **body: Any) -> tuple[str, int | str, dict[str, Any]]:
    """An event, whose id is of the record just fed unless another is named."""
    return kind, seq, body


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def accepted(command: Any) -> m.InputAccepted:
    return m.InputAccepted(command_id="cmd_1", command=command)


def block(kind: m.BlockKind = m.BlockKind.TEXT, block_id: str = "b", **more: Any) -> m.BlockStarted:
    return m.BlockStarted(block_id=block_id, message_id="m", kind=kind, **more)


def delta(words: str, kind: m.BlockKind = m.BlockKind.TEXT, block_id: str = "b") -> m.BlockDelta:
    return m.BlockDelta(block_id=block_id, message_id="m", kind=kind, delta=words)


def ended(kind: m.BlockKind = m.BlockKind.TEXT, block_id: str = "b", **more: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id=block_id, message_id="m", kind=kind, **more)


def call(**more: Any) -> m.ToolCall:
    return m.ToolCall(**{"call_id": "c", "name": "calc", "input": {"x": 1}, **more})


IDLE = said("session.status_idle", status="idle", stop_reason={"type": "end_turn"}, usage=NO_USAGE)
SPAN = said("span.model_request_start", model="demo-1")
STARTED = m.MessageStarted(message_id="m", model="demo-1")
ENDED = m.MessageEnded(message_id="m")


def span_end(seq: int) -> tuple[str, int | str, dict[str, Any]]:
    return said("span.model_request_end", model_request_start_id=f"evt_1_{seq}", is_error=False,
                model_usage=NO_USAGE, usage=NO_USAGE)


def test_a_turn() -> None:
    (Cas()
        >> accepted(m.SendMessage(content="hi")) << said("user.message", content=text("hi"))
        >> m.TurnStarted(command_id="cmd_1") << said("session.status_running", status="running")
        >> STARTED << SPAN
        >> block(m.BlockKind.THINKING) << silence
        >> delta("hm", m.BlockKind.THINKING) << silence
        >> ended(m.BlockKind.THINKING, text="hm") << said("agent.thinking", 4, thinking="hm")
        >> block() << silence
        >> delta("hello") << silence
        >> ended(text="hello") << said("agent.message", 7, content=text("hello"))
        >> ENDED << span_end(3)
        >> m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN) << IDLE)


@pytest.mark.parametrize(("reason", "word"), [
    (m.StopReason.END_TURN, "end_turn"), (m.StopReason.INTERRUPTED, "cancelled"), (m.StopReason.REFUSAL, "refusal"),
    (m.StopReason.MAX_TOKENS, "max_tokens"), (m.StopReason.MAX_STEPS, "max_steps"), (m.StopReason.TIMEOUT, "error"),
    (m.StopReason.ERROR, "error"),
])
def test_why_a_turn_ended(reason: m.StopReason, word: str) -> None:
    usage = m.Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
    told = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    (Cas() >> m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=reason, usage=usage)
        << said("session.status_idle", status="idle", stop_reason={"type": word}, usage=told))


def test_what_says_nothing() -> None:
    play = Cas() >> STARTED << SPAN
    for event in (m.NoticePosted(topic="t", title="x"), m.CustomEvent(topic="t"), accepted(m.Compact()),
                  accepted(m.CustomCommand(name="theirs")), m.SessionUpdated(settings=m.Settings()),
                  block(m.BlockKind.DATA), ended(m.BlockKind.DATA, data=m.DataPart(type="plan")),
                  block(), ended(text=""), block(m.BlockKind.THINKING), ended(m.BlockKind.THINKING, signature="s")):
        play = play >> event << silence


def test_a_picture_is_words() -> None:
    (Cas() >> STARTED << SPAN >> block(m.BlockKind.IMAGE) << silence
        >> ended(m.BlockKind.IMAGE, image=m.ImagePart(url="https://x/y.png"))
        << said("agent.message", 2, content=text("![image](https://x/y.png)")))


def test_a_session_tells_what_is_not_private() -> None:
    (Cas()
        >> m.SessionUpdated(title="Trip") << said("session.updated", title="Trip")
        >> m.SessionUpdated(metadata={"a": "b", m.PRIVATE: {"x": 1}}) << said("session.updated", metadata={"a": "b"})
        >> m.SessionCompacted(compaction_id="c", summary="s") << said("agent.thread_context_compacted")
        >> m.SessionClosed(reason=m.CloseReason.TERMINATED) << said("session.status_terminated", status="terminated")
        >> m.SessionClosed(reason=m.CloseReason.DELETED) << said("session.deleted"))


@pytest.mark.parametrize(("origin", "use", "back"), [
    (m.ToolOrigin.BUILTIN, {"type": "agent.tool_use", "evaluated_permission": "allow"}, "agent.tool_result"),
    (m.ToolOrigin.PROVIDER, {"type": "agent.tool_use", "evaluated_permission": "allow"}, "agent.tool_result"),
    (m.ToolOrigin.MCP, {"type": "agent.mcp_tool_use", "evaluated_permission": "allow", "mcp_server_name": "maps"},
     "agent.mcp_tool_result"),
    (m.ToolOrigin.CLIENT, {"type": "agent.custom_tool_use"}, None),
])
def test_a_call_and_what_it_gave(origin: m.ToolOrigin, use: dict[str, Any], back: str | None) -> None:
    made = call(origin=origin, server="maps" if origin is m.ToolOrigin.MCP else None)
    kind = use.pop("type")
    play = (Cas() >> STARTED << SPAN >> block(m.BlockKind.TOOL_USE, call=made) << silence
        >> ended(m.BlockKind.TOOL_USE, call=made) << said(kind, 2, name="calc", input={"x": 1}, **use)
        >> m.ToolReturned(call_id="c", origin=origin, content="42", is_error=True))
    if back is None:
        play << silence
    else:
        more = {"mcp_tool_use_id": "evt_1_2", "mcp_server_name": "maps"} if origin is m.ToolOrigin.MCP else {}
        play << said(back, tool_use_id="evt_1_2", content=text("42"), is_error=True, **more)


def test_a_torn_call_is_not_told() -> None:
    (Cas() >> STARTED << SPAN >> block(m.BlockKind.TOOL_USE, call=call()) << silence
        >> ended(m.BlockKind.TOOL_USE, call=call(), torn=True) << silence)


def test_a_file_that_a_tool_gave_is_delivered() -> None:
    file = m.FilePart(name="a.pdf", file_id="file_1", media_type="application/pdf", size=7)
    (Cas() >> STARTED << SPAN >> block(m.BlockKind.TOOL_USE, call=call()) << silence
        >> ended(m.BlockKind.TOOL_USE, call=call())
        << said("agent.tool_use", 2, name="calc", input={"x": 1}, evaluated_permission="allow")
        >> m.ToolReturned(call_id="c", content=(m.TextPart(text="here"), file))
        << said("agent.artifact_delivered", "evt_1_4-1", file_id="file_1", original_filename="a.pdf",
                content_type="application/pdf", size=7)
        << said("agent.tool_result", tool_use_id="evt_1_2", is_error=False, content=[
            {"type": "text", "text": "here"},
            {"type": "document", "title": "a.pdf", "source": {"type": "file", "file_id": "file_1"}}]))


def test_a_permission_is_asked_by_the_call_itself() -> None:
    made = call(permission=m.Permission.ASK)
    (Cas() >> STARTED << SPAN >> block(m.BlockKind.TOOL_USE, call=made) << silence
        >> ended(m.BlockKind.TOOL_USE, call=made)
        << said("agent.tool_use", 2, name="calc", input={"x": 1}, evaluated_permission="ask")
        >> m.MessageEnded(message_id="m", usage=m.Usage(input_tokens=5))
        << said("span.model_request_end", model_request_start_id="evt_1_1", is_error=False,
                model_usage=NO_USAGE | {"input_tokens": 5}, usage=NO_USAGE | {"input_tokens": 5})
        >> m.InputRequested(request_id="ask_1", ask=m.PermissionAsk(call=made), call_id="c") << silence
        >> m.TurnSuspended(pending=("ask_1",))
        << said("session.status_idle", status="idle", usage=NO_USAGE | {"input_tokens": 5},
                stop_reason={"type": "requires_action", "event_ids": ["evt_1_2"]})
        >> accepted(m.DecidePermission(request_id="ask_1", granted=False, reason="no"))
        << said("user.tool_confirmation", tool_use_id="evt_1_2", result="deny", deny_message="no")
        >> m.InputResolved(request_id="ask_1", resolution=m.Resolution.DENIED, call_id="c") << silence
        >> m.TurnResumed(settled=("ask_1",)) << said("session.status_running", status="running")
        >> accepted(m.DecidePermission(request_id="ask_1", granted=True)) << silence)


def test_what_is_not_about_a_call_becomes_one() -> None:
    question = m.Question(question="Which?", header="H", options=(m.Choice(label="this"), m.Choice(label="that")))
    asked = {"question": "Which?", "header": "H", "multiSelect": False, "options": [
        {"label": "this", "description": ""}, {"label": "that", "description": ""}]}
    (Cas()
        >> m.InputRequested(request_id="a", ask=m.QuestionAsk(questions=(question,)))
        << said("agent.custom_tool_use", name="AskUserQuestion", input={"questions": [asked]},
                description=m.HOW_TO_ANSWER)
        >> m.InputRequested(request_id="b", ask=m.ContinuationAsk(turn=2, message="on?"))
        << said("agent.tool_use", name="confirm_continue", input={"message": "on?", "turn": 2},
                evaluated_permission="ask")
        >> m.InputRequested(request_id="c", ask=m.RollbackAsk(task_id="t", options=({"id": "x"},), reason="why"))
        << said("agent.custom_tool_use", name="choose_rollback",
                input={"task_id": "t", "options": [{"id": "x"}], "reason": "why"})
        >> m.TurnSuspended(pending=("a", "b", "c"))
        << said("session.status_idle", status="idle", usage=NO_USAGE, stop_reason={
            "type": "requires_action", "event_ids": ["evt_1_1", "evt_1_2", "evt_1_3"]})
        >> accepted(m.AnswerQuestion(request_id="a", selections={"0": (1,)}))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=text("that"), is_error=False)
        >> accepted(m.AnswerQuestion(request_id="a", custom={"0": "that"}, said=' ["that"]'))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=text(' ["that"]'), is_error=False)
        >> accepted(m.ContinueTurn(request_id="b", proceed=False))
        << said("user.tool_confirmation", tool_use_id="evt_1_2", result="deny")
        >> m.InputResolved(request_id="b", resolution=m.Resolution.ANSWERED)
        << said("agent.tool_result", tool_use_id="evt_1_2", content=text("answered"), is_error=False)
        >> accepted(m.RollBack(request_id="c", option="x"))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_3", content=text("x"), is_error=False)
        >> accepted(m.Withdraw(request_id="a")) << silence)


def test_other_words_of_people() -> None:
    outcome = m.CustomCommand(name="define_outcome", payload={"description": "d", "extra": [1]})
    named = m.CustomCommand(name="define_outcome", payload={"outcome_id": "outc_mine"})
    (Cas()
        >> accepted(outcome) << said("user.define_outcome", outcome_id="outc_1_1", description="d", extra=[1])
        >> accepted(named) << said("user.define_outcome", outcome_id="outc_mine")
        >> accepted(m.SendMessage(content=(m.ImagePart(url="data:x"),)))
        << said("user.message", content=[{"type": "image", "source": {"type": "url", "url": "data:x"}}])
        >> accepted(m.ReturnResult(request_id="nobody's")) << silence)


def test_a_fault_is_told() -> None:
    (Cas() >> m.FaultRaised(fault=m.Fault(code=m.FaultCode.OVERLOADED, message="later"))
        << said("session.error", error={
            "type": "model_overloaded_error", "message": "later", "retry_status": {"type": "exhausted"}}))


THREAD = {"session_thread_id": "sthr_kid"}
FORK = [
    (KID, m.ScopeOpened(parent=m.ROOT, title="Helper", agent="demo")),
    (KID, m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)),
    m.ScopeMessage(sender=m.ROOT, recipient=KID, content="go"),
    (KID, STARTED), (KID, block()), (KID, ended(text="done")), (KID, ENDED),
    (KID, m.ScopeMessage(sender=KID, recipient=m.ROOT, content="done", is_error=True)),
    (KID, m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT)),
    (KID, m.ScopeStatusChanged(status=m.ScopeStatus.IDLE, stop_reason=m.StopReason.END_TURN)),
    (KID, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.INTERRUPTED)),
]
CREATED = said("session.thread_created", parent_thread_id="sthr_1", agent_id="agent_demo", agent_version=1,
               agent_name="Helper", role="child", created_by_tool_use_id=None, **THREAD)
SENT = said("agent.thread_message_sent", direction="coordinator_to_child", content=text("go"), to_agent_name="Helper",
            from_session_thread_id="sthr_1", to_session_thread_id="sthr_kid", session_thread_id="sthr_1")
RECEIVED = said("agent.thread_message_received", direction="child_to_parent", content=text("done"), is_error=True,
                from_session_thread_id="sthr_kid", to_session_thread_id="sthr_1", from_agent_name="Helper",
                session_thread_id="sthr_1")


def status(kind: str, word: str, event_id: str = "", /, **more: Any) -> Any:
    return said(f"session.thread_status_{kind}", event_id or 0, agent_name="Helper", status=word, **more, **THREAD)


def test_a_sub_agent_is_a_thread_whose_words_the_session_leaves_out() -> None:
    play = Cas()
    blocked = status("idle", "blocked", "evt_1_10-1", stop_reason={"type": "requires_action", "event_ids": []})
    for event, *heard in zip(FORK, [
        CREATED, status("running", "running"), SENT, silence, silence, silence, silence, RECEIVED, silence, blocked,
        status("terminated", "terminated", stop_reason={"type": "cancelled"}),
    ], strict=True):
        play = play >> event
        for one in [*heard, *([status("idle", "idle", stop_reason={"type": "end_turn"})] if blocked in heard else [])]:
            play = play << one


@pytest.mark.parametrize("thread", [None, KID])
def test_that_a_sub_agent_waits_is_told_with_what_it_waits_for(thread: str | None) -> None:
    """It says so before it asks; the two of them and the session wait for the same."""
    play = Cas(thread=thread) >> FORK[0] << CREATED
    play = (
        play
        >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT))
        << silence
    )
    for name in ("a", "b"):
        play = play >> (KID, m.InputRequested(request_id=name, ask=m.RollbackAsk(task_id=name, options=()))) << said(
            "agent.custom_tool_use", name="choose_rollback", input={"task_id": name, "options": []}, **THREAD)
    waits = {"type": "requires_action", "event_ids": ["evt_1_3", "evt_1_4"]}
    play = play >> m.TurnSuspended(pending=("a", "b")) << status("idle", "blocked", "evt_1_5-1", stop_reason=waits)
    if thread is None:
        play = play << said("session.status_idle", status="idle", usage=NO_USAGE, stop_reason=waits)
    play >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)) << status("running", "running")


def test_a_thread_has_its_own_words_and_its_mail() -> None:
    play = Cas(thread=KID)
    for event, heard in zip(FORK[:8], [
        CREATED, status("running", "running"), SENT, said("span.model_request_start", model="demo-1", **THREAD),
        silence, said("agent.message", 5, content=text("done"), **THREAD),
        said("span.model_request_end", model_request_start_id="evt_1_4", is_error=False, model_usage=NO_USAGE,
             usage=NO_USAGE, **THREAD), RECEIVED,
    ], strict=True):
        play = play >> event << heard
    play >> m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN) << silence


def test_an_archived_thread_needs_no_turn() -> None:
    (Cas() >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED))
        << said("session.thread_status_terminated", status="archived", stop_reason={"type": "archive"}, **THREAD))


def test_a_sub_agent_of_another_kind_has_another_id() -> None:
    (Cas() >> (KID, m.ScopeOpened(parent=m.ROOT, agent="scout"))
        << said("session.thread_created", parent_thread_id="sthr_1", agent_id="agent_scout", agent_version=1,
                agent_name="scout", role="child", created_by_tool_use_id=None, **THREAD))


def test_every_room_of_the_projector_names_its_own_cues_once() -> None:
    rooms = [ask_projection.ASK_CUES, thread_projection.THREAD_CUES, previews.PREVIEW_CUES]
    assert sum(map(len, rooms)) == len({cue for room in rooms for cue in room})
    assert {cue for room in rooms for cue in room} < set(CUES)
    assert {*ask_projection.ASK_NAMES, *thread_projection.THREAD_NAMES} < set(NAMES)
    projector = make_projector(table("cas"), StreamOptions())
    assert isinstance(projector, Projector)
    assert isinstance(projector.writer, frame_writer.FrameWriter)


def test_a_result_is_kept_as_blocks_of_text() -> None:
    call = m.ToolCall(call_id="c", name="mine", origin=m.ToolOrigin.CLIENT)
    given = (m.TextPart(text="see"), m.ImagePart(url="https://x/a.png"), m.FilePart(name="f", file_id="file_1"))
    texts = [{"type": "text", "text": words} for words in ("see", "![image](https://x/a.png)", "[f](file_1)")]
    play = Cas() >> m.InputRequested(request_id="a", ask=m.ClientToolAsk(call=call), call_id="c")
    (play >> accepted(m.ReturnResult(request_id="a", content=given))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=texts, is_error=False))
