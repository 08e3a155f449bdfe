"""Section history: what was said can be read back, exactly."""

from collections.abc import Mapping
from typing import Any

from conformance.aap import scenes
from conformance.aap.agent import HISTORY_TYPES
from conformance.aap.conversation import Conversation, permission, result, user
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import Exchange, blocks, of_messages, plain
from conformance.aap.turn import Turn, expect_taken
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.json_round_trip import CARRIED, HUGE, came_back, written


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
        body = expect.status(reply, 200).object()
        history = expect.keyed("history", body.get("history"))
        types = [name for name in HISTORY_TYPES if name in history]
        expect.equal(f"the types in the answer to {reply.asked}", [kind], types)
        expect.that(isinstance(history[kind], list), f"the history `{kind}` to be a list", body)
        expect.that(bool(history[kind]), f"the history `{kind}` not to be empty after a turn", body)
        await talk.history(kind)


@requirement("AAP-HIST-05", formerly="AAP-HIST-02")
async def a_history_must_be_asked_for_rightly(exam: AapExamination) -> None:
    """No type, or an unknown one, is a 400."""
    talk = await exam.open()
    expect.status(await exam.http.ask("GET", f"{talk.path}/history"), 400)
    for word in ("everything", "", "Full"):
        expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": word}), 400)


@requirement("AAP-HIST-02")
async def the_history_of_an_unknown_session_is_a_404(exam: AapExamination) -> None:
    """Whatever history of a session nobody has is asked for, it is a 404."""
    for kind in HISTORY_TYPES:
        path = f"/sessions/{exam.stranger()}/history"
        expect.status(await exam.http.ask("GET", path, query={"type": kind}), 404)


@requirement("AAP-HIST-02")
async def an_undeclared_history_is_a_404(exam: AapExamination) -> None:
    """Of every agent, a history type it does not declare is a 404."""
    for agent in await exam.every_agent():
        talk = await exam.open(agent=agent)
        for kind in set(HISTORY_TYPES) - set(agent.history_types):
            expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": kind}), 404)


@requirement("AAP-HIST-03")
async def what_was_said_is_kept_exactly(exam: AapExamination) -> None:
    """The texts, thoughts and calls of a reply are in the history as at least one mode tells them, and in its order."""
    modes = (await exam.agent()).modes
    for place, scene in enumerate(await scenes.told(exam, modes[0])):
        if all([not scenes.agrees((await scenes.told(exam, mode))[place]) for mode in modes]):
            told = scene.turn.exchange.renamed().shown
            expect.equal("the turn in the history", told, of_messages(scene.kept).renamed().shown)


@requirement("AAP-HIST-03")
async def the_users_words_are_kept_exactly(exam: AapExamination) -> None:
    """Text of a user, in one piece and in blocks, is kept to the letter, and so are images that the agent shows."""
    talk = await exam.open()
    contents: list[Any] = [
        f"{exam.profile.prompt('text')}\n\t«ÄÖ 中文 😀 \u2028» \"quoted\" \\ and  spaced ",
        [{"type": "text", "text": "First part. "}, {"type": "text", "text": " Second part."}],
    ]
    for content in contents:
        await talk.say(content)
    kept = [plain(item["content"]) for item in await talk.history() if item["role"] == "user"]
    expect.equal("the messages of the user", [plain(content) for content in contents], kept)


@requirement("AAP-HIST-03")
async def images_shown_are_kept(exam: AapExamination) -> None:
    """An image that the agent shows is in the history."""
    if (prompt := exam.profile.prompts.image_reply) is None:
        raise NotTestable("the profile has no entry `prompts.image_reply`")
    talk = await exam.open()
    talk.agent.needs_mode("none")
    told = [item for item in (await talk.say(prompt, "none")).exchange.said if item[0] == "image"]
    kept = [item for item in of_messages(await talk.history()).said if item[0] == "image"]
    expect.equal("the images in the history", told, kept)


