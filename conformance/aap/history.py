"""Section history: what was said can be read back, exactly."""

from typing import Any

from conformance.aap.agent import HISTORY_TYPES
from conformance.aap.conversation import Conversation, permission, result, user
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import blocks, exact, plain
from conformance.kit import expect
from conformance.kit.carried import CARRIED, HUGE, came_back, written
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("AAP-HIST-01")
async def only_the_asked_type_is_given(exam: AapExamination) -> None:
    """Each declared history type is given, alone, and holds what was said."""
    agent = await exam.agent()
    if not agent.history_types:
        raise NotTestable(f"the agent {agent.name!r} declares no history type")
    talk = await exam.open()
    await talk.say(exam.profile.prompt("text"))
    for kind in agent.history_types:
        reply = await exam.http.ask("GET", f"{talk.path}/history", query={"type": kind})
        body = expect.status(reply, 200).json()
        exam.schemas.fit("history", body, f"the answer to {reply.asked}")
        types = [name for name in HISTORY_TYPES if name in body["history"]]
        expect.equal(f"the types in the answer to {reply.asked}", [kind], types)
        expect.that(bool(body["history"][kind]), f"the history `{kind}` not to be empty after a turn", body)


@requirement("AAP-HIST-02")
async def a_history_must_be_asked_for_rightly(exam: AapExamination) -> None:
    """No type, an unknown type: 400. An undeclared type: 404. An unknown session: 404."""
    talk = await exam.open()
    expect.status(await exam.http.ask("GET", f"{talk.path}/history"), 400)
    for word in ("everything", "", "Full"):
        expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": word}), 400)
    for kind in HISTORY_TYPES:
        path = f"/sessions/{exam.stranger()}/history"
        expect.status(await exam.http.ask("GET", path, query={"type": kind}), 404)


@requirement("AAP-HIST-02")
async def an_undeclared_history_is_a_404(exam: AapExamination) -> None:
    """Of every agent, a history type it does not declare is a 404."""
    for agent in await exam.agents():
        talk = await exam.open(agent=agent)
        for kind in set(HISTORY_TYPES) - set(agent.history_types):
            expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": kind}), 404)


@requirement("AAP-HIST-03")
async def what_was_said_is_kept_exactly(exam: AapExamination) -> None:
    """Text in one piece and in blocks is kept to the letter, and so are the replies, thoughts and images given."""
    talk = await exam.open()
    talk.agent.needs_mode("none")
    contents: list[Any] = [
        f"{exam.profile.prompt('text')}\n\t«ÄÖ 中文 😀 \u2028» \"quoted\" \\ and  spaced ",
        [{"type": "text", "text": "First part. "}, {"type": "text", "text": " Second part."}],
    ]
    told: list[Any] = []
    contents += filter(None, (exam.profile.prompts.thinking, exam.profile.prompts.image_reply))
    for content in contents:
        turn = await talk.say(content, "none")
        told += [user(content), *(turn.body or {})["messages"]]
    expect.equal("the full history", exact(told), exact(await talk.history()))


@requirement("AAP-HIST-03")
async def calls_and_results_are_kept_exactly(exam: AapExamination) -> None:
    """Inline calls, client results and granted calls are all kept, in order; no tool_permission is among them."""
    one, other, spec = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool"), None
    prompts: list[tuple[str, str]] = [(one.name, one.prompt), (other.name, other.prompt)]
    if (await exam.agent()).takes_client_tools:
        spec = exam.profile.client_spec
        prompts.append((spec["name"], exam.profile.prompt("client_tool")))
    talk = await exam.open(tools={one.name: True, other.name: False}, client_tools=[spec] if spec else None)
    talk.agent.needs_mode("none")
    told: list[Any] = []
    for name, prompt in prompts:
        turn = await talk.say(prompt, "none")
        told += [user(prompt), *(turn.body or {})["messages"]]
        call = turn.call(name)
        if turn.stop == "tool_use":
            answer = permission(call, True) if name == other.name else result(call, "found «it»")
            turn = await talk.post([answer], "none")
            told += [answer] if answer["role"] == "tool" else []
            told += (turn.body or {})["messages"]
    history = await talk.history()
    expect.equal("the full history", exact(told), exact(history))
    expect.that("tool_permission" not in str(history), "no tool_permission in the history", history)


