"""AAP, outward: what each event is on the wire, in each of the three modes."""

from typing import Any

import pytest

import gateway.model as m
from adapters.aap.server.projector import make_projector
from adapters.aap.server.stream_options import StreamMode, StreamOptions
from tests.support.dialect_tables import table
from tests.support.playbook import KID, Playbook, silence

START, RESUME, SUSPEND = m.TurnStarted(command_id="c"), m.TurnResumed(), m.TurnSuspended(pending=("a",))
MESSAGE, END_MESSAGE = m.MessageStarted(message_id="m"), m.MessageEnded(message_id="m")
CALL = m.ToolCall(call_id="call_1", name="calc", input={"x": 1})


def frame(event: str, **data: Any) -> dict[str, Any]:
    return {"event": event, "data": data}


def play(mode: StreamMode) -> Playbook:
    return Playbook(make_projector(table("aap"), StreamOptions(mode)), "json" if mode == "none" else "sse")


def started(kind: m.BlockKind, call: m.ToolCall | None = None) -> m.BlockStarted:
    return m.BlockStarted(block_id="b", message_id="m", kind=kind, call=call)


def delta(kind: m.BlockKind, text: str) -> m.BlockDelta:
    return m.BlockDelta(block_id="b", message_id="m", kind=kind, delta=text)


def ended(kind: m.BlockKind, **whole: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id="m", kind=kind, **whole)


def over(stop: m.StopReason, outcome: m.Outcome = m.Outcome.COMPLETED) -> m.TurnEnded:
    return m.TurnEnded(outcome=outcome, stop_reason=stop)


def test_words_come_as_deltas() -> None:
    (play("delta")
        >> START << frame("turn_start")
        >> MESSAGE << silence
        >> started(m.BlockKind.THINKING) << silence
        >> delta(m.BlockKind.THINKING, "hm") << frame("thinking_delta", delta="hm")
        >> ended(m.BlockKind.THINKING, text="hm") << silence
        >> started(m.BlockKind.TEXT) << silence
        >> delta(m.BlockKind.TEXT, "hel\n") << frame("text_delta", delta="hel\n")
        >> delta(m.BlockKind.TEXT, "lo") << frame("text_delta", delta="lo")
        >> ended(m.BlockKind.TEXT, text="hel\nlo") << silence
        >> END_MESSAGE << silence
        >> over(m.StopReason.END_TURN) << frame("turn_stop", stopReason="end_turn") << silence)


def test_words_come_whole() -> None:
    (play("message")
        >> START << frame("turn_start")
        >> MESSAGE << silence
        >> started(m.BlockKind.THINKING) << silence
        >> delta(m.BlockKind.THINKING, "hm") << silence
        >> ended(m.BlockKind.THINKING, text="hm") << frame("thinking", thinking="hm")
        >> delta(m.BlockKind.TEXT, "hello") << silence
        >> ended(m.BlockKind.TEXT, text="hello") << frame("text", text="hello")
        >> ended(m.BlockKind.TEXT, text="") << silence
        >> over(m.StopReason.END_TURN) << frame("turn_stop", stopReason="end_turn"))


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_call_is_told_when_it_is_whole(mode: StreamMode) -> None:
    (
        play(mode)
        >> started(m.BlockKind.TOOL_USE, m.ToolCall(call_id="call_1", name="calc"))
        << silence
        >> delta(m.BlockKind.TOOL_USE, '{"x":1}')
        << silence
        >> ended(m.BlockKind.TOOL_USE, call=CALL)
        << frame("tool_call", toolCallId="call_1", name="calc", input={"x": 1})
        >> m.ToolOutput(call_id="call_1", delta="…")
        << silence
        >> m.ToolReturned(call_id="call_1", content="2")
        << frame("tool_result", toolCallId="call_1", content="2")
    )


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_torn_call_is_never_told(mode: StreamMode) -> None:
    (play(mode)
        >> ended(m.BlockKind.TOOL_USE, call=CALL, torn=True) << silence
        >> over(m.StopReason.ERROR, m.Outcome.FAILED) << frame("turn_stop", stopReason="error"))


def test_a_result_may_be_blocks() -> None:
    parts = (m.TextPart(text="see"), m.ImagePart(url="https://x.test/p.png"))
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "url": "https://x.test/p.png"}]
    (play("delta")
        >> m.ToolReturned(call_id="c", content=parts) << frame("tool_result", toolCallId="c", content=blocks))


def test_what_the_client_returned_is_not_told_back() -> None:
    play("delta") >> m.ToolReturned(call_id="c", content="mine", origin=m.ToolOrigin.CLIENT) << silence


@pytest.mark.parametrize(("reason", "word"), [
    (m.StopReason.END_TURN, "end_turn"), (m.StopReason.MAX_TOKENS, "max_tokens"), (m.StopReason.REFUSAL, "refusal"),
    (m.StopReason.ERROR, "error"), (m.StopReason.TIMEOUT, "error"), (m.StopReason.INTERRUPTED, "error"),
    (m.StopReason.MAX_STEPS, "error"),
])
def test_every_end_has_a_word(reason: m.StopReason, word: str) -> None:
    play("delta") >> over(reason) << frame("turn_stop", stopReason=word)


def test_waiting_is_a_stop_and_going_on_a_start() -> None:
    (play("delta")
        >> SUSPEND << frame("turn_stop", stopReason="tool_use")
        >> RESUME << frame("turn_start"))


