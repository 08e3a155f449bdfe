"""Section streaming, the modes: delta, message and none tell the same story."""

from typing import Any

from conformance.aap.conversation import Conversation, permission, result
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import Exchange, of_messages, plain, results_too_late
from conformance.aap.turn import Turn
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("AAP-SSE-08")
async def a_stream_tells_what_the_history_keeps(exam: AapExamination) -> None:
    """In every mode what the client was told of a turn is what the full history has of it."""
    talk, prompts = await _repeatable_scripts(exam)
    for mode in talk.agent.modes:
        for prompt in prompts:
            before = len(await talk.history())
            turn = await talk.say(prompt, mode)
            kept = (await talk.history())[before:]
            expect.equal(f"the turn as the history has it ({mode})", of_messages(kept).shown, turn.exchange.shown)
            late = results_too_late(turn.events, kept)
            expect.equal(f"results that come after what the history has after them ({mode})", [], late)


@requirement("AAP-SSE-08")
async def every_mode_tells_the_same(exam: AapExamination) -> None:
    """The same prompts in delta, message and none give the same texts, thoughts, calls and results."""
    if not exam.profile.repeatable:
        raise NotTestable("the profile says that replies are not repeatable")
    told: dict[str, Any] = {}
    for mode in (await exam.agent()).modes:
        talk, prompts = await _repeatable_scripts(exam)
        told[mode] = [(await talk.say(prompt, mode)).exchange.renamed().shown for prompt in prompts]
    _expect_alike(told)


def _expect_alike(told: dict[str, Any]) -> None:
    """What was told in one mode was told in all."""
    if len(told) < 2:
        raise NotTestable("the agent declares one mode only")
    (first, wanted), *others = told.items()
    for mode, seen in others:
        expect.equal(f"the mode {mode} to tell what {first} tells", wanted, seen)


@requirement("AAP-SSE-08")
async def a_resumed_turn_tells_what_the_history_keeps(exam: AapExamination) -> None:
    """In every mode parallel calls, and what follows their answers, are told as the full history has them."""
    for mode in (await exam.agent()).modes:
        talk = await exam.open_for_all_kinds()
        turn = await talk.say(exam.profile.prompt("parallel"), mode)
        asked = turn.call(exam.profile.server_tool("second_tool").name)
        mine = turn.call(exam.profile.client_spec["name"])
        after = await talk.post([permission(asked, True), result(mine, "mine")], mode)
        results = {**turn.exchange.results, **after.exchange.results, mine["toolCallId"]: plain("mine")}
        told = Exchange(turn.exchange.said + after.exchange.said, results)
        kept = of_messages(await talk.history())
        expect.equal(f"both streams as the history has them ({mode})", kept.shown, told.shown)


@requirement("AAP-NONE-01")
async def none_is_one_json_body(exam: AapExamination) -> None:
    """In the mode none the answer is application/json with the stop reason and the whole exchange, results included."""
    tool = exam.profile.server_tool("first_tool")
    talk = await exam.open(tools={tool.name: True})
    talk.agent.needs_mode("none")
    reply = await talk.attempt({"messages": [{"role": "user", "content": tool.prompt}], "stream": "none"})
    expect.equal("the content type", "application/json", expect.status(reply, 200).content_type)
    body = reply.json()
    exam.schemas.fit("turn", body, f"the answer to {reply.asked}")
    turn = Turn("none", reply.asked, body=body).stopped("end_turn")
    call = turn.call(tool.name)["toolCallId"]
    roles = [message["role"] for message in body["messages"]]
    expect.equal("the order of call, result and reply", ["assistant", "tool", "assistant"], _without_repeats(roles))
    expect.equal("the calls with a result", [call], list(turn.exchange.results))


def _without_repeats(names: list[str]) -> list[str]:
    return [name for place, name in enumerate(names) if place == 0 or name != names[place - 1]]


async def _repeatable_scripts(exam: AapExamination) -> tuple[Conversation, list[str]]:
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: True})
    return talk, [exam.profile.prompt("text"), exam.profile.prompt("thinking"), tool.prompt]