@requirement("AAP-HIST-03")
async def a_result_of_blocks_is_kept_exactly(exam: AapExamination) -> None:
    """A client's result that comes in blocks, where the server takes it, is kept to the letter."""
    spec = exam.profile.client_spec
    content = [{"type": "text", "text": "found «it» "}, {"type": "text", "text": " twice"}]
    talk = await exam.open(client_tools=[spec])
    call = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use").call(spec["name"])
    reply = await talk.attempt({"messages": [result(call, content)], "stream": talk.agent.usual_mode})
    if 400 <= reply.status < 500:
        raise NotTestable("the server takes no results of blocks")
    expect.status(reply, 200)
    kept = [plain(item["content"]) for item in await talk.history() if item["role"] == "tool"]
    expect.equal("the results in the history", [plain(content)], kept)


@requirement("AAP-HIST-03")
async def the_clients_words_are_kept_as_they_were_sent(exam: AapExamination) -> None:
    """Seeds, messages and results of the client have the form they were sent in: a string, or the same blocks."""
    spec = exam.profile.client_spec
    contents: list[Any] = ["  one string\n", [{"type": "text", "text": "one block"}], _text("two ", " blocks")]
    talk = await exam.open(client_tools=[spec], messages=[user(content) for content in contents])
    told: list[Any] = [("user", content) for content in contents]
    for content in contents:
        (await talk.say(content)).stopped("end_turn")
        told.append(("user", content))
    for content in ("  found\n", _text("found ", " twice")):
        call = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use").call(spec["name"])
        reply = await talk.attempt({"messages": [result(call, content)], "stream": talk.agent.usual_mode})
        if 400 <= reply.status < 500 and not isinstance(content, str):
            raise NotTestable("the server takes no results of blocks")
        expect.status(reply, 200)
        told += [("user", exam.profile.prompt("client_tool")), ("tool", content)]
    kept = [(item["role"], _bare(item["content"])) for item in await talk.history() if item["role"] in ("user", "tool")]
    expect.equal("the messages of the client in the history", told, kept)


def _text(*parts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} for part in parts]


def _bare(content: Any) -> Any:
    """Text as it is, blocks of text with their known members."""
    if isinstance(content, str):
        return content
    return [{name: block.get(name) for name in ("type", "text")} for block in content]


