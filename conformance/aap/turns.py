"""Section turns: what may be posted, what it changes, and one turn at a time."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any
from uuid import uuid4

from conformance.aap import scenes
from conformance.aap.agent import MODES
from conformance.aap.conversation import Conversation, permission, result, user
from conformance.aap.examination import AapExamination, enabled
from conformance.aap.exchange import of_messages
from conformance.aap.scenes import FOUND, expect_asked
from conformance.aap.turn import ENDS, Event, Turn, expect_taken
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import Stream


@requirement("AAP-TURN-01")
async def a_turn_runs_in_every_declared_mode(exam: AapExamination) -> None:
    """In each declared mode the agent answers."""
    for mode in (await exam.agent()).modes:
        scene = (await scenes.told(exam, mode))[0]
        scene.turn.spoke(scene.found if isinstance(scene.found, list) else ())


@requirement("AAP-TURN-01")
async def without_a_mode_the_answer_is_json(exam: AapExamination) -> None:
    """Without a mode a turn is answered as in the mode none."""
    (await exam.agent()).needs_mode("none")
    reply = await (await exam.open()).attempt({"messages": [user(exam.profile.prompt("text"))]})
    if expect.status(reply, 200).content_type == "text/event-stream":
        expect.fail("the mode none if no mode is named", reply.content_type)
    exam.reader.whole(reply).spoke()


@requirement("AAP-TURN-05", formerly="AAP-TURN-01")
async def a_turn_needs_a_known_mode(exam: AapExamination) -> None:
    """An unknown mode, or one the agent does not declare, is a 4xx."""
    body = {"messages": [user(exam.profile.prompt("text"))]}
    for agent in await exam.every_agent():
        talk = await exam.open(agent=agent)
        is_declared = not exam.schemas.problems("capabilities", agent.told.get("capabilities", {}))
        for mode in ("firehose", 7, *(set(MODES) - set(agent.modes))):
            why = f"{agent.name} does not declare the mode {mode}"
            with expect.owned("AAP-TURN-05" if is_declared else "AAP-META-04"):
                expect.refused(await talk.attempt({**body, "stream": mode}), why)


@requirement("AAP-TURN-02")
async def a_turn_takes_a_message_or_answers(exam: AapExamination) -> None:
    """A user message of blocks is taken, and so are answers to the calls that are pending."""
    agent = await exam.agent()
    text = [{"type": "text", "text": exam.profile.prompt("text")}]
    bodies = [{"messages": [user(content)], "stream": agent.usual_mode} for content in (text, text[0]["text"])]
    for body in bodies:
        expect.status(await (await exam.open()).attempt(body), 200)
    if not agent.takes_client_tools:
        return
    spec = exam.profile.client_spec
    talk = await exam.open(client_tools=[spec])
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
    body = {"messages": [result(turn.call(spec["name"]), "found")], "stream": agent.usual_mode}
    expect_taken(await talk.attempt(body), "AAP-TOOL-01")


BAD_MESSAGES: tuple[tuple[Any, str], ...] = (
    ([], "the list is empty"),
    ([{"role": "wizard", "content": "Hello"}], "the role is unknown"),
    ([{"role": "assistant", "content": "Hello"}], "a client does not speak as the assistant"),
    ([{"role": "system", "content": "Hello"}], "a turn takes no system message"),
    ([user("One"), user("Two")], "a turn takes one user message"),
    ([{"role": "user"}], "the message has no content"),
    ([{"role": "tool", "toolCallId": "no-such-call", "content": "x"}], "no such call is pending"),
    ([{"role": "tool_permission", "toolCallId": "no-such-call", "granted": True}], "no such call is pending"),
)


@requirement("AAP-TURN-06", formerly="AAP-TURN-02")
async def a_refused_turn_changes_nothing(exam: AapExamination) -> None:
    """Whatever is wrong with the messages, the refusal leaves history and configuration as they were."""
    tool = exam.profile.server_tool("first_tool")
    talk = await exam.open(tools={tool.name: True})
    await talk.say(exam.profile.prompt("text"))
    before = await _everything(talk)
    override: dict[str, Any] = {"agent": {"tools": []}}
    for messages, why in BAD_MESSAGES:
        expect.refused(await talk.attempt({"messages": messages, **override}), why)
        expect.equal(f"the session after a refusal ({why})", before, await _everything(talk))
    expect.refused(await talk.attempt(override), "there are no messages")
    expect.equal("the session after a refusal (no messages)", before, await _everything(talk))


@requirement("AAP-TURN-06", formerly="AAP-TURN-02")
async def only_pending_calls_can_be_answered(exam: AapExamination) -> None:
    """While a call is open an answer to another is refused and changes nothing; an answered call is not open."""
    talk = await exam.open(client_tools=[exam.profile.client_spec])
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
    call = turn.call(exam.profile.client_spec["name"])
    before = await _everything(talk)
    other = {"role": "tool", "toolCallId": f"no-such-{uuid4().hex}", "content": "x"}
    for messages in ([other], [result(call, "right"), other]):
        expect.refused(await talk.attempt({"messages": messages}), "one of the answers is to a call nobody made")
        expect.equal("the session after a wrong answer", before, await _everything(talk))
    await talk.post([result(call, "right")])
    before = await _everything(talk)
    for again in (result(call, "once more"), permission(call, True)):
        expect.refused(await talk.attempt({"messages": [again]}), "the call was answered before")
        expect.equal("the session after a second answer", before, await _everything(talk))


@requirement("AAP-TURN-06", formerly="AAP-TURN-02")
async def answers_may_come_one_by_one(exam: AapExamination) -> None:
    """An answer to one of several open calls is taken, the others staying open, or refused and changes nothing."""
    spec = exam.profile.client_spec
    talk = await exam.open_for_all_kinds()
    turn = await talk.say(exam.profile.prompt("parallel"))
    mine, asked = turn.call(spec["name"]), turn.call(exam.profile.server_tool("second_tool").name)
    turn.stopped("tool_use", owner="AAP-TOOL-02")
    expect_asked(turn, asked)
    answers, mode = [result(mine, FOUND), permission(asked, True)], talk.agent.usual_mode
    before = await _everything(talk)
    reply = await talk.attempt({"messages": answers[:1], "stream": mode})
    if 400 <= reply.status < 500:
        expect.equal("the session after the refusal of one answer of several", before, await _everything(talk))
        await talk.post(answers)
        return
    expect_taken(reply, "AAP-TURN-06")
    again = await talk.attempt({"messages": answers[:1]})
    expect.refused(again, "the call was answered before, while another is still open")
    expect_taken(await talk.attempt({"messages": answers[1:], "stream": mode}), "AAP-TURN-06")
    if "full" in talk.agent.history_types:
        kept = [item["toolCallId"] for item in await talk.history() if item["role"] == "tool"]
        is_kept = (await scenes.returned(exam, mode)).result_of(spec["name"]) is not None
        owner = None if is_kept else "AAP-TOOL-01"
        expect.that(mine["toolCallId"] in kept, "the client's result in the history", kept, owner)


@requirement("AAP-TURN-03")
async def options_merge_and_last(exam: AapExamination) -> None:
    """An option set in a turn joins the one set at creation; both are still set after the next turn."""
    agent = await exam.agent()
    visible = [option for option in agent.options() if option["type"] != "secret"]
    if len(visible) < 2:
        raise NotTestable(f"the agent {agent.name!r} has fewer than two options whose values are shown")
    kept, changed = visible[0]["name"], visible[1]["name"]
    values = [exam.value(option) for option in visible[:2]]
    talk = await exam.open(agent_config={"options": {kept: values[0]}})
    await talk.say(exam.profile.prompt("text"), agent={"options": {changed: values[1]}})
    for moment in ("after the turn that set one", "after a further turn"):
        shown = (await talk.info())["agent"].get("options", {})
        seen = {name: shown.get(name) for name in (kept, changed)}
        expect.equal(f"the options {moment}", {kept: values[0], changed: values[1]}, seen)
        await talk.say(exam.profile.prompt("text"))


@requirement("AAP-TURN-03")
async def server_tools_are_replaced_and_last(exam: AapExamination) -> None:
    """agent.tools of a turn take the place of those enabled before, for this turn and the next."""
    old, new = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={old.name: True})
    turn = await talk.say(new.prompt, agent={"tools": enabled({new.name: True})})
    await talk.called(turn, new.name, "AAP-TURN-03")
    await talk.called(await talk.say(new.prompt), new.name, "AAP-TURN-03")
    turn = await talk.say(old.prompt)
    names = [call["name"] for call in turn.calls]
    expect.that(old.name not in names, f"no call of {old.name}, which was replaced", turn.shown)


@requirement("AAP-TURN-03")
async def client_tools_are_replaced_and_last(exam: AapExamination) -> None:
    """tools of a turn take the place of those declared before; an empty list leaves the agent none to call."""
    spec = exam.profile.client_spec
    changed = {**spec, "description": f"Another description, {uuid4().hex}."}
    talk = await exam.open(client_tools=[spec, {**spec, "name": f"{spec['name']}_spare"}])
    shown = [tool["name"] for tool in (await talk.info()).get("tools", [])]
    expect.that(len(shown) == 2, "the client tools of the session", shown, "AAP-SESS-07")
    await talk.say(exam.profile.prompt("text"), tools=[changed])
    for _ in range(2):
        shown = [(tool["name"], tool["description"]) for tool in (await talk.info()).get("tools", [])]
        expect.equal("the client tools", [(changed["name"], changed["description"])], shown)
        await talk.say(exam.profile.prompt("text"))
    turn = await talk.say(exam.profile.prompt("client_tool"), tools=[])
    expect.equal("the calls of an agent whose client tools were taken away", [], turn.calls)
    expect.equal("the client tools", [], (await talk.info()).get("tools", []))


@requirement("AAP-TURN-03")
async def the_agent_stays_the_same(exam: AapExamination) -> None:
    """Another agent's name in a turn is refused or ignored; the session keeps its agent."""
    talk = await exam.open()
    others = [agent.name for agent in await exam.agents() if agent.name != talk.agent.name]
    for name in (*others, f"nobody-{uuid4().hex}"):
        body = {"messages": [user(exam.profile.prompt("text"))], "agent": {"name": name}}
        reply = await talk.attempt({**body, "stream": talk.agent.usual_mode})
        expect.that(reply.status < 500, f"{reply.asked} to be refused or to ignore the name", reply.told)
        expect.equal("agent.name", talk.agent.name, (await talk.info())["agent"]["name"])