@requirement("AAP-HIST-03")
async def calls_and_results_are_kept_exactly(exam: AapExamination) -> None:
    """Every call has one result in the history, the one that was told; no tool_permission is among them."""
    agent = await exam.agent()
    name = exam.profile.server_tool("second_tool").name
    for mode in agent.modes:
        scene = (await scenes.told(exam, mode))[-1]
        if scene.turn.stop == "end_turn":
            _expect_known(scene.turn, scene.kept)
            _expect_results(of_messages(scene.kept), scene.turn.exchange.results, scene.kept)
        pause = await scenes.decided(exam, mode, granted=True)
        results = pause.after.exchange.results
        if pause.calls[name]["toolCallId"] in results:
            _expect_known(pause.turn, pause.history)
            _expect_results(of_messages(pause.history), results, pause.history)
        expect.that("tool_permission" not in str(pause.history), "no tool_permission in the history", pause.history)


def _expect_known(turn: Turn, messages: list[Any]) -> None:
    """Expect the calls to have the same ids in the turn and in the history."""
    kept = {item[1] for item in of_messages(messages).said if item[0] == "call"}
    strange = [call["toolCallId"] for call in turn.calls if kept and call["toolCallId"] not in kept]
    expect.that(not strange, "calls with ids that the history knows", strange, "AAP-SSE-04")


def _expect_results(kept: Exchange, told: Mapping[str, Any], messages: list[Any]) -> None:
    """Expect the history to have every result that was told, once."""
    ids = [message["toolCallId"] for message in messages if message["role"] == "tool"]
    expect.equal("calls with several results in the history", [], [name for name in ids if ids.count(name) > 1])
    expect.equal("the results in the history", dict(told), {name: kept.results.get(name) for name in told})


@requirement("AAP-HIST-03")
async def a_result_of_blocks_is_kept_exactly(exam: AapExamination) -> None:
    """A client's result that comes in blocks, where the server takes it, is kept to the letter."""
    spec = exam.profile.client_spec
    content = [{"type": "text", "text": "found «it» "}, {"type": "text", "text": " twice"}]
    talk = await exam.open(client_tools=[spec])
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
    body = {"messages": [result(turn.call(spec["name"]), content)], "stream": talk.agent.usual_mode}
    expect_taken(await talk.attempt(body), "AAP-TOOL-06")
    kept = [plain(item["content"]) for item in await talk.history() if item["role"] == "tool"]
    expect.that(bool(kept), "the result in the history", kept, "AAP-TOOL-01")
    expect.equal("the results in the history", [plain(content)], kept)


@requirement("AAP-HIST-03")
async def images_given_are_kept(exam: AapExamination) -> None:
    """An image that the user gives, of a kind the agent declares, is in the history."""
    given = {"http": exam.profile.images.http, "data": exam.profile.images.data}
    for kind in sorted((await exam.agent()).image_kinds & {name for name in given if given[name]}):
        talk = await exam.open()
        content = [{"type": "text", "text": "What is this?"}, {"type": "image", "url": given[kind]}]
        reply = await talk.attempt({"messages": [user(content)], "stream": talk.agent.usual_mode})
        expect.that(reply.status == 200, f"an image of the declared kind {kind} to be taken", reply.told, "AAP-TOOL-05")
        kept = [plain(item["content"]) for item in await talk.history() if item["role"] == "user"]
        expect.equal("the messages of the user", [plain(content)], kept)


