"""Recordings of AAP: what a server may do that the examiners never ask for, and the wrong beside the right."""

from typing import Any

import pytest

from tests.support.conformance.handmade_recordings import RecordingBuilder

TOOL = {"description": "Does something.", "parameters": {"type": "object"}}
META = {
    "version": 3,
    "agents": [
        {
            "name": "one",
            "version": "1.0.0",
            "tools": [{"name": "clock", **TOOL}, {"name": "calc", **TOOL}],
            "capabilities": {
                "stream": {"delta": {}, "message": {}, "none": {}},
                "history": {"full": {}},
                "application": {"tools": {}},
            },
        }
    ],
}
SESSION = "/sessions/sess_1"
Call = dict[str, Any]


def begun(*tools: Call) -> RecordingBuilder:
    """A session with these server tools and one tool of the client."""
    reel = RecordingBuilder("aap")
    reel.ask("GET", "/meta", META)
    sent = {"agent": {"name": "one", "tools": list(tools)}, "tools": [{"name": "lookup", **TOOL}]}
    reel.ask("POST", "/sessions", {"sessionId": "sess_1"}, sent=sent, status=201)
    return reel


def call(name: str, number: int = 1) -> Call:
    return {"toolCallId": f"call_{number}", "name": name, "input": {}}


def use(name: str, number: int = 1) -> Call:
    return {"role": "assistant", "content": [{"type": "tool_use", **call(name, number)}]}


def result(content: str = "done", number: int = 1) -> Call:
    return {"role": "tool", "toolCallId": f"call_{number}", "content": content}


def user(text: str) -> Call:
    return {"role": "user", "content": text}


def said(text: str) -> Call:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def streamed(
    reel: RecordingBuilder, *events: tuple[str, Call], stop: str = "end_turn", messages: list[Call] | None = None
) -> None:
    sent = {"stream": "delta", "messages": messages or [user("hello")]}
    told = [("turn_start", {}), *events, ("turn_stop", {"stopReason": stop})]
    reel.stream("POST", f"{SESSION}/turns", *told, sent=sent)


def told(reel: RecordingBuilder, sent: list[Call], answer: list[Call], stop: str = "end_turn") -> None:
    """A turn in the mode none."""
    reel.ask("POST", f"{SESSION}/turns", {"stopReason": stop, "messages": answer}, sent={"messages": sent})


def history(reel: RecordingBuilder, *messages: Call) -> None:
    reel.ask("GET", f"{SESSION}/history?type=full", {"history": {"full": list(messages)}})


@pytest.mark.parametrize(("name", "wrong"), [("AskUserQuestion", set()), ("calc", {"AAP-SESS-03"})])
def test_only_tools_of_meta_can_be_disabled(name: str, wrong: set[str]) -> None:
    """What /meta does not declare nobody can enable, and so nobody has disabled it."""
    reel = begun({"name": "clock"})
    streamed(reel, ("tool_call", call(name)), stop="tool_use")
    assert set(reel.failed()) == wrong


@pytest.mark.parametrize(("name", "wrong"), [("Agent", set()), ("clock", {"AAP-TOOL-02", "AAP-TOOL-03"})])
def test_only_tools_of_meta_can_be_trusted(name: str, wrong: set[str]) -> None:
    """A tool of the agent's own runs as the agent likes; one that was enabled without trust does not."""
    reel = begun({"name": "clock"})
    answered = {"toolCallId": "call_1", "content": "noon"}
    streamed(reel, ("tool_call", call(name)), ("tool_result", answered), ("text_delta", {"delta": "noon"}))
    assert set(reel.failed()) == wrong


@pytest.mark.parametrize("is_ended", [True, False])
def test_who_ends_a_turn_by_other_means_changes_the_history(is_ended: bool) -> None:
    """A request that the protocol does not know may do anything; without it open calls stay open."""
    reel = begun()
    streamed(reel, ("tool_call", call("lookup")), stop="tool_use")
    if is_ended:
        reel.ask("DELETE", f"{SESSION}/turns/current", status=204)
    history(reel, user("hello"), use("lookup"), result("The turn was interrupted."))
    assert set(reel.failed()) == (set() if is_ended else {"AAP-HIST-04", "AAP-SSE-08"})


def test_a_request_that_was_refused_changes_nothing() -> None:
    reel = begun()
    streamed(reel, ("tool_call", call("lookup")), stop="tool_use")
    reel.ask("DELETE", f"{SESSION}/turns/current", {"error": "there is no such thing"}, status=404)
    history(reel, user("hello"), use("lookup"), result("The turn was interrupted."))
    assert {"AAP-HIST-04", "AAP-SSE-08"} <= set(reel.failed())


@pytest.mark.parametrize("text", ["Well.", "Quite."])
def test_calls_that_are_passed_over_may_be_settled(text: str) -> None:
    """A user who goes on to something else leaves calls open: the server may say in the history what became of them."""
    reel = begun()
    told(reel, [user("hello")], [use("lookup")], "tool_use")
    history(reel, user("hello"), use("lookup"))
    told(reel, [user("never mind")], [said("Well.")])
    kept = [user("hello"), use("lookup"), result("cancelled"), user("never mind"), said("Well.")]
    history(reel, *kept)
    told(reel, [user("bye")], [said("Well.")])
    history(reel, *kept, user("bye"), said(text))
    assert set(reel.failed()) == (set() if text == "Well." else {"AAP-SSE-08"})


def test_results_nobody_gave_are_not_in_a_history() -> None:
    reel = begun()
    told(reel, [user("hello")], [said("Well.")])
    history(reel, user("hello"), result("cancelled"), said("Well."))
    assert {"AAP-HIST-03", "AAP-SSE-08"} <= set(reel.failed())


@pytest.mark.parametrize(("name", "wrong"), [("Agent", set()), ("lookup", {"AAP-TOOL-01", "AAP-TOOL-06"})])
def test_results_are_taken_for_tools_of_the_client(name: str, wrong: set[str]) -> None:
    """Whether the client may answer for a tool of the agent's own is the server's to say."""
    reel = begun()
    streamed(reel, ("tool_call", call(name)), stop="tool_use")
    reel.ask("POST", f"{SESSION}/turns", {"error": "it is not pending"}, sent={"messages": [result()]}, status=409)
    assert set(reel.failed()) == wrong


@pytest.mark.parametrize("is_answer", [True, False])
def test_a_turn_that_answers_may_begin_with_a_result(is_answer: bool) -> None:
    """What was permitted runs before the agent speaks; after a message of the user's nothing does."""
    reel = begun({"name": "clock", "trust": True}, {"name": "calc"})
    told(reel, [user("hello")], [use("calc")], "tool_use")
    answer = {"role": "tool_permission", "toolCallId": "call_1", "granted": True}
    body = [result("42"), use("clock", 2), result("noon", 2), said("Well.")]
    told(reel, [answer] if is_answer else [user("go on")], body)
    assert set(reel.failed()) == (set() if is_answer else {"AAP-NONE-01"})
