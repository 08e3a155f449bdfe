"""Blade, outward: the flows of the documents, event by event."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.blade.server.projector import make_projector
from adapters.blade.server.stream_options import StreamOptions
from mappings.language import Vocabulary, builtin_path, load_table
from tests.support.dialect_tables import dialect, table
from tests.support.playbook import KID, Playbook, silence

PLAIN = StreamOptions()


class Like:
    """Equal to whatever has these fields, at any depth."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and all(k in other and other[k] == value for k, value in self.fields.items())

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Like({self.fields})"


def event(name: str, **data: Any) -> Like:
    return Like(event=name, data=Like(**data))


def patch(kind: str, turn_id: str = "turn_1", **data: Any) -> Like:
    return event("turn:patch", patch_type=kind, turn_id=turn_id, data=Like(**data))


def play(options: StreamOptions = PLAIN) -> Playbook:
    return Playbook(make_projector(table("blade"), options), "socketio", "sess_1")


def say(message: str = "Hi", **more: Any) -> m.InputAccepted:
    return m.InputAccepted(command_id="cmd_1", command=m.SendMessage(content=message, **more))


START, MESSAGE = (
    m.TurnStarted(command_id="cmd_1"),
    m.MessageStarted(message_id="msg_1", model="m-1", context_window=1000),
)
SPOKEN = m.MessageEnded(message_id="msg_1")
OVER = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, duration_ms=7)
CALL = m.ToolCall(call_id="call_a", name="Bash", display_name="Shell", input={"command": "ls"})
QUESTIONS = (
    m.Question(question="Which?", header="Pick", options=(m.Choice(label="this"), m.Choice(label="that"))),
    m.Question(question="Which ones?", options=(m.Choice(label="a"), m.Choice(label="b")), multi_select=True),
)
ASKING = m.ToolCall(call_id="call_q", name="AskUserQuestion", input={"questions": [{"question": "Which?"}]})
QUESTION = m.QuestionAsk(questions=QUESTIONS, call=ASKING)
BROKEN = m.Fault(code=m.FaultCode.BACKEND, message="It broke.")


def started(kind: m.BlockKind = m.BlockKind.TEXT, call: m.ToolCall | None = None) -> m.BlockStarted:
    return m.BlockStarted(block_id="b", message_id="msg_1", kind=kind, call=call)


def delta(text: str, kind: m.BlockKind = m.BlockKind.TEXT) -> m.BlockDelta:
    return m.BlockDelta(block_id="b", message_id="msg_1", kind=kind, delta=text)


def ended(kind: m.BlockKind = m.BlockKind.TEXT, **whole: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id="msg_1", kind=kind, **whole)


def begun(options: StreamOptions = PLAIN, **more: Any) -> Playbook:
    """A chat in which the agent has just begun to speak."""
    return (play(options)
        >> say(**more) << silence
        >> START
        << event("chat:start", session_id="sess_1", chat_run_id="chat_1_1")
        << event("turn:start", role="user", status="completed", sequence=0)
        << event("turn:end", role="user", status="completed", sequence=0)
        >> MESSAGE << event("turn:start", role="assistant", status="streaming", sequence=1))


def called(call: m.ToolCall, options: StreamOptions = PLAIN, status: str = "pending", **more: Any) -> Playbook:
    """… and has called a tool and waits for it."""
    return (begun(options, **more)
        >> started(m.BlockKind.TOOL_USE, call) << silence
        >> ended(m.BlockKind.TOOL_USE, call=call)
        << patch("add_tool_call", id=f"tc_{call.call_id[5:]}", tool_name=call.name, status=status)
        >> SPOKEN << silence)


def asked(ask: Any, call_id: str | None = None) -> m.InputRequested:
    return m.InputRequested(request_id="ask_r", ask=ask, call_id=call_id)


def answer(command: Any) -> m.InputAccepted:
    return m.InputAccepted(command_id="cmd_2", command=command)


# -- words ------------------------------------------------------------------------------------------------------------

