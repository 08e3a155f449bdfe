"""Recordings of Blade: what a server may do that the examiners never ask for, and the wrong beside the right."""

from typing import Any

import orjson
import pytest

from tests.support.conformance.handmade_recordings import RecordingBuilder

Body = dict[str, Any]
SESSION = "sess_1"
OPTIONS = [{"label": "This"}, {"label": "That"}]
QUESTION = {"questions": [{"question": "Which?", "options": OPTIONS}], "source_loop": None}
ASK = "AskUserQuestion"
PAUSE = {"pause_tool": f"builtin:{ASK}", "pause_tool_data": {"tool_call_id": "tc_2", "arguments": QUESTION}}


def turn(number: int, role: str, status: str, *calls: Body, text: str = "", **more: Any) -> Body:
    """A TurnProjection."""
    return {
        "session_id": SESSION,
        "id": f"entry_{number}",
        "sequence": number,
        "turn_id": f"turn_{number}",
        "loop_id": "root",
        "kind": "message",
        "role": role,
        "status": status,
        "blocks": [{"type": "text", "content": text}] if text else [],
        "tool_calls": list(calls),
        "model": None,
        "usage": None,
        "duration_ms": 1,
        "started_at": None,
        "context_window": 200000,
        "memory_refs": None,
        "parent_fork_tool_call_id": None,
        **more,
    }


def call(name: str, status: str = "pending", number: int = 1, **more: Any) -> Body:
    arguments = orjson.dumps(QUESTION if name == ASK else {}).decode()
    shown = {"id": f"tc_{number}", "tool_name": name, "display_name": name, "arguments": arguments, "status": status}
    return {**shown, **more}


def patch(number: int, kind: str, data: Body, sequence: int = 1) -> tuple[str, Body]:
    named = {"session_id": SESSION, "turn_id": f"turn_{number}", "loop_id": "root", "sequence": sequence}
    return "turn:patch", {**named, "patch_type": kind, "data": data}


def result(status: str = "done", number: int = 1, took: int | None = 5) -> Body:
    return {"tool_call_id": f"tc_{number}", "result": "well", "status": status, "duration_ms": took}


def words(number: int, text: str, sequence: int = 1) -> tuple[str, Body]:
    return patch(number, "add_content", {"type": "text", "content": text, "text_delta": text}, sequence)


def chat(message: str, *events: tuple[str, Body], status: str = "completed", **end: Any) -> list[tuple[str, Body]]:
    """The events of a chat, from chat:start to chat:end; the user's turn is number 0."""
    return [
        ("chat:start", {"session_id": SESSION}),
        ("turn:start", turn(0, "user", "completed", text=message)),
        ("turn:end", turn(0, "user", "completed", text=message)),
        *events,
        ("chat:end", {"session_id": SESSION, "status": status, "result": None, "finish_reason": "completed", **end}),
    ]


def assistant(number: int, *events: tuple[str, Body], end: Body) -> list[tuple[str, Body]]:
    return [("turn:start", turn(number, "assistant", "streaming")), *events, ("turn:end", end)]


def replied(number: int, text: str = "Well.") -> list[tuple[str, Body]]:
    return assistant(number, words(number, text), end=turn(number, "assistant", "completed", text=text))


def judged(*events: tuple[str, Body], message: str = "hello", **sent: Any) -> set[str]:
    """One chat, as it was heard after one chat:send."""
    reel = RecordingBuilder("blade")
    reel.send("chat:send", {"session_id": SESSION, "message": message, **sent})
    reel.hear(*events)
    return set(reel.failed())


def asked(*before: tuple[str, Body], calls: tuple[Body, ...] = ()) -> list[tuple[str, Body]]:
    """A turn that pauses for a question."""
    question = call(ASK, "awaiting_answer", 2)
    paused = turn(1, "assistant", "paused", *calls, question)
    return assistant(1, *before, patch(1, "add_tool_call", question, 3), end=paused)


@pytest.mark.parametrize(("status", "wrong"), [("paused", set()), ("completed", {"BL-TC-06", "BL-FLOW-10"})])
def test_a_call_may_wait_with_a_question(status: str, wrong: set[str]) -> None:
    """What the user is asked about is not done yet; in a turn that is completed every call is."""
    events = asked(patch(1, "add_tool_call", call("calc")), calls=(call("calc"),))
    events[-1] = ("turn:end", {**events[-1][1], "status": status})
    assert judged(*chat("hello", *events, **PAUSE)) == wrong