@requirement("AAP-HIST-03")
async def a_history_only_grows(exam: AapExamination) -> None:
    """Whenever no turn runs, the full history begins with what it was before, also between two answers."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    spec = exam.profile.client_spec
    talk = await exam.open(tools={one.name: True, other.name: False}, client_tools=[spec], messages=[user("Seed.")])
    before = await _grown(talk, [])
    for prompt in (exam.profile.prompt("text"), one.prompt, exam.profile.prompt("parallel")):
        turn = await talk.say(prompt)
        before = await _grown(talk, before)
    turn.stopped("tool_use")
    answers = [permission(turn.call(other.name), False, "no"), result(turn.call(spec["name"]), "mine")]
    reply = await talk.attempt({"messages": answers[:1], "stream": talk.agent.usual_mode})
    before = await _grown(talk, before)
    await talk.post(answers if 400 <= reply.status < 500 else answers[1:])
    before = await _grown(talk, before)
    await talk.say(exam.profile.prompt("text"))
    await _grown(talk, before)


async def _grown(talk: Conversation, before: list[Any]) -> list[Any]:
    """The history by now, which must begin with what it was before."""
    now = [(item["role"], item.get("toolCallId"), plain(item["content"])) for item in await talk.history()]
    expect.equal("the start of the full history, which was read before", before, now[: len(before)])
    return now


@requirement("AAP-HIST-03")
async def inputs_come_back_as_they_came(exam: AapExamination) -> None:
    """Whatever JSON the input of a call holds is in the history as it was sent; numbers too large may be refused."""
    agent = await exam.agent()
    talk = await exam.open(messages=_called(CARRIED))
    came_back("the calls in the history", [CARRIED], await _inputs(talk))
    reply = await exam.create(..., body=written({"agent": {"name": agent.name}, "messages": _called(HUGE)}))
    if reply.status == 201:
        came_back("the calls in the history", [HUGE], await _inputs(exam.conversation(agent, reply)))
    else:
        expect.refused(reply, "its numbers are too large")


def _called(given: dict[str, Any]) -> list[Any]:
    """An earlier conversation in which a tool was called with this input."""
    call = {"toolCallId": "call-of-old", "name": "examined", "input": given}
    asked = {"role": "assistant", "content": [{"type": "tool_use", **call}]}
    return [user("Look."), asked, result(call, "found"), {"role": "assistant", "content": "It was found."}]


async def _inputs(talk: Conversation) -> list[Any]:
    said = [block for item in await talk.history() if item["role"] == "assistant" for block in blocks(item["content"])]
    return [block["input"] for block in said if block["type"] == "tool_use"]


@requirement("AAP-HIST-04")
async def a_client_can_resume_from_the_history(exam: AapExamination) -> None:
    """After a tool_use stop the history ends with the open call; a client that knows only the history answers it."""
    spec = exam.profile.client_spec
    talk = await exam.open(client_tools=[spec])
    (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use")
    history = await talk.history()
    last = history[-1]
    expect.equal("the role of the last message", "assistant", last["role"])
    calls = [dict(block) for block in blocks(last["content"]) if block["type"] == "tool_use"]
    answered = {message.get("toolCallId") for message in history if message["role"] == "tool"}
    waiting = [call for call in calls if call["toolCallId"] not in answered]
    expect.that(bool(waiting), f"the last message to hold the open call of {spec['name']}", last)
    (await talk.post([result(call, "from the history alone") for call in waiting])).stopped("end_turn").spoke()


@requirement("AAP-HIST-04")
async def a_permission_can_be_given_from_the_history(exam: AapExamination) -> None:
    """A call that waits for permission is in the history with its id, name and input, and can be granted from there."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: False})
    told = (await talk.say(tool.prompt)).stopped("tool_use").call(tool.name)
    kept = [block for block in blocks((await talk.history())[-1]["content"]) if block["type"] == "tool_use"]
    found = [{name: block[name] for name in told} for block in kept]
    expect.equal("the open calls in the last message", [told], found)
    (await talk.post([permission(found[0], True)])).stopped("end_turn").spoke()


@requirement("AAP-HIST-04")
async def a_new_session_resumes_from_the_history(exam: AapExamination) -> None:
    """A session that is seeded with a history that ends in an open call takes the answer, and the agent goes on."""
    spec = exam.profile.client_spec
    talk = await exam.open(client_tools=[spec])
    (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use")
    seed = await talk.history()
    other = await exam.admit(client_tools=[spec], messages=seed)
    kept = await other.history()
    expect.equal("the history of the new session", exact(seed), exact(kept))
    calls = [dict(block) for block in blocks(kept[-1]["content"]) if block["type"] == "tool_use"]
    answers = [result(call, "from the history alone") for call in calls]
    (await other.post(answers)).stopped("end_turn").spoke()
    now = await other.history()
    expect.equal("the history up to the answer", exact([*seed, *answers]), exact(now[: len(seed) + len(answers)]))
    again = await other.attempt({"messages": answers, "stream": other.agent.usual_mode})
    expect.refused(again, "the call was answered before")