def test_a_chat_without_tools() -> None:
    (begun(message="法国的首都是哪里?")
        >> started() << silence
        >> delta("法国") << patch("add_content", type="text", content="法国", text_delta="法国")
        >> delta("的首都是") << patch("add_content", content="法国的首都是", text_delta="的首都是")
        >> delta("巴黎。") << patch("add_content", content="法国的首都是巴黎。", text_delta="巴黎。", turn=Like(
            turn_id="turn_1", status="streaming", blocks=[Like(type="text", content="法国的首都是巴黎。")]))
        >> ended(text="法国的首都是巴黎。") << silence
        >> SPOKEN << event("turn:end", role="assistant", status="completed", turn_id="turn_1", id="entry_1",
                           model="m-1", context_window=1000, usage=Like(input_tokens=0, output_tokens=0),
                           kind="message",
                           loop_id="root", parent_fork_tool_call_id=None)
        >> OVER << event("chat:end", status="completed", result=None, finish_reason="completed", duration_ms=7)
        << silence)


def test_thinking_is_a_block_of_its_own_kind() -> None:
    (begun()
        >> started(m.BlockKind.THINKING) << silence
        >> delta("hm", m.BlockKind.THINKING) << patch("add_content", type="thinking", text_delta="hm", block_index=0)
        >> ended(m.BlockKind.THINKING, text="hm") << silence
        >> started() << silence
        >> delta("so") << patch("add_content", type="text", content="so", text_delta="so", block_index=1))


def test_two_blocks_of_words_in_a_row_are_one_to_a_client_that_cannot_tell_them_apart() -> None:
    (begun()
        >> started() << silence >> delta("a") << patch("add_content", content="a") >> ended(text="a") << silence
        >> started() << silence >> delta("b") << patch("add_content", content="ab", text_delta="b", block_index=0))


def test_snapshots_can_be_left_out() -> None:
    bare = begun(StreamOptions(is_bare=True)) >> started() << silence >> delta("a")
    assert "turn" not in bare._said.pop()["data"]["data"]


def test_pictures_are_words_and_cards_are_blocks() -> None:
    (begun()
        >> started(m.BlockKind.IMAGE) << silence
        >> ended(m.BlockKind.IMAGE, image=m.ImagePart(url="https://x/y.png"))
        << patch("add_content", type="text", text_delta="![image](https://x/y.png)")
        >> started(m.BlockKind.DATA) << silence
        >> ended(m.BlockKind.DATA, data=m.DataPart(type="planning_enter")) << patch(
            "add_content", type="planning_enter", content=None)
        >> started(m.BlockKind.DATA) << silence
        >> ended(m.BlockKind.DATA, data=m.DataPart(type="nobody_knows", content={"x": 1})) << patch(
            "add_content", type="system_notification", content="nobody_knows"))


def test_memories_stand_beside_the_turn() -> None:
    refs = [{"id": 5, "content": "Likes tea."}, {"id": "mem_x", "title": "A title", "skill_name": "s"}, "nonsense"]
    (begun()
        >> m.MessageAnnotated(message_id="msg_1", topic=m.AnnotationTopic.MEMORY_REFS, content=refs) << silence
        >> m.MessageAnnotated(message_id="msg_1", topic=m.AnnotationTopic.INTENT, content="x") << silence
        >> SPOKEN << event("turn:end", memory_refs=[
            {"id": 5, "content_preview": "Likes tea.", "skill_name": None},
            Like(content_preview="A title", skill_name="s")]))


# -- tools ------------------------------------------------------------------------------------------------------------

def test_a_result_comes_before_the_end_of_its_turn() -> None:
    (called(CALL)
        >> m.ToolStatusChanged(call_id="call_a", status=m.ToolStatus.RUNNING) << silence
        >> m.ToolReturned(call_id="call_a", content="total 48", duration_ms=120)
        << patch("tool_result", tool_call_id="tc_a", result="total 48", status="done", duration_ms=120)
        << event("turn:end", status="completed", tool_calls=[Like(id="tc_a", tool_name="Bash", display_name="Shell",
                 arguments='{"command":"ls"}', status="done", result="total 48", pending_question_ref=None)])
        >> m.MessageStarted(message_id="msg_2") << event("turn:start", sequence=2))


