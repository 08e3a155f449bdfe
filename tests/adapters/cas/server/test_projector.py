"""CAS, outward: what each event of the house is on the wire, told as a conversation."""

from typing import Any

import pytest

from adapters.cas.server import ask_projection, frame_writer, previews, thread_projection
from adapters.cas.server.projector import CUES, NAMES, make_projector
from adapters.cas.server.stream_options import StreamOptions
from gateway.model import (
    HOW_TO_ANSWER,
    PRIVATE,
    ROOT,
    AnswerQuestion,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Choice,
    ClientToolAsk,
    CloseReason,
    Compact,
    ContinuationAsk,
    ContinueTurn,
    CustomCommand,
    CustomEvent,
    DataPart,
    DecidePermission,
    Fault,
    FaultCode,
    FaultRaised,
    FilePart,
    ImagePart,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageEnded,
    MessageStarted,
    NoticePosted,
    Outcome,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    Resolution,
    ReturnResult,
    RollBack,
    RollbackAsk,
    ScopeMessage,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    SendMessage,
    SessionClosed,
    SessionCompacted,
    SessionUpdated,
    Settings,
    StopReason,
    TextPart,
    ToolCall,
    ToolOrigin,
    ToolReturned,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Usage,
    Withdraw,
)
from mappings.language.filters import iso
from tests.support.dialect_tables import table
from tests.support.playbook import KID, Playbook, silence

NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


class Cas(Playbook):
    """A playbook that expects events in short: what every event has is added."""

    def __init__(self, **reading: Any) -> None:
        super().__init__(
            make_projector(table("cas"), StreamOptions(agent="demo", agent_id="agent_demo", **reading).word)
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


def accepted(command: Any) -> InputAccepted:
    return InputAccepted(command_id="cmd_1", command=command)


def block(kind: BlockKind = BlockKind.TEXT, block_id: str = "b", **more: Any) -> BlockStarted:
    return BlockStarted(block_id=block_id, message_id="m", kind=kind, **more)


def delta(words: str, kind: BlockKind = BlockKind.TEXT, block_id: str = "b") -> BlockDelta:
    return BlockDelta(block_id=block_id, message_id="m", kind=kind, delta=words)


def ended(kind: BlockKind = BlockKind.TEXT, block_id: str = "b", **more: Any) -> BlockEnded:
    return BlockEnded(block_id=block_id, message_id="m", kind=kind, **more)


def call(**more: Any) -> ToolCall:
    return ToolCall(**{"call_id": "c", "name": "calc", "input": {"x": 1}, **more})


IDLE = said("session.status_idle", status="idle", stop_reason={"type": "end_turn"}, usage=NO_USAGE)
SPAN = said("span.model_request_start", model="demo-1")
STARTED = MessageStarted(message_id="m", model="demo-1")
ENDED = MessageEnded(message_id="m")


def span_end(seq: int) -> tuple[str, int | str, dict[str, Any]]:
    return said("span.model_request_end", model_request_start_id=f"evt_1_{seq}", is_error=False,
                model_usage=NO_USAGE, usage=NO_USAGE)


def test_a_turn() -> None:
    (Cas()
        >> accepted(SendMessage(content="hi")) << said("user.message", content=text("hi"))
        >> TurnStarted(command_id="cmd_1") << said("session.status_running", status="running")
        >> STARTED << SPAN
        >> block(BlockKind.THINKING) << silence
        >> delta("hm", BlockKind.THINKING) << silence
        >> ended(BlockKind.THINKING, text="hm") << said("agent.thinking", 4, thinking="hm")
        >> block() << silence
        >> delta("hello") << silence
        >> ended(text="hello") << said("agent.message", 7, content=text("hello"))
        >> ENDED << span_end(3)
        >> TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN) << IDLE)


@pytest.mark.parametrize(("reason", "word"), [
    (StopReason.END_TURN, "end_turn"), (StopReason.INTERRUPTED, "cancelled"), (StopReason.REFUSAL, "refusal"),
    (StopReason.MAX_TOKENS, "max_tokens"), (StopReason.MAX_STEPS, "max_steps"), (StopReason.TIMEOUT, "error"),
    (StopReason.ERROR, "error"),
])
def test_why_a_turn_ended(reason: StopReason, word: str) -> None:
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
    told = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    (Cas() >> TurnEnded(outcome=Outcome.COMPLETED, stop_reason=reason, usage=usage)
        << said("session.status_idle", status="idle", stop_reason={"type": word}, usage=told))