@pytest.mark.parametrize(("name", "wrong"), [("calc", set()), (ASK, {"BL-FLOW-10"})])
def test_other_calls_may_return_before_the_answer(name: str, wrong: set[str]) -> None:
    """The question itself has no result before it is answered; what runs beside it may have."""
    done = call("calc", "done", result="well", duration_ms=5)
    events = asked(patch(1, "add_tool_call", call("calc")), patch(1, "tool_result", result(), 2), calls=(done,))
    if name == ASK:
        events.insert(-1, patch(1, "tool_result", result("done", 2), 4))
    assert judged(*chat("hello", *events, **PAUSE)) == wrong


@pytest.mark.parametrize(
    ("status", "took", "wrong"),
    [
        ("error", 5, set()),
        ("error", None, set()),
        ("done", None, {"BL-FLOW-06", "BL-PATCH-07"}),
        ("cancelled", 5, {"BL-FLOW-06"}),
    ],
)
def test_a_tool_may_fail(status: str, took: int | None, wrong: set[str]) -> None:
    """A failure is a result with a status of its own, and what was refused took no time."""
    ended = turn(1, "assistant", "completed", call("calc", status, result="well", duration_ms=took))
    events = (patch(1, "add_tool_call", call("calc")), patch(1, "tool_result", result(status, took=took), 2))
    assert judged(*chat("hello", *assistant(1, *events, end=ended), *replied(2))) == wrong


@pytest.mark.parametrize(
    ("status", "wrong"), [(None, set()), ("failed", set()), ("completed", {"BL-TURN-08", "BL-GAP-23"})]
)
def test_a_chat_may_fail_before_the_first_turn(status: str | None, wrong: set[str]) -> None:
    """Where no turn has begun there is none to be failed."""
    said = assistant(1, words(1, "We"), end=turn(1, "assistant", status, text="We")) if status else []
    error = ("system:error", {"session_id": SESSION, "message": "It broke.", "code": "broken"})
    assert judged(*chat("hello", *said, error, status="failed", finish_reason="tool_error")) == wrong


@pytest.mark.parametrize(("ratio", "wrong"), [(0.0, set()), (0.8, {"BL-TURN-17"})])
def test_a_short_history_may_grow(ratio: float, wrong: set[str]) -> None:
    """A summary may be longer than what it stands for; the ratio is not below nought then."""
    told = {"compaction_id": "c", "summary_preview": "", "summary_full": "", "archived_count": 1, "trigger": "manual"}
    told |= {"tokens_before": 5, "tokens_after": 9, "saved_ratio": ratio}
    reel = RecordingBuilder("blade")
    shown = turn(0, "system", "completed", **{**told, "kind": "compaction"})
    reel.ask("GET", f"/api/sessions/{SESSION}/messages", [{**shown, "failure_reason": None}])
    assert set(reel.failed()) == wrong


@pytest.mark.parametrize(
    ("goes_on", "wrong"), [("text", set()), ("question", set()), ("silence", {"BL-FLOW-18", "BL-FLOW-24"})]
)
def test_an_answer_may_lead_to_another_question(goes_on: str, wrong: set[str]) -> None:
    reel = RecordingBuilder("blade")
    reel.send("chat:send", {"session_id": SESSION, "message": "hello"})
    reel.hear(*chat("hello", *asked(), **PAUSE))
    answer = {"tool_call_id": "tc_2", "selections": {"0": [0]}, "custom": {}}
    reel.send("chat:send", {"session_id": SESSION, "message": "", "askuser_answer": answer})
    again = call(ASK, "awaiting_answer", 3)
    paused = turn(5, "assistant", "paused", again)
    data = {"tool_call_id": "tc_3", "arguments": QUESTION}
    pause = {**PAUSE, "pause_tool_data": data} if goes_on == "question" else {}
    following = {
        "text": replied(5),
        "question": assistant(5, patch(5, "add_tool_call", again), end=paused),
        "silence": assistant(5, end=turn(5, "assistant", "completed")),
    }
    user = turn(4, "user", "completed")
    reel.hear(("chat:start", {"session_id": SESSION}), ("turn:start", user), ("turn:end", user), *following[goes_on])
    reel.hear(chat("", **pause)[-1])
    assert set(reel.failed()) == wrong