def test_a_call_and_its_result_have_their_places_among_the_words() -> None:
    """In the turn as a whole only: patches tell of a call once."""
    (begun()
        >> started() << silence >> delta("Before.") << patch("add_content", block_index=0)
        >> ended(text="Before.") << silence
        >> started(m.BlockKind.TOOL_USE, CALL) << silence >> ended(m.BlockKind.TOOL_USE, call=CALL)
        << patch("add_tool_call", id="tc_a", turn=Like(blocks=[Like(type="text"), {
            "type": "tool_use", "content": {"id": "tc_a", "name": "Bash", "input": {"command": "ls"}},
            "tool_call_id": "tc_a", "tool_name": "Bash", "display_name": "Shell"}]))
        >> started() << silence >> delta("Between.") << silence
        >> ended(text="Between.") << patch("add_content", block_index=2, content="Between.")
        >> m.ToolReturned(call_id="call_a", content="total 48")
        << patch("tool_result", tool_call_id="tc_a", turn=Like(blocks=[
            Like(type="text"), Like(type="tool_use"), Like(type="text"),
            Like(type="tool_result", content="total 48", tool_call_id="tc_a", tool_name="Bash")]))
        >> SPOKEN << event("turn:end", blocks=[
            Like(type="text"), Like(type="tool_use"), Like(type="text"), Like(type="tool_result")]))


def test_a_failed_tool_does_not_fail_the_turn() -> None:
    (called(CALL)
        >> m.ToolReturned(call_id="call_a", content=(m.TextPart(text="no"),), is_error=True)
        << patch("tool_result", result=[{"type": "text", "text": "no"}], status="error")
        << event("turn:end", status="completed"))


def test_what_a_result_hands_to_the_page_is_a_block_of_its_own() -> None:
    meta = {"bridge": {"action": "map.highlight", "payload": {"x": 1}},
            "ui": {"resourceUri": "https://x", "target": "inline"}}
    (called(CALL)
        >> m.ToolReturned(call_id="call_a", content='{"ok": true}', meta=meta)
        << patch("tool_result", result={"ok": True, "_meta": meta})
        << patch("add_content", type="tool_bridge", content=meta["bridge"], tool_call_id="tc_a", tool_name="Bash")
        << patch("add_content", type="tool_ui", content=meta["ui"], tool_call_id="tc_a", display_name="Shell")
        << event("turn:end", blocks=[
            Like(type="tool_use"), Like(type="tool_result"), Like(type="tool_bridge"), Like(type="tool_ui")]))


# -- questions --------------------------------------------------------------------------------------------------------

def test_a_question_pauses_the_turn_and_an_answer_goes_on() -> None:
    (called(ASKING, status="awaiting_answer")
        >> m.ToolStatusChanged(call_id="call_q", status=m.ToolStatus.AWAITING_INPUT) << silence
        >> asked(QUESTION, "call_q") << silence
        >> m.TurnSuspended(pending=("ask_r",))
        << event("turn:end", status="paused", tool_calls=[Like(id="tc_q", status="awaiting_answer")])
        << event("chat:end", status="completed", finish_reason="completed", result=None,
                 pause_tool="builtin:AskUserQuestion",
                 pause_tool_data=Like(tool_call_id="tc_q", arguments=Like(source_loop=None)))
        >> answer(m.AnswerQuestion(request_id="ask_r", selections={"0": (1,), "1": (0, 1)}, message="that one"))
        << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.ANSWERED, call_id="call_q") << silence
        >> m.TurnResumed(settled=("ask_r",))
        << event("chat:start", session_id="sess_1")
        << event("turn:start", role="user", blocks=[
            Like(type="ask_user_answer", content={
                "tool_call_id": "tc_q", "selections": {"0": [1], "1": [0, 1]}, "custom": {}}),
            Like(type="text", content="that one")])
        << event("turn:end", role="user")
        >> m.ToolReturned(call_id="call_q", content="that; a, b")
        << patch("tool_result", tool_call_id="tc_q", result="that; a, b", status="done")
        << patch("set_status", status="completed")
        << event("turn:end", turn_id="turn_1", status="completed", tool_calls=[Like(id="tc_q", status="done")])
        >> OVER << event("chat:end", status="completed", result=None))


def test_arguments_are_json_in_a_string() -> None:
    talk = begun() >> started(m.BlockKind.TOOL_USE, ASKING) << silence >> ended(m.BlockKind.TOOL_USE, call=ASKING)
    [said] = talk._said
    given = orjson.loads(said["data"]["data"]["arguments"])
    assert given == {"questions": [{"question": "Which?"}], "source_loop": None}