@requirement("AAP-TURN-04")
async def one_turn_at_a_time(exam: AapExamination) -> None:
    """While a turn runs another is refused with 409; the first ends undisturbed and the history knows only it."""
    talk = await exam.open()
    agent, prompt, intruder = talk.agent, exam.profile.prompt("slow"), f"I interrupt, {uuid4().hex}"
    mode = agent.streamed_modes[-1]
    async with talk.stream([user(prompt)], mode) as stream:
        first = await exam.reader.next(await exam.reader.opened(stream))
        expect.that(first is not None, f"events in the stream of {stream.asked}", "none", ENDS)
        async with expect.while_it_runs(partial(_was_over, talk, stream, mode, first, intruder)):
            for other in agent.modes:
                refusal = await talk.attempt({"messages": [user(intruder)], "stream": other})
                expect.status(refusal, 409)
        turn = await _continued(talk, stream, mode, first)
    turn.stopped("end_turn", owner="AAP-TURN-04" if turn.stop == "error" else None)
    history = await talk.history()
    expect.that(intruder not in str(history), "no trace of the refused turn in the history", history)
    roles = [item["role"] for item in history if item["role"] == "user"]
    expect.equal("the messages of the user in the history", ["user"], roles)


@requirement("AAP-TURN-04")
async def an_ended_turn_makes_room(exam: AapExamination) -> None:
    """As soon as a turn has ended, by itself or by failing, the next one is taken."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        for _ in range(2):
            await talk.say(exam.profile.prompt("text"), mode)
    if exam.profile.prompts.fail is not None:
        mode = talk.agent.streamed_modes[-1]
        await talk.say(exam.profile.prompts.fail, mode, ends=await scenes.ends(exam, mode))
        await talk.say(exam.profile.prompt("text"))


async def _continued(talk: Conversation, stream: Stream, mode: str, first: Event | None) -> Turn:
    """The turn of a stream of which the first event was read before."""
    rest = await talk.reader.streamed(stream, mode)
    return replace(rest, events=(*([first] if first else ()), *rest.events))


async def _was_over(talk: Conversation, stream: Stream, mode: str, first: Event | None, intruder: str) -> bool:
    """Whether the history has all that the turn of the stream said before what the intruder said."""
    if "full" not in talk.agent.history_types:
        return False
    with suppress(Failed):
        kept = await talk.history()
        before = of_messages(list(takewhile(lambda item: intruder not in str(item), kept))[1:]).said
        if before and intruder in str(kept):
            turn = await _continued(talk, stream, mode, first)
            return turn.stop == "end_turn" and turn.exchange.said == before
    return False


async def _everything(talk: Conversation) -> Any:
    """What the server shows of the session, with its history if there is one."""
    history = await talk.history() if "full" in talk.agent.history_types else None
    return {"session": await talk.info(), "history": history}
