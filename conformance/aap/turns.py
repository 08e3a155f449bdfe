"""Section turns: what may be posted, what it changes, and one turn at a time."""

from typing import Any
from uuid import uuid4

from conformance.aap.agent import MODES
from conformance.aap.conversation import Conversation, permission, result, user
from conformance.aap.examination import AapExamination, enabled
from conformance.aap.exchange import exact, of_events, of_messages
from conformance.aap.turn import next_event, opened, whole_turn
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("AAP-TURN-01")
async def a_turn_runs_in_every_declared_mode(exam: AapExamination) -> None:
    """Each declared mode answers in its own way, and without a mode the answer is JSON."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        (await talk.say(exam.profile.prompt("text"), mode)).stopped("end_turn").spoke()
    if "none" in talk.agent.modes:
        reply = await talk.attempt({"messages": [user(exam.profile.prompt("text"))]})
        whole_turn(reply, exam.schemas).stopped("end_turn").spoke()


@requirement("AAP-TURN-01")
async def a_turn_needs_a_session_and_a_known_mode(exam: AapExamination) -> None:
    """An unknown session is a 404; an unknown mode, or one the agent does not declare, is a 4xx."""
    body = {"messages": [user(exam.profile.prompt("text"))]}
    expect.status(await exam.http.ask("POST", f"/sessions/{exam.stranger()}/turns", body), 404)
    for agent in await exam.agents():
        talk = await exam.open(agent=agent)
        for mode in ("firehose", 7, *(set(MODES) - set(agent.modes))):
            why = f"{agent.name} does not declare the mode {mode}"
            expect.refused(await talk.attempt({**body, "stream": mode}), why)


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


@requirement("AAP-TURN-02")
async def a_refused_turn_changes_nothing(exam: AapExamination) -> None:
    """Whatever is wrong with the messages, the refusal leaves history and configuration as they were."""
    agent, tool = await exam.agent(), exam.profile.server_tool("first_tool")
    talk = await exam.open(tools={tool.name: True})
    (await talk.say(exam.profile.prompt("text"))).stopped("end_turn")
    before = await _everything(talk)
    override: dict[str, Any] = {"agent": {"tools": []}}
    for messages, why in BAD_MESSAGES:
        expect.refused(await talk.attempt({"messages": messages, **override}), why)
        expect.equal(f"the session after a refusal ({why})", before, await _everything(talk))
    expect.refused(await talk.attempt(override), "there are no messages")
    expect.equal("the session after a refusal (no messages)", before, await _everything(talk))
    (await talk.say(exam.profile.prompt("text"))).stopped("end_turn")
    agent.needs_full_history()


@requirement("AAP-TURN-02")
async def only_pending_calls_can_be_answered(exam: AapExamination) -> None:
    """While a call is open an answer to another is refused and changes nothing; an answered call is not open."""
    talk = await exam.open(client_tools=[exam.profile.client_spec])
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use")
    call = turn.call(exam.profile.client_spec["name"])
    before = await _everything(talk)
    other = {"role": "tool", "toolCallId": f"no-such-{uuid4().hex}", "content": "x"}
    for messages in ([other], [result(call, "right"), other]):
        expect.refused(await talk.attempt({"messages": messages}), "one of the answers is to a call nobody made")
        expect.equal("the session after a wrong answer", before, await _everything(talk))
    (await talk.post([result(call, "right")])).stopped("end_turn")
    before = await _everything(talk)
    for again in (result(call, "once more"), permission(call, True)):
        expect.refused(await talk.attempt({"messages": [again]}), "the call was answered before")
        expect.equal("the session after a second answer", before, await _everything(talk))


@requirement("AAP-TURN-02")
async def answers_may_come_one_by_one(exam: AapExamination) -> None:
    """An answer to one of several open calls is taken, the others staying open, or refused and changes nothing."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    for mode in (await exam.agent()).modes:
        talk = await exam.open(tools={one.name: False, other.name: False}, client_tools=[exam.profile.client_spec])
        turn = (await talk.say(exam.profile.prompt("parallel"), mode)).stopped("tool_use")
        mine = turn.call(exam.profile.client_spec["name"])
        first, *rest = [permission(call, True) for call in turn.open_calls if call != mine]
        answers = [first, result(mine, "mine"), *rest]
        before = await _everything(talk)
        reply = await talk.attempt({"messages": [first], "stream": mode})
        if 400 <= reply.status < 500:
            expect.equal("the session after the refusal of one answer of several", before, await _everything(talk))
            (await talk.post(answers, mode)).stopped("end_turn").spoke()
        else:
            expect.status(reply, 200)
            await _answer_the_rest(talk, answers, mode)