ROLLBACK = m.RollbackAsk(task_id="t", options=({"id": "step"}, {"id": "all"}), error="It broke.", reason="Why not.")
FALLBACKS = [
    (
        m.PermissionAsk(call=CALL),
        "call_a",
        ["Allow", "Deny"],
        m.DecidePermission(request_id="ask_r", granted=True),
        [0],
    ),
    (
        m.PermissionAsk(call=CALL),
        "call_a",
        ["Allow", "Deny"],
        m.DecidePermission(request_id="ask_r", granted=False),
        [1],
    ),
    (m.ClientToolAsk(call=CALL), "call_a", [], m.ReturnResult(request_id="ask_r", content="sunny"), None),
    (m.ContinuationAsk(turn=3, message="On?"), None, ["Continue", "Stop"], m.ContinueTurn(request_id="ask_r"), [0]),
    (ROLLBACK, None, ["step", "all"], m.RollBack(request_id="ask_r", option="all"), [1]),
    (
        m.QuestionAsk(questions=QUESTIONS[:1]),
        None,
        ["this", "that"],
        m.AnswerQuestion(request_id="ask_r", selections={"0": (1,)}),
        [1],
    ),
]


@pytest.mark.parametrize(("ask", "call_id", "labels", "command", "picks"), FALLBACKS)
def test_whatever_is_asked_can_be_answered_as_a_question(
    ask: Any, call_id: str | None, labels: list[str], command: Any, picks: list[int] | None,
) -> None:
    talk = called(CALL) if call_id else begun() >> SPOKEN << event("turn:end", status="completed")
    talk >> asked(ask, call_id)
    turn_id = "turn_1"
    if call_id is None:
        turn_id = "turn_r"
        talk << event("turn:start", role="assistant", status="streaming", turn_id=turn_id)
    [said] = talk._said
    [question] = orjson.loads(said["data"]["data"]["arguments"])["questions"]
    assert [option["label"] for option in question["options"]] == labels
    (talk << patch("add_tool_call", turn_id, id="tc_r", tool_name="AskUserQuestion", status="awaiting_answer")
        >> m.TurnSuspended(pending=("ask_r",))
        << event("turn:end", status="paused", turn_id=turn_id)
        << event("chat:end", status="completed", pause_tool_data=Like(tool_call_id="tc_r"))
        >> answer(command) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.ANSWERED) << silence
        >> m.TurnResumed(settled=("ask_r",))
        << event("chat:start")
        << event("turn:start", role="user", blocks=[Like(type="ask_user_answer", content=Like(
            tool_call_id="tc_r", selections={"0": picks} if picks else {}))])
        << event("turn:end")
        << patch("tool_result", turn_id, tool_call_id="tc_r", status="done"))
    if call_id is None:
        talk << patch("set_status", turn_id, status="completed")
    else:
        (talk >> m.ToolReturned(call_id="call_a", content="done") << patch("tool_result", tool_call_id="tc_a")
            << patch("set_status", status="completed"))
    talk << event("turn:end", turn_id=turn_id, status="completed")


def test_several_asks_are_answered_one_by_one() -> None:
    other = m.InputRequested(request_id="ask_s", ask=m.ContinuationAsk(turn=1, message="On?"))
    (begun() >> SPOKEN << event("turn:end")
        >> asked(m.ContinuationAsk(turn=1, message="Go?")) << event("turn:start") << patch("add_tool_call", "turn_r")
        >> other << event("turn:start") << patch("add_tool_call", "turn_s")
        >> m.TurnSuspended(pending=("ask_r", "ask_s"))
        << event("turn:end", turn_id="turn_s") << event("turn:end", turn_id="turn_r")
        << event("chat:end", pause_tool_data=Like(tool_call_id="tc_r"))
        >> answer(m.ContinueTurn(request_id="ask_r")) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.ANSWERED)
        << event("chat:start") << event("turn:start", role="user") << event("turn:end", role="user")
        << patch("tool_result", "turn_r", status="done") << patch("set_status", "turn_r", status="completed")
        << event("turn:end", turn_id="turn_r", status="completed")
        << event("chat:end", status="completed", pause_tool_data=Like(tool_call_id="tc_s"))
        >> answer(m.ContinueTurn(request_id="ask_s")) << silence
        >> m.InputResolved(request_id="ask_s", resolution=m.Resolution.ANSWERED) << silence
        >> m.TurnResumed(settled=("ask_r", "ask_s"))
        << event("chat:start") << event("turn:start", role="user") << event("turn:end")
        << patch("tool_result", "turn_s", status="done") << patch("set_status", "turn_s", status="completed")
        << event("turn:end", turn_id="turn_s", status="completed"))