def test_what_says_nothing() -> None:
    play = Cas() >> STARTED << SPAN
    for event in (NoticePosted(topic="t", title="x"), CustomEvent(topic="t"), accepted(Compact()),
                  accepted(CustomCommand(name="theirs")), SessionUpdated(settings=Settings()),
                  block(BlockKind.DATA), ended(BlockKind.DATA, data=DataPart(type="plan")),
                  block(), ended(text=""), block(BlockKind.THINKING), ended(BlockKind.THINKING, signature="s")):
        play = play >> event << silence


def test_a_picture_is_words() -> None:
    (Cas() >> STARTED << SPAN >> block(BlockKind.IMAGE) << silence
        >> ended(BlockKind.IMAGE, image=ImagePart(url="https://x/y.png"))
        << said("agent.message", 2, content=text("![image](https://x/y.png)")))


def test_a_session_tells_what_is_not_private() -> None:
    (Cas()
        >> SessionUpdated(title="Trip") << said("session.updated", title="Trip")
        >> SessionUpdated(metadata={"a": "b", PRIVATE: {"x": 1}}) << said("session.updated", metadata={"a": "b"})
        >> SessionCompacted(compaction_id="c", summary="s") << said("agent.thread_context_compacted")
        >> SessionClosed(reason=CloseReason.TERMINATED) << said("session.status_terminated", status="terminated")
        >> SessionClosed(reason=CloseReason.DELETED) << said("session.deleted"))


@pytest.mark.parametrize(("origin", "use", "back"), [
    (ToolOrigin.BUILTIN, {"type": "agent.tool_use", "evaluated_permission": "allow"}, "agent.tool_result"),
    (ToolOrigin.PROVIDER, {"type": "agent.tool_use", "evaluated_permission": "allow"}, "agent.tool_result"),
    (ToolOrigin.MCP, {"type": "agent.mcp_tool_use", "evaluated_permission": "allow", "mcp_server_name": "maps"},
     "agent.mcp_tool_result"),
    (ToolOrigin.CLIENT, {"type": "agent.custom_tool_use"}, None),
])
def test_a_call_and_what_it_gave(origin: ToolOrigin, use: dict[str, Any], back: str | None) -> None:
    made = call(origin=origin, server="maps" if origin is ToolOrigin.MCP else None)
    kind = use.pop("type")
    play = (Cas() >> STARTED << SPAN >> block(BlockKind.TOOL_USE, call=made) << silence
        >> ended(BlockKind.TOOL_USE, call=made) << said(kind, 2, name="calc", input={"x": 1}, **use)
        >> ToolReturned(call_id="c", origin=origin, content="42", is_error=True))
    if back is None:
        play << silence
    else:
        more = {"mcp_tool_use_id": "evt_1_2", "mcp_server_name": "maps"} if origin is ToolOrigin.MCP else {}
        play << said(back, tool_use_id="evt_1_2", content=text("42"), is_error=True, **more)


def test_a_torn_call_is_not_told() -> None:
    (Cas() >> STARTED << SPAN >> block(BlockKind.TOOL_USE, call=call()) << silence
        >> ended(BlockKind.TOOL_USE, call=call(), torn=True) << silence)


def test_a_file_that_a_tool_gave_is_delivered() -> None:
    file = FilePart(name="a.pdf", file_id="file_1", media_type="application/pdf", size=7)
    (Cas() >> STARTED << SPAN >> block(BlockKind.TOOL_USE, call=call()) << silence
        >> ended(BlockKind.TOOL_USE, call=call())
        << said("agent.tool_use", 2, name="calc", input={"x": 1}, evaluated_permission="allow")
        >> ToolReturned(call_id="c", content=(TextPart(text="here"), file))
        << said("agent.artifact_delivered", "evt_1_4-1", file_id="file_1", original_filename="a.pdf",
                content_type="application/pdf", size=7)
        << said("agent.tool_result", tool_use_id="evt_1_2", is_error=False, content=[
            {"type": "text", "text": "here"},
            {"type": "document", "title": "a.pdf", "source": {"type": "file", "file_id": "file_1"}}]))