@pytest.mark.parametrize(
    ("reason", "output", "wrong"),
    [
        ("completed", "Well.", set()),
        ("max_turns", "Well.", set()),
        ("stop", "Well.", {"BL-FLOW-26"}),
        ("completed", "Other.", {"BL-FLOW-26"}),
    ],
)
def test_a_headless_chat_may_run_out_of_turns(reason: str, output: str, wrong: set[str]) -> None:
    events = chat("hello", *replied(1), result={"output": output}, finish_reason=reason)
    assert judged(*events, headless=True) - {"BL-WS-08"} == wrong


def test_a_headless_chat_that_asks_has_no_result_yet() -> None:
    assert judged(*chat("hello", *asked(), **PAUSE), headless=True) == set()


@pytest.mark.parametrize("is_headless", [True, False])
def test_the_result_comes_with_the_answer(is_headless: bool) -> None:
    """Who answers the question of a headless chat gets its result; who did not ask for one does not."""
    reel = RecordingBuilder("blade")
    reel.send("chat:send", {"session_id": SESSION, "message": "hello", "headless": is_headless})
    reel.hear(*chat("hello", *asked(), **PAUSE))
    answer = {"tool_call_id": "tc_2", "selections": {"0": [0]}, "custom": {}}
    reel.send("chat:send", {"session_id": SESSION, "message": "", "askuser_answer": answer})
    user = turn(4, "user", "completed")
    reel.hear(("chat:start", {"session_id": SESSION}), ("turn:start", user), ("turn:end", user), *replied(5))
    reel.hear(chat("", result={"output": "Well."})[-1])
    assert set(reel.failed()) == (set() if is_headless else {"BL-WS-08"})


@pytest.mark.parametrize(
    ("end", "wrong"),
    [
        ({"status": "completed", "result": {"output": "Well."}}, set()),
        ({"status": "completed", "result": None, **PAUSE}, set()),
        ({"status": "failed", "result": {"err_msg": "It broke."}}, set()),
        ({"status": "completed", "result": None}, {"BL-FLOW-28"}),
    ],
)
def test_a_chat_over_rest_may_fail_or_ask(end: Body, wrong: set[str]) -> None:
    reel = RecordingBuilder("blade")
    told = {"session_id": SESSION, "finish_reason": "completed", **end}
    reel.ask("POST", f"/api/sessions/{SESSION}/chat", told, sent={"message": "hello"})
    assert set(reel.failed()) == wrong


def test_a_compaction_has_no_words_of_the_users() -> None:
    """A chat that chat:compact starts is not held against the message before it."""
    reel = RecordingBuilder("blade")
    reel.send("chat:send", {"session_id": SESSION, "message": "hello"})
    reel.hear(*chat("hello", *replied(1)))
    reel.send("chat:compact", {"session_id": SESSION})
    reel.hear(("chat:start", {"session_id": SESSION}), chat("")[-1])
    assert reel.failed() == {}


def test_a_poll_may_bring_a_whole_chat() -> None:
    """A chat that one poll brings does not come before itself."""
    reel = RecordingBuilder("blade")
    reel.poll(*chat("hello", *asked(), **PAUSE))
    kept = turn(1, "assistant", "paused", call(ASK, "awaiting_answer", 2))
    reel.ask("GET", f"/api/sessions/{SESSION}/messages", [turn(0, "user", "completed", text="hello"), kept])
    assert "BL-GAP-16" not in reel.failed()


@pytest.mark.parametrize(
    ("subscribed", "wrong"), [({}, {"BL-GAP-30"}), ({"after_sequence": 0}, {"BL-GAP-30"}), ({"resume": True}, set())]
)
def test_the_past_is_told_to_those_who_resume(subscribed: Body, wrong: set[str]) -> None:
    """What a connection was told comes again only if it subscribes to resume."""
    reel, told = RecordingBuilder("blade"), [("session:updated", {"session_id": SESSION, "stream_sequence": 1})]
    for wanted in ({}, subscribed):
        reel.send("session:subscribe", {"session_id": SESSION, **wanted})
        reel.hear(*told)
    assert set(reel.failed()) == wrong