def test_a_turn_that_still_waits_ends_again_with_what_has_changed() -> None:
    """Two questions of one turn, answered one by one: those who look at ends only see the first answer, too."""
    other = m.InputRequested(request_id="ask_s", call_id="call_a", ask=m.PermissionAsk(call=CALL))
    (called(CALL)
        >> asked(m.PermissionAsk(call=CALL), "call_a") << patch("add_tool_call", id="tc_r")
        >> other << patch("add_tool_call", id="tc_s")
        >> m.TurnSuspended(pending=("ask_r", "ask_s")) << event("turn:end", status="paused") << event("chat:end")
        >> answer(m.DecidePermission(request_id="ask_r", granted=True)) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.GRANTED)
        << event("chat:start") << event("turn:start", role="user") << event("turn:end", role="user")
        << patch("tool_result", tool_call_id="tc_r", status="done")
        << event("turn:end", turn_id="turn_1", status="paused", tool_calls=[
            Like(id="tc_a", status="pending"), Like(id="tc_r", status="done"),
            Like(id="tc_s", status="awaiting_answer")])
        << event("chat:end", pause_tool_data=Like(tool_call_id="tc_s")))


def test_a_question_nobody_answers_is_cancelled_and_the_turn_goes_on() -> None:
    (begun() >> SPOKEN << event("turn:end")
        >> asked(m.ContinuationAsk(turn=1, message="Go?")) << event("turn:start") << patch("add_tool_call", "turn_r")
        >> m.TurnSuspended(pending=("ask_r",)) << event("turn:end") << event("chat:end")
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.EXPIRED)
        << patch("set_tool_status", "turn_r", status="cancelled")
        >> m.TurnResumed(settled=("ask_r",)) << event("chat:start") << patch("set_status", "turn_r", status="completed")
        << event("turn:end", turn_id="turn_r", status="completed", tool_calls=[Like(status="cancelled")])
        >> answer(m.Withdraw(request_id="ask_x")) << silence)


def test_a_new_message_cancels_what_was_asked_and_only_its_own_chat_ends() -> None:
    (called(ASKING, status="awaiting_answer")
        >> asked(QUESTION, "call_q") << silence
        >> m.TurnSuspended(pending=("ask_r",)) << event("turn:end", status="paused") << event("chat:end")
        >> m.InputAccepted(command_id="cmd_9", command=m.SendMessage(content="Never mind")) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.CANCELLED, call_id="call_q") << silence
        >> m.ToolStatusChanged(call_id="call_q", status=m.ToolStatus.CANCELLED)
        << patch("set_tool_status", tool_call_id="tc_q", status="cancelled")
        >> m.ToolReturned(call_id="call_q", content="interrupted", is_error=True) << silence
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << patch("set_status", status="interrupted") << event("turn:end", turn_id="turn_1", status="interrupted")
        >> m.TurnStarted(command_id="cmd_9") << event("chat:start", chat_run_id="chat_1_9")
        << event("turn:start", role="user", sequence=2) << event("turn:end"))


# -- sub-agents -------------------------------------------------------------------------------------------------------

FORK = m.ToolCall(call_id="call_f", name="Agent", input={"description": "clean up"})


def test_a_sub_agent_speaks_between_its_call_and_the_result() -> None:
    (called(FORK)
        >> (KID, m.ScopeOpened(parent="root", call_id="call_f", title="Helper")) << silence
        >> (KID, m.MessageStarted(message_id="msg_k"))
        << event("turn:start", role="assistant", parent_fork_tool_call_id="tc_f", turn_id="turn_k")
        >> (KID, m.MessageEnded(message_id="msg_k")) << event("turn:end", parent_fork_tool_call_id="tc_f")
        >> m.ToolReturned(call_id="call_f", content="cleaned")
        << patch("tool_result", tool_call_id="tc_f", status="done", result="cleaned")
        << event("turn:end", turn_id="turn_1", parent_fork_tool_call_id=None))