@pytest.mark.parametrize(("mode", "word", "field"), [("delta", "text_delta", "delta"), ("message", "text", "text")])
def test_a_picture_is_shown_in_words(mode: StreamMode, word: str, field: str) -> None:
    (play(mode)
        >> ended(m.BlockKind.IMAGE, image=m.ImagePart(url="https://x.test/p.png"))
        << frame(word, **{field: "![image](https://x.test/p.png)"})
        >> ended(m.BlockKind.IMAGE) << silence)


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_sub_agents_are_not_heard_but_their_questions_are(mode: StreamMode) -> None:
    question = m.Question(question="Which?", options=(m.Choice(label="a"),))
    call = m.ToolCall(call_id="call_9", name="AskUserQuestion", input={"questions": []})
    (
        play(mode)
        >> (KID, m.ScopeOpened(parent=m.ROOT))
        << silence
        >> (KID, delta(m.BlockKind.TEXT, "psst"))
        << silence
        >> (KID, ended(m.BlockKind.TEXT, text="psst"))
        << silence
        >> (KID, ended(m.BlockKind.TOOL_USE, call=call))
        << silence
        >> (
            KID,
            m.InputRequested(request_id="ask", call_id="call_9", ask=m.QuestionAsk(questions=(question,), call=call)),
        )
        << frame(
            "tool_call",
            toolCallId="call_9",
            name="AskUserQuestion",
            input={"questions": []},
            description=m.HOW_TO_ANSWER,
        )
        >> (KID, m.ToolReturned(call_id="call_8", content="a"))
        << silence
        >> (KID, m.ToolReturned(call_id="call_9", content="a"))
        << frame("tool_result", toolCallId="call_9", content="a")
    )


@pytest.mark.parametrize("mode", ["delta", "message"])
@pytest.mark.parametrize("scope", [m.ROOT, KID])
def test_what_the_client_returned_is_not_told_to_it(mode: StreamMode, scope: str) -> None:
    """An answer that another client picked from the choices is told; a turn knows nothing of the one before."""
    call = m.ToolCall(call_id="call_9", name="AskUserQuestion", input={"questions": []})
    ask = m.QuestionAsk(questions=(m.Question(question="Which?"),), call=call)
    asked = {m.ROOT: silence, KID: frame(
        "tool_call", toolCallId="call_9", name="AskUserQuestion", input={"questions": []}, description=m.HOW_TO_ANSWER)}
    returned = m.ToolReturned(call_id="call_9", content="Which: a")
    for said, told in (("a", silence), ("", frame("tool_result", toolCallId="call_9", content="Which: a"))):
        answer = m.AnswerQuestion(request_id="ask", custom={"0": "a"}, said=said)
        (play(mode)
            >> START << frame("turn_start")
            >> (scope, m.InputRequested(request_id="ask", call_id="call_9", ask=ask)) << asked[scope]
            >> SUSPEND << frame("turn_stop", stopReason="tool_use")
            >> m.InputAccepted(command_id="c", command=answer) << silence
            >> RESUME << frame("turn_start")
            >> (scope, returned) << told
            >> START << frame("turn_start")
            >> returned << frame("tool_result", toolCallId="call_9", content="Which: a"))


def test_an_ask_without_a_call_is_told_as_one() -> None:
    (play("delta")
        >> m.InputRequested(request_id="ask_1", ask=m.ContinuationAsk(turn=20, message="go on?"))
        << frame("tool_call", toolCallId="ask_1", name="confirm_continue", input={"message": "go on?", "turn": 20},
                 description="A person must decide whether the agent goes on. Return the text \"no\" to stop it; "
                 "any other text lets it go on.")
        >> m.InputRequested(request_id="ask_2", ask=m.RollbackAsk(task_id="t", options=({"id": "1"},), reason="broke"))
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
        >> delta(m.BlockKind.TEXT, "hello") << silence
        >> ended(m.BlockKind.TEXT, text="hello") << silence
        >> ended(m.BlockKind.TOOL_USE, call=CALL) << silence
        >> ended(m.BlockKind.DATA, data=m.DataPart(type="plan")) << silence
        >> END_MESSAGE << silence
        >> m.ToolReturned(call_id="call_1", content="2") << silence
        >> m.ToolReturned(call_id="call_2", content="mine", origin=m.ToolOrigin.CLIENT) << silence
        >> SUSPEND << {"stopReason": "tool_use", "messages": [
            {"role": "assistant", "content": [text, use]},
            {"role": "tool", "toolCallId": "call_1", "content": "2"},
        ]}
        >> RESUME << silence
        >> over(m.StopReason.END_TURN) << {"stopReason": "end_turn", "messages": []})


@pytest.mark.parametrize("mode", ["delta", "message"])
def test_a_question_without_a_call_is_said_as_one(mode: StreamMode) -> None:
    ask = m.QuestionAsk(questions=(m.Question(question="Which?", options=(m.Choice(label="A"), m.Choice(label="B"))),))
    options = [{"label": "A", "description": ""}, {"label": "B", "description": ""}]
    questions = [{"question": "Which?", "header": "", "multiSelect": False, "options": options}]
    call = frame("tool_call", toolCallId="ask_1", name="AskUserQuestion", input={"questions": questions},
                 description=m.HOW_TO_ANSWER)
    assert play(mode) >> m.InputRequested(request_id="ask_1", ask=ask) << call
    assert play(mode) >> (KID, m.InputRequested(request_id="ask_1", ask=ask)) << call