@requirement("AAP-HIST-03")
async def the_clients_words_are_kept_as_they_were_sent(exam: AapExamination) -> None:
    """Messages and results of the client have the form they were sent in: a string, or the same blocks."""
    spec = exam.profile.client_spec
    contents: list[Any] = ["  one string\n", [{"type": "text", "text": "one block"}], _text("two ", " blocks")]
    talk = await exam.open(client_tools=[spec])
    told: list[Any] = []
    for content in contents:
        await talk.say(content)
        told.append(("user", content))
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
    await talk.post([result(turn.call(spec["name"]), "  found\n")])
    told += [("user", exam.profile.prompt("client_tool")), ("tool", "  found\n")]
    kept = [(item["role"], _bare(item["content"])) for item in await talk.history() if item["role"] in ("user", "tool")]
    expect.that(any(role == "tool" for role, _ in kept), "the client's result in the history", kept, "AAP-TOOL-01")
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
    """Whenever no turn runs, the full history begins with what it was before."""
    one, spec = exam.profile.server_tool("first_tool"), exam.profile.client_spec
    talk = await exam.open(tools={one.name: True}, client_tools=[spec], messages=[user("Seed.")])
    before = await _grown(talk, [])
    for prompt in (exam.profile.prompt("text"), one.prompt, exam.profile.prompt("client_tool")):
        turn = await talk.say(prompt)
        before = await _grown(talk, before)
    await talk.post([result(turn.call(spec["name"]), "mine")])
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
    kept = await _inputs(talk)
    expect.that(bool(kept), "the calls of the seed in the history", kept, "AAP-SESS-05")
    came_back("the calls in the history", [CARRIED], kept)
    reply = await exam.create(..., body=written({"agent": {"name": agent.name}, "messages": _called(HUGE)}))
    if reply.status < 300:
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
    turn = (await talk.say(exam.profile.prompt("client_tool"))).stopped("tool_use", owner="AAP-TOOL-01")
    waiting = _waiting(await talk.history())
    expect.subset("the open calls in the history", [call["toolCallId"] for call in turn.calls], waiting)
    (await talk.post([result(call, "from the history alone") for call in waiting.values()])).spoke()


def _waiting(history: list[Any]) -> dict[str, dict[str, Any]]:
    """The calls that the last assistant message leaves open, by their ids."""
    last = [message for message in history if message["role"] == "assistant"][-1:]
    calls = [dict(block) for item in last for block in blocks(item["content"]) if block["type"] == "tool_use"]
    answered = {message["toolCallId"] for message in history if message["role"] == "tool"}
    return {call["toolCallId"]: call for call in calls if call["toolCallId"] not in answered}


@requirement("AAP-HIST-04")
async def a_permission_can_be_given_from_the_history(exam: AapExamination) -> None:
    """A call that waits for permission is in the history with its name and input, and can be granted from there."""
    tool = exam.profile.server_tool("second_tool")
    talk = await exam.open(tools={tool.name: False})
    turn = (await talk.say(tool.prompt)).stopped("tool_use", owner="AAP-TOOL-02")
    told = turn.call(tool.name)
    found = [{name: call[name] for name in told} for call in _waiting(await talk.history()).values()]
    expect.equal("the open calls in the history", [told], found)
    (await talk.post([permission(found[0], True)])).spoke()


@requirement("AAP-HIST-06", formerly="AAP-HIST-04")
async def a_new_session_resumes_from_the_history(exam: AapExamination) -> None:
    """A session that is seeded with a history that ends in an open call takes the answer, and the agent goes on."""
    spec = exam.profile.client_spec
    call = {"type": "tool_use", "toolCallId": "call-of-old", "name": spec["name"], "input": {"word": "dragoman"}}
    seed = [user(exam.profile.prompt("client_tool")), {"role": "assistant", "content": [call]}]
    talk = await exam.open(client_tools=[spec], messages=seed)
    kept = await talk.history()
    owner = {0: "AAP-SESS-05", 1: "AAP-HIST-04"}.get(len(kept), "AAP-SESS-01")
    expect.that(len(kept) == len(seed), "the seed, and nothing else, in the history", kept, owner)
    answers = {"messages": [result(call, "from the history alone")], "stream": talk.agent.usual_mode}
    expect.status(await talk.attempt(answers), 200)