@pytest.mark.parametrize(("stop_reason", "status", "result"), [
    (m.StopReason.END_TURN, "done", "Found it."), (m.StopReason.ERROR, "error", "Found it."),
])
def test_a_sub_agent_that_no_call_brought_about_gets_one(stop_reason: m.StopReason, status: str, result: str) -> None:
    """So that its turns have a call to stand below: in the turn that is under way."""
    words = {"block_id": "k", "message_id": "msg_k", "kind": m.BlockKind.TEXT}
    (begun()
        >> (KID, m.ScopeOpened(parent="root", title="Helper"))
        << patch("add_tool_call", id="tc_kid", tool_name="Agent", arguments='{"description":"Helper"}')
        >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)) << silence
        >> (KID, m.MessageStarted(message_id="msg_k")) << event("turn:start", parent_fork_tool_call_id="tc_kid")
        >> (KID, m.BlockStarted(**words)) << silence
        >> (KID, m.BlockDelta(**words, delta="Found it.")) << patch("add_content", "turn_k")
        >> (KID, m.BlockEnded(**words, text="Found it.")) << silence
        >> (KID, m.MessageEnded(message_id="msg_k")) << event("turn:end", turn_id="turn_k")
        >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=stop_reason))
        << patch("tool_result", tool_call_id="tc_kid", result=result, status=status)
        >> SPOKEN << event("turn:end", turn_id="turn_1", status="completed"))


def test_a_sub_agent_between_the_turns_of_its_agent_gets_a_turn_for_its_call() -> None:
    (begun() >> SPOKEN << event("turn:end", turn_id="turn_1")
        >> (KID, m.ScopeOpened(parent="root", agent="researcher"))
        << event("turn:start", turn_id="turn_kid", role="assistant", loop_id="root", parent_fork_tool_call_id=None)
        << patch("add_tool_call", "turn_kid", id="tc_kid", arguments='{"description":"researcher"}')
        >> (KID, m.MessageStarted(message_id="msg_k")) << event("turn:start", parent_fork_tool_call_id="tc_kid")
        >> (KID, m.MessageEnded(message_id="msg_k")) << event("turn:end", turn_id="turn_k")
        >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.END_TURN))
        << patch("tool_result", "turn_kid", tool_call_id="tc_kid", result="", status="done")
        << event("turn:end", turn_id="turn_kid", status="completed"))


def test_a_sub_agent_that_is_stopped_cancels_the_call_it_got() -> None:
    (
        begun()
        >> (KID, m.ScopeOpened(parent="root"))
        << patch("add_tool_call", arguments='{"description":"sub-agent"}')
        >> m.InputAccepted(command_id="cmd_2", command=m.Interrupt())
        << silence
        >> m.MessageEnded(message_id="msg_1", outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << silence
        >> (KID, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.INTERRUPTED))
        << patch("set_tool_status", tool_call_id="tc_kid", status="cancelled")
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << event("turn:end", status="interrupted")
        << event("chat:end", status="interrupted")
    )


def test_a_sub_agents_question_bubbles_up() -> None:
    call = m.ToolCall(call_id="call_q", name="AskUserQuestion", input={"questions": []})
    block = {"block_id": "k", "message_id": "msg_k", "kind": m.BlockKind.TOOL_USE, "call": call}
    talk = (called(FORK)
        >> (KID, m.ScopeOpened(parent="root", call_id="call_f", title="Helper")) << silence
        >> (KID, m.MessageStarted(message_id="msg_k")) << event("turn:start", turn_id="turn_k")
        >> (KID, m.BlockStarted(**block)) << silence
        >> (KID, m.BlockEnded(**block)))
    [said] = talk._said
    loop = said["data"]["loop_id"]
    assert loop.startswith("agent:") and len(loop) == 14
    source = orjson.loads(said["data"]["data"]["arguments"])["source_loop"]
    assert source == {"loop_name": loop, "description": "Helper"}
    reference = {"child_loop_name": loop, "child_tool_call_id": "tc_q", "description": "Helper"}
    (talk << patch("add_tool_call", "turn_k", id="tc_q", status="awaiting_answer")
        >> (KID, m.MessageEnded(message_id="msg_k")) << silence
        >> (KID, asked(m.QuestionAsk(questions=QUESTIONS, call=call), "call_q"))
        << patch("set_tool_status", tool_call_id="tc_f", status="awaiting_answer", pending_question_ref=reference)
        >> m.TurnSuspended(pending=("ask_r",))
        << event("turn:end", turn_id="turn_k", status="paused")
        << event("turn:end", turn_id="turn_1", status="paused", tool_calls=[Like(
            id="tc_f", status="awaiting_answer", pending_question_ref=reference)])
        << event("chat:end", pause_tool_data=Like(tool_call_id="tc_q"))
        >> answer(m.AnswerQuestion(request_id="ask_r", custom={"0": "x", "1": "y"})) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.ANSWERED, call_id="call_q") << silence
        >> m.TurnResumed(settled=("ask_r",))
        << event("chat:start") << event("turn:start", role="user") << event("turn:end")
        << patch("set_tool_status", tool_call_id="tc_f", status="pending", pending_question_ref=None)
        >> (KID, m.ToolReturned(call_id="call_q", content="x; y"))
        << patch("tool_result", "turn_k", tool_call_id="tc_q") << patch("set_status", "turn_k", status="completed")
        << event("turn:end", turn_id="turn_k", status="completed")
        >> m.ToolReturned(call_id="call_f", content="done")
        << patch("tool_result", tool_call_id="tc_f") << patch("set_status", status="completed")
        << event("turn:end", turn_id="turn_1", status="completed"))


