"""AAP, outward: what each event is on the wire, in each of the three modes."""

from typing import Any

import pytest

from adapters.aap.server.projector import make_projector
from gateway.model import (
    HOW_TO_ANSWER,
    ROOT,
    AnswerQuestion,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Choice,
    ContinuationAsk,
    DataPart,
    ImagePart,
    InputAccepted,
    InputRequested,
    MessageEnded,
    MessageStarted,
    Outcome,
    Question,
    QuestionAsk,
    RollbackAsk,
    ScopeOpened,
    StopReason,
    TextPart,
    ToolCall,
    ToolOrigin,
    ToolOutput,
    ToolReturned,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from tests.support.dialect_tables import table
from tests.support.playbook import KID, Playbook, silence

START, RESUME, SUSPEND = TurnStarted(command_id="c"), TurnResumed(), TurnSuspended(pending=("a",))
MESSAGE, END_MESSAGE = MessageStarted(message_id="m"), MessageEnded(message_id="m")
CALL = ToolCall(call_id="call_1", name="calc", input={"x": 1})


def frame(event: str, **data: Any) -> dict[str, Any]:
    return {"event": event, "data": data}


def play(mode: str) -> Playbook:
    return Playbook(make_projector(table("aap"), mode), "json" if mode == "none" else "sse")


def started(kind: BlockKind, call: ToolCall | None = None) -> BlockStarted:
    return BlockStarted(block_id="b", message_id="m", kind=kind, call=call)


def delta(kind: BlockKind, text: str) -> BlockDelta:
    return BlockDelta(block_id="b", message_id="m", kind=kind, delta=text)


def ended(kind: BlockKind, **whole: Any) -> BlockEnded:
    return BlockEnded(block_id="b", message_id="m", kind=kind, **whole)


def over(stop: StopReason, outcome: Outcome = Outcome.COMPLETED) -> TurnEnded:
    return TurnEnded(outcome=outcome, stop_reason=stop)


def test_words_come_as_deltas() -> None:
    (play("delta")
        >> START << frame("turn_start")
        >> MESSAGE << silence
        >> started(BlockKind.THINKING) << silence
        >> delta(BlockKind.THINKING, "hm") << frame("thinking_delta", delta="hm")
        >> ended(BlockKind.THINKING, text="hm") << silence
        >> started(BlockKind.TEXT) << silence
        >> delta(BlockKind.TEXT, "hel\n") << frame("text_delta", delta="hel\n")
        >> delta(BlockKind.TEXT, "lo") << frame("text_delta", delta="lo")
        >> ended(BlockKind.TEXT, text="hel\nlo") << silence
        >> END_MESSAGE << silence
        >> over(StopReason.END_TURN) << frame("turn_stop", stopReason="end_turn") << silence)


def test_words_come_whole() -> None:
    (play("message")
        >> START << frame("turn_start")
        >> MESSAGE << silence
        >> started(BlockKind.THINKING) << silence
        >> delta(BlockKind.THINKING, "hm") << silence
        >> ended(BlockKind.THINKING, text="hm") << frame("thinking", thinking="hm")
        >> delta(BlockKind.TEXT, "hello") << silence
        >> ended(BlockKind.TEXT, text="hello") << frame("text", text="hello")
        >> ended(BlockKind.TEXT, text="") << silence
        >> over(StopReason.END_TURN) << frame("turn_stop", stopReason="end_turn"))


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_call_is_told_when_it_is_whole(mode: str) -> None:
    (play(mode)
        >> started(BlockKind.TOOL_USE, ToolCall(call_id="call_1", name="calc")) << silence
        >> delta(BlockKind.TOOL_USE, '{"x":1}') << silence
        >> ended(BlockKind.TOOL_USE, call=CALL) << frame("tool_call", toolCallId="call_1", name="calc", input={"x": 1})
        >> ToolOutput(call_id="call_1", delta="…") << silence
        >> ToolReturned(call_id="call_1", content="2") << frame("tool_result", toolCallId="call_1", content="2"))


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_torn_call_is_never_told(mode: str) -> None:
    (play(mode)
        >> ended(BlockKind.TOOL_USE, call=CALL, torn=True) << silence
        >> over(StopReason.ERROR, Outcome.FAILED) << frame("turn_stop", stopReason="error"))


def test_a_result_may_be_blocks() -> None:
    parts = (TextPart(text="see"), ImagePart(url="https://x.test/p.png"))
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "url": "https://x.test/p.png"}]
    (play("delta")
        >> ToolReturned(call_id="c", content=parts) << frame("tool_result", toolCallId="c", content=blocks))


def test_what_the_client_returned_is_not_told_back() -> None:
    play("delta") >> ToolReturned(call_id="c", content="mine", origin=ToolOrigin.CLIENT) << silence


@pytest.mark.parametrize(("reason", "word"), [
    (StopReason.END_TURN, "end_turn"), (StopReason.MAX_TOKENS, "max_tokens"), (StopReason.REFUSAL, "refusal"),
    (StopReason.ERROR, "error"), (StopReason.TIMEOUT, "error"), (StopReason.INTERRUPTED, "error"),
    (StopReason.MAX_STEPS, "error"),
])
def test_every_end_has_a_word(reason: StopReason, word: str) -> None:
    play("delta") >> over(reason) << frame("turn_stop", stopReason=word)


def test_waiting_is_a_stop_and_going_on_a_start() -> None:
    (play("delta")
        >> SUSPEND << frame("turn_stop", stopReason="tool_use")
        >> RESUME << frame("turn_start"))