def test_a_permission_is_asked_by_the_call_itself() -> None:
    made = call(permission=Permission.ASK)
    (Cas() >> STARTED << SPAN >> block(BlockKind.TOOL_USE, call=made) << silence
        >> ended(BlockKind.TOOL_USE, call=made)
        << said("agent.tool_use", 2, name="calc", input={"x": 1}, evaluated_permission="ask")
        >> MessageEnded(message_id="m", usage=Usage(input_tokens=5))
        << said("span.model_request_end", model_request_start_id="evt_1_1", is_error=False,
                model_usage=NO_USAGE | {"input_tokens": 5}, usage=NO_USAGE | {"input_tokens": 5})
        >> InputRequested(request_id="ask_1", ask=PermissionAsk(call=made), call_id="c") << silence
        >> TurnSuspended(pending=("ask_1",))
        << said("session.status_idle", status="idle", usage=NO_USAGE | {"input_tokens": 5},
                stop_reason={"type": "requires_action", "event_ids": ["evt_1_2"]})
        >> accepted(DecidePermission(request_id="ask_1", granted=False, reason="no"))
        << said("user.tool_confirmation", tool_use_id="evt_1_2", result="deny", deny_message="no")
        >> InputResolved(request_id="ask_1", resolution=Resolution.DENIED, call_id="c") << silence
        >> TurnResumed(settled=("ask_1",)) << said("session.status_running", status="running")
        >> accepted(DecidePermission(request_id="ask_1", granted=True)) << silence)


def test_what_is_not_about_a_call_becomes_one() -> None:
    question = Question(question="Which?", header="H", options=(Choice(label="this"), Choice(label="that")))
    asked = {"question": "Which?", "header": "H", "multiSelect": False, "options": [
        {"label": "this", "description": ""}, {"label": "that", "description": ""}]}
    (Cas()
        >> InputRequested(request_id="a", ask=QuestionAsk(questions=(question,)))
        << said("agent.custom_tool_use", name="AskUserQuestion", input={"questions": [asked]},
                description=HOW_TO_ANSWER)
        >> InputRequested(request_id="b", ask=ContinuationAsk(turn=2, message="on?"))
        << said("agent.tool_use", name="confirm_continue", input={"message": "on?", "turn": 2},
                evaluated_permission="ask")
        >> InputRequested(request_id="c", ask=RollbackAsk(task_id="t", options=({"id": "x"},), reason="why"))
        << said("agent.custom_tool_use", name="choose_rollback",
                input={"task_id": "t", "options": [{"id": "x"}], "reason": "why"})
        >> TurnSuspended(pending=("a", "b", "c"))
        << said("session.status_idle", status="idle", usage=NO_USAGE, stop_reason={
            "type": "requires_action", "event_ids": ["evt_1_1", "evt_1_2", "evt_1_3"]})
        >> accepted(AnswerQuestion(request_id="a", selections={"0": (1,)}))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=text("that"), is_error=False)
        >> accepted(AnswerQuestion(request_id="a", custom={"0": "that"}, said=' ["that"]'))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=text(' ["that"]'), is_error=False)
        >> accepted(ContinueTurn(request_id="b", proceed=False))
        << said("user.tool_confirmation", tool_use_id="evt_1_2", result="deny")
        >> InputResolved(request_id="b", resolution=Resolution.ANSWERED)
        << said("agent.tool_result", tool_use_id="evt_1_2", content=text("answered"), is_error=False)
        >> accepted(RollBack(request_id="c", option="x"))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_3", content=text("x"), is_error=False)
        >> accepted(Withdraw(request_id="a")) << silence)


def test_other_words_of_people() -> None:
    outcome = CustomCommand(name="define_outcome", payload={"description": "d", "extra": [1]})
    named = CustomCommand(name="define_outcome", payload={"outcome_id": "outc_mine"})
    (Cas()
        >> accepted(outcome) << said("user.define_outcome", outcome_id="outc_1_1", description="d", extra=[1])
        >> accepted(named) << said("user.define_outcome", outcome_id="outc_mine")
        >> accepted(SendMessage(content=(ImagePart(url="data:x"),)))
        << said("user.message", content=[{"type": "image", "source": {"type": "url", "url": "data:x"}}])
        >> accepted(ReturnResult(request_id="nobody's")) << silence)


def test_a_fault_is_told() -> None:
    (Cas() >> FaultRaised(fault=Fault(code=FaultCode.OVERLOADED, message="later"))
        << said("session.error", error={
            "type": "model_overloaded_error", "message": "later", "retry_status": {"type": "exhausted"}}))