# -- ends -------------------------------------------------------------------------------------------------------------

def test_a_stop_cancels_what_runs() -> None:
    (called(CALL)
        >> m.InputAccepted(command_id="cmd_2", command=m.Interrupt()) << silence
        >> m.ToolStatusChanged(call_id="call_a", status=m.ToolStatus.CANCELLED)
        << patch("set_tool_status", tool_call_id="tc_a", status="cancelled")
        >> m.ToolReturned(call_id="call_a", content="interrupted", is_error=True) << silence
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << event("turn:end", status="interrupted", tool_calls=[Like(status="cancelled", result=None)])
        << event("chat:end", status="interrupted", finish_reason=None, result=None))


def test_a_stop_while_a_question_waits_ends_the_turn_and_not_the_chat_which_is_over() -> None:
    (called(ASKING, status="awaiting_answer")
        >> asked(QUESTION, "call_q") << silence
        >> m.TurnSuspended(pending=("ask_r",)) << event("turn:end", status="paused") << event("chat:end")
        >> m.InputAccepted(command_id="cmd_2", command=m.Interrupt()) << silence
        >> m.InputResolved(request_id="ask_r", resolution=m.Resolution.CANCELLED, call_id="call_q") << silence
        >> m.ToolStatusChanged(call_id="call_q", status=m.ToolStatus.CANCELLED)
        << patch("set_tool_status", status="cancelled")
        >> m.ToolReturned(call_id="call_q", content="interrupted", is_error=True) << silence
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << patch("set_status", status="interrupted")
        << event("turn:end", turn_id="turn_1", status="interrupted", tool_calls=[Like(status="cancelled")]) << silence)


@pytest.mark.parametrize(("stop_reason", "finish_reason"), [
    (m.StopReason.ERROR, None), (m.StopReason.TIMEOUT, None), (m.StopReason.MAX_STEPS, "max_turns"),
])
def test_a_failure_is_no_tool_error(stop_reason: m.StopReason, finish_reason: str | None) -> None:
    (begun() >> SPOKEN << event("turn:end")
        >> m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=stop_reason, fault=BROKEN)
        << event("system:error") << event("chat:end", status="failed", finish_reason=finish_reason))


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_failure_after_the_error_of_a_tool_is_one_unless_the_agent_went_on(goes_on: bool) -> None:
    talk = (called(CALL) >> m.ToolReturned(call_id="call_a", content="no", is_error=True)
        << patch("tool_result", status="error") << event("turn:end"))
    if goes_on:
        talk >> m.MessageStarted(message_id="msg_2") << event("turn:start") >> m.MessageEnded(message_id="msg_2")
        talk << event("turn:end")
    (
        talk
        >> m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=BROKEN)
        << event("system:error")
        << event("chat:end", status="failed", finish_reason=None if goes_on else "tool_error")
    )


def test_a_failure_is_told_in_three_steps() -> None:
    (begun(headless=True)
        >> m.MessageEnded(message_id="msg_1", outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR)
        << event("turn:end", status="failed")
        >> m.FaultRaised(fault=BROKEN) << silence
        >> m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=BROKEN)
        << event("system:error", session_id="sess_1", message="It broke.", code="agent_error")
        << event("chat:end", status="failed", finish_reason=None, result={"err_msg": "It broke."}))


