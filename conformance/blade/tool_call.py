"""Section tool_call: calls as patches announce them, turns show them and the history keeps them."""

from typing import Any

from conformance.blade.chat import FORK
from conformance.blade.damaged_members import sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import Scene, scene
from conformance.blade.turn_sources import distinct_calls
from conformance.kit import expect
from conformance.kit.case import requirement

STATUSES = ("pending", "done", "error", "cancelled", "awaiting_answer")
NEEDED = ("id", "tool_name", "display_name", "arguments", "status")


def _shown(seen: Scene) -> list[Any]:
    """The calls of a scene, as turn:end shows them and the history keeps them."""
    ended = [call for turn in seen.turns if turn.end for call in turn.end["tool_calls"]]
    return ended + [call for turn in seen.kept() for call in turn["tool_calls"]]


async def _calls(exam: BladeExamination, *situations: str) -> list[Any]:
    """The calls of these situations, as they are shown."""
    found: list[Any] = []
    for situation in situations:
        seen = await scene(exam, situation)
        seen.chat().call()
        found += _shown(seen)
    return found


@requirement("BL-TC-01")
async def a_call_is_complete(exam: BladeExamination) -> None:
    """A call has all its fields wherever it is shown."""
    for call in await _calls(exam, "tool", *exam.profile.having(("ask", "fork"))):
        expect.subset("the members of a call", NEEDED, call)


@requirement("BL-TC-02")
async def calls_have_ids_of_their_own(exam: BladeExamination) -> None:
    """The same tool called in two chats has two ids and one name."""
    seen = await scene(exam, "tool")
    calls = [chat.call() for chat in seen.chats]
    expect.equal("as many ids as calls", len(calls), len({call["id"] for call in calls}))
    expect.equal("the names of the same tool", 1, len({call["tool_name"] for call in calls}))


@requirement("BL-TC-03")
async def calls_can_be_shown(exam: BladeExamination) -> None:
    """display_name is a string that is not empty."""
    seen = await scene(exam, "tool")
    for call in (*seen.chat().calls, *_shown(seen)):
        expect.that(bool(call["display_name"].strip()), "a display_name", call)


@requirement("BL-TC-04")
async def arguments_are_json_in_a_string(exam: BladeExamination) -> None:
    """Whatever the tool, arguments is a string that holds JSON."""
    for call in await _calls(exam, "rounds", "ask"):
        expect.parsed(sound(call["arguments"]), f"the arguments of {call['tool_name']}")


@requirement("BL-TC-05")
async def a_status_is_one_of_five(exam: BladeExamination) -> None:
    """Calls that are finished and waiting have one of the five statuses."""
    for call in await _calls(exam, "tool", "ask"):
        expect.member("the status of a call", STATUSES, sound(call["status"]))


@requirement("BL-TC-06")
async def a_status_says_what_a_call_is_doing(exam: BladeExamination) -> None:
    """A call is done when finished, awaiting_answer while asked, done when answered, and kept so."""
    seen = await scene(exam, "tool")
    for call in _shown(seen):
        expect.equal("the status of a finished call", "done", call["status"])
    asked = await scene(exam, "ask")
    waiting = [turn.final["tool_calls"] for turn in asked.chat().replies if turn.calls]
    for call in (call for calls in waiting for call in calls if call["tool_name"] == "AskUserQuestion"):
        expect.equal("the status of an open question", "awaiting_answer", call["status"])
    asked.chat(1)
    for call in (call for turn in asked.kept() for call in turn["tool_calls"]):
        is_over = call["status"] not in ("pending", "awaiting_answer")
        expect.that(is_over, "no call to be pending or to wait when all questions are answered", call)


@requirement("BL-TC-07")
async def results_are_kept(exam: BladeExamination) -> None:
    """A finished call has, at turn:end and in the history, the result its patch told, and no other duration."""
    for situation in ("tool", *exam.profile.having(("ask", "ui", "bridge"))):
        seen = await scene(exam, situation)
        for chat in seen.chats:
            distinct_calls(chat)
        told = {item["tool_call_id"]: item for chat in seen.chats for item in chat.results}
        for call in (call for call in _shown(seen) if call["id"] in told and call["status"] != "awaiting_answer"):
            expect.equal("the result of the call", told[call["id"]]["result"], call.get("result"))
            took = told[call["id"]].get("duration_ms")
            expect.that(call.get("duration_ms") in (None, took) or took is None, f"duration_ms: {took}", call)


@requirement("BL-TC-08")
async def a_waiting_fork_names_the_question(exam: BladeExamination) -> None:
    """While a sub-agent's question is open, pending_question_ref, where there is one, names that question."""
    seen = await scene(exam, "fork_ask")
    distinct_calls(seen.chat())
    question = seen.chat().question()
    for call in (call for turn in seen.kept(0) for call in turn["tool_calls"]):
        ref = call.get("pending_question_ref")
        if ref is not None:
            expect.equal("the call that has the reference", FORK, call["tool_name"])
            expect.equal("child_tool_call_id", question["id"], ref["child_tool_call_id"])