THREAD = {"session_thread_id": "sthr_kid"}
FORK = [
    (KID, ScopeOpened(parent=ROOT, title="Helper", agent="demo")),
    (KID, ScopeStatusChanged(status=ScopeStatus.RUNNING)),
    ScopeMessage(sender=ROOT, recipient=KID, content="go"),
    (KID, STARTED), (KID, block()), (KID, ended(text="done")), (KID, ENDED),
    (KID, ScopeMessage(sender=KID, recipient=ROOT, content="done", is_error=True)),
    (KID, ScopeStatusChanged(status=ScopeStatus.BLOCKED, stop_reason=StopReason.NEEDS_INPUT)),
    (KID, ScopeStatusChanged(status=ScopeStatus.IDLE, stop_reason=StopReason.END_TURN)),
    (KID, ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=StopReason.INTERRUPTED)),
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
    play = play >> (KID, ScopeStatusChanged(status=ScopeStatus.BLOCKED, stop_reason=StopReason.NEEDS_INPUT)) << silence
    for name in ("a", "b"):
        play = play >> (KID, InputRequested(request_id=name, ask=RollbackAsk(task_id=name, options=()))) << said(
            "agent.custom_tool_use", name="choose_rollback", input={"task_id": name, "options": []}, **THREAD)
    waits = {"type": "requires_action", "event_ids": ["evt_1_3", "evt_1_4"]}
    play = play >> TurnSuspended(pending=("a", "b")) << status("idle", "blocked", "evt_1_5-1", stop_reason=waits)
    if thread is None:
        play = play << said("session.status_idle", status="idle", usage=NO_USAGE, stop_reason=waits)
    play >> (KID, ScopeStatusChanged(status=ScopeStatus.RUNNING)) << status("running", "running")


def test_a_thread_has_its_own_words_and_its_mail() -> None:
    play = Cas(thread=KID)
    for event, heard in zip(FORK[:8], [
        CREATED, status("running", "running"), SENT, said("span.model_request_start", model="demo-1", **THREAD),
        silence, said("agent.message", 5, content=text("done"), **THREAD),
        said("span.model_request_end", model_request_start_id="evt_1_4", is_error=False, model_usage=NO_USAGE,
             usage=NO_USAGE, **THREAD), RECEIVED,
    ], strict=True):
        play = play >> event << heard
    play >> TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN) << silence


def test_an_archived_thread_needs_no_turn() -> None:
    (Cas() >> (KID, ScopeStatusChanged(status=ScopeStatus.ARCHIVED))
        << said("session.thread_status_terminated", status="archived", stop_reason={"type": "archive"}, **THREAD))


def test_a_sub_agent_of_another_kind_has_another_id() -> None:
    (Cas() >> (KID, ScopeOpened(parent=ROOT, agent="scout"))
        << said("session.thread_created", parent_thread_id="sthr_1", agent_id="agent_scout", agent_version=1,
                agent_name="scout", role="child", created_by_tool_use_id=None, **THREAD))


def test_every_room_of_the_projector_names_its_own_cues_once() -> None:
    rooms = [ask_projection.ASK_CUES, thread_projection.THREAD_CUES, previews.PREVIEW_CUES]
    assert sum(map(len, rooms)) == len({cue for room in rooms for cue in room})
    assert {cue for room in rooms for cue in room} < set(CUES)
    assert {*ask_projection.ASK_NAMES, *thread_projection.THREAD_NAMES} < set(NAMES)
    assert isinstance(make_projector(table("cas"), ""), frame_writer.FrameWriter)


def test_a_result_is_kept_as_blocks_of_text() -> None:
    call = ToolCall(call_id="c", name="mine", origin=ToolOrigin.CLIENT)
    given = (TextPart(text="see"), ImagePart(url="https://x/a.png"), FilePart(name="f", file_id="file_1"))
    texts = [{"type": "text", "text": words} for words in ("see", "![image](https://x/a.png)", "[f](file_1)")]
    play = Cas() >> InputRequested(request_id="a", ask=ClientToolAsk(call=call), call_id="c")
    (play >> accepted(ReturnResult(request_id="a", content=given))
        << said("user.custom_tool_result", custom_tool_use_id="evt_1_1", content=texts, is_error=False))