async def _answer_the_rest(talk: Conversation, answers: list[dict[str, Any]], mode: str) -> None:
    """Answer one call after the other; the first has its answer."""
    for place, answer in enumerate(answers[1:], 1):
        for done in answers[:place]:
            again = await talk.attempt({"messages": [done]})
            expect.refused(again, "the call was answered before, while others are still open")
        turn = await talk.post([answer], mode)
        turn.stopped("end_turn" if place == len(answers) - 1 else "tool_use")
        if answer["role"] == "tool":
            mine = answer["toolCallId"]
            expect.that(mine not in turn.exchange.results, "no result told of a client tool", turn.shown)
        if "full" in talk.agent.history_types:
            kept = [item["toolCallId"] for item in await talk.history() if item["role"] == "tool"]
            given = [item["toolCallId"] for item in answers[: place + 1] if item["role"] == "tool"]
            expect.subset("the results in the history so far", given, kept)
            early = [item["toolCallId"] for item in answers[place + 1 :] if item["toolCallId"] in kept]
            expect.equal("results in the history of calls that still wait", [], early)
    turn.spoke()


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
    (await talk.say(new.prompt, agent={"tools": enabled({new.name: True})})).call(new.name)
    (await talk.say(new.prompt)).call(new.name)
    turn = await talk.say(old.prompt)
    names = [call["name"] for call in turn.calls]
    expect.that(old.name not in names, f"no call of {old.name}, which was replaced", turn.shown)
    shown = [tool["name"] for tool in (await talk.info())["agent"].get("tools", [])]
    expect.equal("the enabled tools", [new.name], shown)


@requirement("AAP-TURN-03")
async def client_tools_are_replaced_and_last(exam: AapExamination) -> None:
    """tools of a turn take the place of those declared before; an empty list leaves the agent none to call."""
    spec = exam.profile.client_spec
    changed = {**spec, "description": f"Another description, {uuid4().hex}."}
    talk = await exam.open(client_tools=[spec, {**spec, "name": f"{spec['name']}_spare"}])
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
        events = [await next_event(await opened(stream), exam.schemas)]
        for other in agent.modes:
            refusal = await talk.attempt({"messages": [user(intruder)], "stream": other})
            expect.status(refusal, 409)
        while events[-1] is not None:
            events.append(await next_event(stream, exam.schemas))
    told = [event for event in events if event is not None]
    names = [name for name, _ in told]
    ends = [*names[:1], *names[1:][-1:]]
    expect.equal("the first and the last event of the first turn", ["turn_start", "turn_stop"], ends)
    expect.equal("the stop reason of the first turn", "end_turn", told[-1][1]["stopReason"])
    history = await talk.history()
    expect.that(intruder not in str(history), "no trace of the refused turn in the history", history)
    expect.equal("the roles in the history", ["user", "assistant"], [item["role"] for item in exact(history)])
    expect.equal("what the first turn said", of_events(told).shown, of_messages(history).shown)


@requirement("AAP-TURN-04")
async def an_ended_turn_makes_room(exam: AapExamination) -> None:
    """As soon as a turn has ended, by itself or by failing, the next one is taken."""
    talk = await exam.open()
    for mode in talk.agent.modes:
        for _ in range(3):
            (await talk.say(exam.profile.prompt("text"), mode)).stopped("end_turn")
    if exam.profile.prompts.fail is not None:
        (await talk.say(exam.profile.prompts.fail, talk.agent.streamed_modes[-1])).stopped("error")
        (await talk.say(exam.profile.prompt("text"))).stopped("end_turn")


async def _everything(talk: Conversation) -> Any:
    """What the server shows of the session, with its history if there is one."""
    history = await talk.history() if "full" in talk.agent.history_types else None
    return {"session": await talk.info(), "history": history}