@pytest.mark.parametrize(("mode", "word", "field"), [("delta", "text_delta", "delta"), ("message", "text", "text")])
def test_a_picture_is_shown_in_words(mode: str, word: str, field: str) -> None:
    (play(mode)
        >> ended(BlockKind.IMAGE, image=ImagePart(url="https://x.test/p.png"))
        << frame(word, **{field: "![image](https://x.test/p.png)"})
        >> ended(BlockKind.IMAGE) << silence)


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_sub_agents_are_not_heard_but_their_questions_are(mode: str) -> None:
    question = Question(question="Which?", options=(Choice(label="a"),))
    call = ToolCall(call_id="call_9", name="AskUserQuestion", input={"questions": []})
    (play(mode)
        >> (KID, ScopeOpened(parent=ROOT)) << silence
        >> (KID, delta(BlockKind.TEXT, "psst")) << silence
        >> (KID, ended(BlockKind.TEXT, text="psst")) << silence
        >> (KID, ended(BlockKind.TOOL_USE, call=call)) << silence
        >> (KID, InputRequested(request_id="ask", call_id="call_9", ask=QuestionAsk(questions=(question,), call=call)))
        << frame("tool_call", toolCallId="call_9", name="AskUserQuestion", input={"questions": []},
                 description=HOW_TO_ANSWER)
        >> (KID, ToolReturned(call_id="call_8", content="a")) << silence
        >> (KID, ToolReturned(call_id="call_9", content="a")) << frame("tool_result", toolCallId="call_9", content="a"))


@pytest.mark.parametrize("mode", ["delta", "message"])
@pytest.mark.parametrize("scope", [ROOT, KID])
def test_what_the_client_returned_is_not_told_to_it(mode: str, scope: str) -> None:
    """An answer that another client picked from the choices is told; a turn knows nothing of the one before."""
    call = ToolCall(call_id="call_9", name="AskUserQuestion", input={"questions": []})
    ask = QuestionAsk(questions=(Question(question="Which?"),), call=call)
    asked = {ROOT: silence, KID: frame(
        "tool_call", toolCallId="call_9", name="AskUserQuestion", input={"questions": []}, description=HOW_TO_ANSWER)}
    returned = ToolReturned(call_id="call_9", content="Which: a")
    for said, told in (("a", silence), ("", frame("tool_result", toolCallId="call_9", content="Which: a"))):
        answer = AnswerQuestion(request_id="ask", custom={"0": "a"}, said=said)
        (play(mode)
            >> START << frame("turn_start")
            >> (scope, InputRequested(request_id="ask", call_id="call_9", ask=ask)) << asked[scope]
            >> SUSPEND << frame("turn_stop", stopReason="tool_use")
            >> InputAccepted(command_id="c", command=answer) << silence
            >> RESUME << frame("turn_start")
            >> (scope, returned) << told
            >> START << frame("turn_start")
            >> returned << frame("tool_result", toolCallId="call_9", content="Which: a"))


def test_an_ask_without_a_call_is_told_as_one() -> None:
    (play("delta")
        >> InputRequested(request_id="ask_1", ask=ContinuationAsk(turn=20, message="go on?"))
        << frame("tool_call", toolCallId="ask_1", name="confirm_continue", input={"message": "go on?", "turn": 20},
                 description="A person must decide whether the agent goes on. Return the text \"no\" to stop it; "
                 "any other text lets it go on.")
        >> InputRequested(request_id="ask_2", ask=RollbackAsk(task_id="t", options=({"id": "1"},), reason="broke"))
        << frame("tool_call", toolCallId="ask_2", name="choose_rollback",
                 input={"task_id": "t", "options": [{"id": "1"}], "reason": "broke"},
                 description="A person must choose a state to go back to. Return the id of one of the options, or an "
                 "empty text to stay."))


def test_the_whole_exchange_is_one_body() -> None:
    text = {"type": "text", "text": "hello"}
    use = {"type": "tool_use", "toolCallId": "call_1", "name": "calc", "input": {"x": 1}}
    (play("none")
        >> START << silence
        >> MESSAGE << silence
        >> delta(BlockKind.TEXT, "hello") << silence
        >> ended(BlockKind.TEXT, text="hello") << silence
        >> ended(BlockKind.TOOL_USE, call=CALL) << silence
        >> ended(BlockKind.DATA, data=DataPart(type="plan")) << silence
        >> END_MESSAGE << silence
        >> ToolReturned(call_id="call_1", content="2") << silence
        >> ToolReturned(call_id="call_2", content="mine", origin=ToolOrigin.CLIENT) << silence
        >> SUSPEND << {"stopReason": "tool_use", "messages": [
            {"role": "assistant", "content": [text, use]},
            {"role": "tool", "toolCallId": "call_1", "content": "2"},
        ]}
        >> RESUME << silence
        >> over(StopReason.END_TURN) << {"stopReason": "end_turn", "messages": []})


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_question_without_a_call_is_said_as_one(mode: str) -> None:
    ask = QuestionAsk(questions=(Question(question="Which?", options=(Choice(label="A"), Choice(label="B"))),))
    options = [{"label": "A", "description": ""}, {"label": "B", "description": ""}]
    questions = [{"question": "Which?", "header": "", "multiSelect": False, "options": options}]
    call = frame("tool_call", toolCallId="ask_1", name="AskUserQuestion", input={"questions": questions},
                 description=HOW_TO_ANSWER)
    assert play(mode) >> InputRequested(request_id="ask_1", ask=ask) << call
    assert play(mode) >> (KID, InputRequested(request_id="ask_1", ask=ask)) << call
