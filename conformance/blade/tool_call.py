"""Section tool_call: calls as patches announce them, turns show them and the history keeps them."""

from typing import Any

from conformance.blade.chat import FORK
from conformance.blade.examination import BladeExamination
from conformance.blade.snapshot import plain_call
from conformance.kit import expect
from conformance.kit.case import requirement

STATUSES = ("pending", "done", "error", "cancelled", "awaiting_answer")


async def _calls(exam: BladeExamination, *situations: str) -> list[Any]:
    """All calls of these situations, announced, ended and kept."""
    talk = await exam.open()
    found: list[Any] = []
    for situation in situations:
        chat = await talk.play(situation)
        chat.call()
        found += [*chat.calls, *(call for turn in chat.turns if turn.end for call in turn.end["tool_calls"])]
    return found + [call for turn in await talk.messages() for call in turn["tool_calls"]]


@requirement("BL-TC-01")
async def a_call_is_complete(exam: BladeExamination) -> None:
    """A call has all its fields wherever it is shown, and is shown in turn:end and in the history."""
    talk = await exam.open()
    chat = await talk.play("tool")
    kept = {call["id"]: call for turn in await talk.messages() for call in turn["tool_calls"]}
    for turn in chat.turns:
        expect.equal(
            "the calls of turn:end", [it["id"] for it in turn.calls], [it["id"] for it in turn.final["tool_calls"]]
        )
        for call in turn.final["tool_calls"]:
            expect.equal(
                f"the call {call['id']} in the history", plain_call(call), plain_call(kept.get(call["id"], call))
            )
            expect.that(call["id"] in kept, f"{call['id']} in the history", sorted(kept))


@requirement("BL-TC-02")
async def calls_have_ids_of_their_own(exam: BladeExamination) -> None:
    """The same tool called in two chats has two ids and one name."""
    talk = await exam.open()
    calls = [(await talk.play("tool")).call() for _ in range(2)]
    expect.that(calls[0]["id"] != calls[1]["id"], "two calls to have two ids", calls)
    expect.equal("the name of the same tool", calls[0]["tool_name"], calls[1]["tool_name"])


@requirement("BL-TC-03")
async def calls_can_be_shown(exam: BladeExamination) -> None:
    """display_name is a string that is not empty, the same wherever the call is shown."""
    shown: dict[str, str] = {}
    for call in await _calls(exam, "tool"):
        expect.that(bool(call["display_name"].strip()), "a display_name", call)
        expect.equal("the display_name", shown.setdefault(call["id"], call["display_name"]), call["display_name"])


@requirement("BL-TC-04")
async def arguments_are_json_in_a_string(exam: BladeExamination) -> None:
    """Whatever the tool, arguments is a string that holds a JSON object."""
    for call in await _calls(exam, "rounds", "ask"):
        held = expect.parsed(call["arguments"], f"the arguments of {call['tool_name']}")
        expect.that(isinstance(held, dict), "arguments to hold an object", call)


@requirement("BL-TC-05")
async def a_status_is_one_of_five(exam: BladeExamination) -> None:
    """Calls that are announced, finished and waiting have one of the five statuses."""
    for call in await _calls(exam, "tool", "ask"):
        expect.member("the status of a call", STATUSES, call["status"])


@requirement("BL-TC-06")
async def a_status_says_what_a_call_is_doing(exam: BladeExamination) -> None:
    """A call is pending when announced, done when finished, awaiting_answer while asked, done when answered."""
    talk = await exam.open()
    chat = await talk.play("tool")
    expect.equal("the status of a new call", "pending", chat.call()["status"])
    expect.equal("the statuses at turn:end", ["done"], [it["status"] for it in _ended(chat)])
    chat = await talk.play("ask")
    expect.equal("the status of a new question", "awaiting_answer", chat.question()["status"])
    expect.equal("the statuses at turn:end", ["awaiting_answer"], [it["status"] for it in _ended(chat)])
    await talk.answer(chat.question())
    kept = [call["status"] for turn in await talk.messages() for call in turn["tool_calls"]]
    expect.that("pending" not in kept, "no call to be pending when all chats have ended", kept)
    expect.that("awaiting_answer" not in kept, "no call to wait when all questions are answered", kept)


def _ended(chat: Any) -> list[Any]:
    return [call for turn in chat.replies for call in turn.final["tool_calls"]]


@requirement("BL-TC-07")
async def results_are_kept(exam: BladeExamination) -> None:
    """A finished call has, at turn:end and in the history, the result its patch told, and no other duration."""
    talk = await exam.open()
    chat = await talk.play("tool")
    results = list(chat.results)
    if exam.profile.having(("ask",)):
        results += (await talk.answer((await talk.play("ask")).question())).results
    told = {item["tool_call_id"]: item for item in results}
    kept = [call for turn in await talk.messages() for call in turn["tool_calls"]]
    expect.that(bool(chat.results) and bool(kept), "a call with a result", chat.shown)
    for call in (call for call in (*_ended(chat), *kept) if call["id"] in told):
        expect.equal("the result of the call", told[call["id"]]["result"], call.get("result"))
        if call.get("duration_ms") is not None:
            expect.equal("the duration of the call", told[call["id"]].get("duration_ms"), call["duration_ms"])


@requirement("BL-TC-08")
async def a_waiting_fork_names_the_question(exam: BladeExamination) -> None:
    """While a sub-agent's question is open, pending_question_ref, where there is one, names that question."""
    talk = await exam.open()
    chat = await talk.play("fork_ask")
    question = chat.question()
    for turn in await talk.messages():
        for call in turn["tool_calls"]:
            ref = call.get("pending_question_ref")
            if ref is not None:
                expect.equal("the call that has the reference", FORK, call["tool_name"])
                expect.equal("child_tool_call_id", question["id"], ref["child_tool_call_id"])