def test_a_fault_that_ends_nothing_is_a_notification() -> None:
    (begun()
        >> m.FaultRaised(fault=BROKEN) << silence
        >> m.NoticePosted(topic="plan", title="Three steps.", detail={"n": 3})
        << event(
            "system:notification", notification_type="fault", code="agent_error", title="It broke.", status="error")
        << event("system:notification", notification_type="plan", title="Three steps.", detail={"n": 3}, status="info"))


@pytest.mark.parametrize(("stop", "word"), [
    (m.StopReason.MAX_STEPS, "max_turns"), (m.StopReason.MAX_TOKENS, "completed"), (m.StopReason.REFUSAL, "completed"),
])
def test_why_a_chat_ended(stop: m.StopReason, word: str) -> None:
    (begun() >> SPOKEN << event("turn:end")
        >> m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=stop) << event("chat:end", finish_reason=word))


def test_a_headless_chat_ends_with_its_last_words() -> None:
    (begun(headless=True)
        >> started() << silence >> delta("Paris") << patch("add_content") >> ended(text="Paris") << silence
        >> SPOKEN << event("turn:end")
        >> OVER << event("chat:end", status="completed", result={"output": "Paris", "result": "Paris"}))


@pytest.mark.parametrize(("value", "fields"), [({"countries": ["x"], "output": 1}, {"countries": ["x"]}), ([1], {})])
def test_structured_output_comes_with_its_schema(value: Any, fields: dict[str, Any]) -> None:
    schema = {"type": "object"}
    (begun(headless=True, output_schema=schema) >> SPOKEN << event("turn:end")
        >> m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, result=value)
        << event("chat:end", result={**fields, "output": value, "schema": schema}))


# -- the rest ---------------------------------------------------------------------------------------------------------

def test_a_compaction_is_an_entry_of_its_own() -> None:
    (play()
        >> m.InputAccepted(command_id="cmd_1", command=m.Compact()) << silence
        >> START << event("chat:start")
        >> m.SessionCompacted(
            compaction_id="cmp_1", summary="Much was said.", archived=4, tokens_before=100, tokens_after=25)
        << event("turn:start", kind="compaction", role="system", status="completed")
        << event("turn:end", kind="compaction", summary_full="Much was said.", archived_count=0, saved_ratio=0.75,
                 compaction_id="cmp_1", tokens_before=100, tokens_after=25, trigger="auto", blocks=[], tool_calls=[])
        >> OVER << event("chat:end", status="completed"))


def test_news_of_the_session() -> None:
    (play()
        >> m.SessionUpdated(title="Tea") << event("session:updated", session_id="sess_1", intent="Tea")
        >> m.SessionUpdated(settings=m.Settings(model="m-2")) << event("session:updated", model="m-2")
        >> m.SessionUpdated(metadata={"x": 1}) << silence
        >> m.SessionUpdated(metadata={m.PRIVATE: {"blade": {"replay_state": {"speed": 2}}}})
        << event("session:updated", replay_state={"speed": 2})
        >> m.CustomEvent(topic="workspace.files_changed", payload={"file_path": "a.txt"})
        << event("workspace:files_changed", session_id="sess_1", file_path="a.txt")
        >> m.CustomEvent(topic="other") << silence)


def test_numbers_tell_where_in_the_log_an_event_stands() -> None:
    talk = Playbook(make_projector(table("blade"), PLAIN), "socketio") >> say() << silence >> START
    assert [said["data"]["stream_sequence"] for said in talk._said] == [200, 201, 202]


def test_a_table_may_call_the_number_of_an_event_something_else(tmp_path: Path) -> None:
    override = tmp_path / "blade.yaml"
    override.write_text("frames: { chat.started: { chat:start: { stream_sequence: $drop, no: $stream_sequence } } }\n")
    renamed = load_table(builtin_path("blade"), Vocabulary.of(dialect("blade")), [override])
    projector = make_projector(renamed, StreamOptions(is_raw=True))
    projector.feed(m.Record(seq=1, at=1.0, session_id="sess_1", turn_id="turn_1", event=say()))
    frame, raw, *_ = projector.feed(m.Record(seq=2, at=1.0, session_id="sess_1", turn_id="turn_1", event=START))
    assert (frame.name, frame.cursor, orjson.loads(frame.body)["no"]) == ("chat:start", 200, 200)
    assert (raw.name, raw.cursor) == ("turn:events", 200)
    assert orjson.loads(raw.body)["events"] == [
        {"type": "chat:start", "payload": orjson.loads(frame.body), "stream_sequence": 200}]
