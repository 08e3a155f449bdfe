"""Section sessions: creating, configuring, showing and deleting them."""

from typing import Any
from uuid import uuid4

from conformance.aap.conversation import user
from conformance.aap.examination import AapExamination
from conformance.aap.exchange import exact, plain
from conformance.aap.listing import all_sessions
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.json_round_trip import CARRIED, HUGE, came_back, written


@requirement("AAP-SESS-01")
async def a_session_is_created(exam: AapExamination) -> None:
    """POST /sessions gives 201 and an id of its own to every session."""
    body = {"agent": {"name": (await exam.agent()).name}}
    first = expect.status(await exam.create(body), 201).json()["sessionId"]
    second = expect.status(await exam.create(body), 201).json()["sessionId"]
    expect.that(first != second, "two sessions to have different ids", [first, second])


@requirement("AAP-SESS-01")
async def creating_does_not_run_the_agent(exam: AapExamination) -> None:
    """A session created with a user message holds nothing that the agent said; the agent answers only turns."""
    talk = await exam.admit(messages=[user(exam.profile.prompt("text"))])
    said = [message for message in await talk.history() if message["role"] == "assistant"]
    expect.equal("what the agent says in a new session", [], said)


@requirement("AAP-SESS-02")
async def the_agent_must_be_known(exam: AapExamination) -> None:
    """Without an agent, without its name, or with a name /meta does not list, no session is created."""
    wrong: list[tuple[Any, str]] = [
        ({}, "it names no agent"),
        ({"agent": {}}, "the agent has no name"),
        ({"agent": {"name": 7}}, "the agent's name is not a string"),
        ({"agent": {"name": f"nobody-{uuid4().hex}"}}, "/meta lists no such agent"),
    ]
    for body, why in wrong:
        expect.refused(await exam.create(body), why)


@requirement("AAP-SESS-03")
async def without_tools_none_is_enabled(exam: AapExamination) -> None:
    """With agent.tools absent or empty, the agent calls no server tool even when prompted to."""
    tool = exam.profile.server_tool("first_tool")
    choices: tuple[dict[str, bool] | None, ...] = (None, {})
    for tools in choices:
        turn = await (await exam.open(tools=tools)).say(tool.prompt)
        names = [call["name"] for call in turn.calls]
        expect.that(tool.name not in names, f"no call of {tool.name}, which is not enabled", turn.shown)


@requirement("AAP-SESS-03")
async def exactly_the_named_tools_are_enabled(exam: AapExamination) -> None:
    """Of two server tools the one that is named is called, the other one is not."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    talk = await exam.admit(tools={one.name: True})
    await talk.called(await talk.say(one.prompt), one.name, "AAP-SESS-03")
    turn = await (await exam.admit(tools={one.name: True})).say(other.prompt)
    names = [call["name"] for call in turn.calls]
    expect.that(other.name not in names, f"no call of {other.name}, which is not enabled", turn.shown)


@requirement("AAP-SESS-11", formerly="AAP-SESS-03")
async def an_undeclared_tool_cannot_be_enabled(exam: AapExamination) -> None:
    """A tool name that /meta does not declare is refused."""
    config = {"name": (await exam.agent()).name, "tools": [{"name": f"no_such_tool_{uuid4().hex}"}]}
    expect.refused(await exam.create({"agent": config}), "/meta declares no such tool")


@requirement("AAP-SESS-04")
async def options_have_defaults(exam: AapExamination) -> None:
    """Sessions are created with no, empty and partial options; options not given show their default if at all."""
    agent = await exam.agent()
    defaults = {option["name"]: option["default"] for option in agent.options() if option["type"] != "secret"}
    given = dict(list(defaults.items())[:1])
    configs: tuple[dict[str, Any], ...] = ({}, {"options": {}}, {"options": given})
    for config in configs:
        reply = await exam.create({"agent": {"name": agent.name, **config}})
        expect.that(reply.status < 300, f"{reply.asked} to be answered with 201", reply.told)
        talk = exam.conversation(agent, reply)
        shown = (await talk.info())["agent"].get("options", {})
        wrong = {name: shown[name] for name, default in defaults.items() if shown.get(name, default) != default}
        expect.equal("shown options that differ from their default", {}, wrong)


@requirement("AAP-SESS-12", formerly="AAP-SESS-04")
async def an_unknown_option_is_refused(exam: AapExamination) -> None:
    """An option the agent does not declare is refused."""
    config = {"name": (await exam.agent()).name, "options": {f"no_such_option_{uuid4().hex}": "x"}}
    expect.refused(await exam.create({"agent": config}), "the agent declares no such option")


@requirement("AAP-SESS-04")
async def a_select_takes_its_options(exam: AapExamination) -> None:
    """Every listed value of a select is taken."""
    agent = await exam.agent()
    select = agent.option("select", exam.profile.options.select)
    for value in select["options"]:
        reply = await exam.create({"agent": {"name": agent.name, "options": {select["name"]: value}}})
        expect.that(reply.status < 300, f"{reply.asked} to take {value!r} for {select['name']}", reply.told)


@requirement("AAP-SESS-12", formerly="AAP-SESS-04")
async def a_select_takes_nothing_else(exam: AapExamination) -> None:
    """A value that a select does not list is refused."""
    agent = await exam.agent()
    select = agent.option("select", exam.profile.options.select)
    config = {"name": agent.name, "options": {select["name"]: f"not-listed-{uuid4().hex}"}}
    expect.refused(await exam.create({"agent": config}), f"{select['name']} does not list this value")


@requirement("AAP-SESS-05")
async def seed_messages_begin_the_history(exam: AapExamination) -> None:
    """System, user and assistant messages a session is created with are the start of its history."""
    seed = [
        {"role": "system", "content": "You are under examination."},
        user([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Three?"}, {"type": "text", "text": "3"}]},
        user("Was sonst noch? 还有什么?"),
        {"role": "assistant", "content": "Nothing."},
        user("Well."),
    ]
    talk = await exam.admit(messages=seed)
    expect.equal("the start of the history of a new session", exact(seed), exact(await talk.history())[: len(seed)])


@requirement("AAP-SESS-05")
async def empty_messages_are_part_of_the_seed(exam: AapExamination) -> None:
    """Messages whose content is an empty string or an empty list keep their place in the history, empty as they are."""
    seed: list[dict[str, Any]] = [
        {"role": "system", "content": ""},
        user("One."),
        {"role": "assistant", "content": ""},
        user(""),
        {"role": "assistant", "content": []},
        user("Two."),
        {"role": "assistant", "content": "2"},
    ]
    talk = await exam.admit(messages=seed)
    wanted = [(message["role"], plain(message["content"])) for message in seed]
    kept = [(message["role"], plain(message["content"])) for message in await talk.history()]
    expect.equal("the first messages of a new session", wanted, kept[: len(seed)])


@requirement("AAP-SESS-06")
async def tool_names_do_not_clash(exam: AapExamination) -> None:
    """Two client tools of one name, or a client tool named like an enabled server tool, are refused; others are not."""
    agent, spec = await exam.agent(), exam.profile.client_spec
    if not agent.takes_client_tools:
        raise NotTestable(f"the agent {agent.name!r} does not declare application.tools")
    twice = {"agent": {"name": agent.name}, "tools": [spec, spec]}
    expect.refused(await exam.create(twice), "two client tools have the same name")
    if not agent.tools:
        raise NotTestable(f"the agent {agent.name!r} has no server tool to clash with")
    clashing = {**spec, "name": agent.tools[0]}
    both = {"agent": {"name": agent.name, "tools": [{"name": agent.tools[0]}]}, "tools": [clashing]}
    expect.refused(await exam.create(both), "a client tool is named like an enabled server tool")
    reply = await exam.create({"agent": {"name": agent.name}, "tools": [clashing]})
    if reply.status >= 300:
        owner = "AAP-SESS-03" if await _is_enabled_unasked(exam) else None
        expect.fail("a client tool to be named like a server tool that is not enabled", reply.told, owner)


@requirement("AAP-SESS-06")
async def a_turn_cannot_bring_a_clash(exam: AapExamination) -> None:
    """A turn whose tools clash with those enabled is refused."""
    tool, spec = exam.profile.server_tool("first_tool"), exam.profile.client_spec
    talk = await exam.open(tools={tool.name: True}, client_tools=[spec])
    messages = [user(exam.profile.prompt("text"))]
    clashing = {"messages": messages, "tools": [{**spec, "name": tool.name}]}
    expect.refused(await talk.attempt(clashing), "a client tool is named like an enabled server tool")
    expect.refused(await talk.attempt({"messages": messages, "tools": [spec, spec]}), "two tools have one name")


@requirement("AAP-SESS-07")
async def a_session_is_shown(exam: AapExamination) -> None:
    """GET /sessions/:id shows the id, the agent's name, exactly the enabled tools, the options and the client tools."""
    agent, spec = await exam.agent(), exam.profile.client_spec
    visible = [option for option in agent.options() if option["type"] != "secret"]
    options = {option["name"]: exam.value(option) for option in visible}
    tools = dict.fromkeys(agent.tools[:1], True) | dict.fromkeys(agent.tools[1:2], False)
    clients = [spec] if agent.takes_client_tools else None
    talk = await exam.open(tools=tools, client_tools=clients, agent_config={"options": options})
    info = await talk.info()
    expect.equal("sessionId", talk.session, info["sessionId"])
    expect.equal("agent.name", agent.name, info["agent"]["name"])
    trusted = {tool["name"]: tool.get("trust", False) for tool in info["agent"].get("tools", [])}
    if set(trusted) > set(tools) and await _are_others_enabled(exam):
        expect.fail(f"no other tools to be enabled than {expect.show(tools)}", trusted, "AAP-SESS-03")
    expect.equal("the enabled tools and their trust", tools, trusted)
    shown = info["agent"].get("options", {})
    expect.equal("the options that were given", options, {name: shown.get(name) for name in options})
    told = [{name: tool.get(name) for name in spec} for tool in info.get("tools", [])]
    expect.equal("the client tools", clients or [], told)


@requirement("AAP-SESS-07")
async def a_bare_session_is_shown_bare(exam: AapExamination) -> None:
    """A session created with nothing but an agent shows no enabled tool and no client tool."""
    info = await (await exam.open()).info()
    if info["agent"].get("tools") and await _is_enabled_unasked(exam):
        expect.fail("no tools to be enabled", info["agent"], "AAP-SESS-03")
    expect.equal("the enabled tools", [], info["agent"].get("tools", []))
    expect.equal("the client tools", [], info.get("tools", []))


async def _is_enabled_unasked(exam: AapExamination) -> bool:
    """Whether a session that enables no tool calls one all the same."""
    tool = exam.profile.server_tool("first_tool")
    return tool.name in [call["name"] for call in (await (await exam.open()).say(tool.prompt)).calls]


async def _are_others_enabled(exam: AapExamination) -> bool:
    """Whether a session that enables one tool calls another all the same."""
    one, other = exam.profile.server_tool("first_tool"), exam.profile.server_tool("second_tool")
    turn = await (await exam.open(tools={one.name: True})).say(other.prompt)
    return other.name in [call["name"] for call in turn.calls]


@requirement("AAP-SESS-13", formerly="AAP-SESS-07")
async def an_unknown_session_cannot_be_read(exam: AapExamination) -> None:
    """GET of an id nobody has is a 404."""
    expect.status(await exam.http.ask("GET", f"/sessions/{exam.stranger()}"), 404)


@requirement("AAP-SESS-07")
async def parameters_come_back_as_they_came(exam: AapExamination) -> None:
    """Whatever JSON the parameters of a client tool hold is shown as it was sent; numbers too large may be refused."""
    spec = exam.profile.client_spec
    given = {**spec["parameters"], "x-examined": CARRIED}
    talk = await exam.open(client_tools=[{**spec, "parameters": given}])
    for _ in range(2):
        shown = [tool["parameters"] for tool in (await talk.info()).get("tools", [])]
        came_back("the parameters of the client tool", [given], shown)
        await talk.say(exam.profile.prompt("text"))
    huge = {**spec["parameters"], "x-examined": HUGE}
    body = {"agent": {"name": talk.agent.name}, "tools": [{**spec, "parameters": huge}]}
    reply = await exam.create(..., body=written(body))
    if reply.status >= 300:
        expect.refused(reply, "its numbers are too large")
        return
    other = exam.conversation(talk.agent, reply)
    shown = [tool["parameters"] for tool in (await other.info()).get("tools", [])]
    came_back("the parameters of the client tool", [huge], shown)


@requirement("AAP-SESS-08")
async def secrets_stay_secret(exam: AapExamination) -> None:
    """A secret given at creation or in a turn is shown neither with its session nor in the list."""
    agent = await exam.agent()
    option = agent.option("secret", exam.profile.options.secret)
    name, first, second = option["name"], exam.value(option), exam.value(option)
    talk = await exam.open(agent_config={"options": {name: first}})
    await _expect_hidden(exam, talk.path, first)
    await talk.say(exam.profile.prompt("text"), agent={"options": {name: second}})
    await _expect_hidden(exam, talk.path, second)


async def _expect_hidden(exam: AapExamination, path: str, secret: str) -> None:
    with expect.owned("AAP-SESS-07"):
        one = expect.status(await exam.http.ask("GET", path), 200)
    expect.that(secret not in one.text, f"{one.asked} not to show the value of a secret option", one.told)
    for session in await all_sessions(exam):
        expect.that(secret not in str(session), "GET /sessions not to show the value of a secret option", session)


@requirement("AAP-SESS-10")
async def a_session_is_deleted(exam: AapExamination) -> None:
    """DELETE gives 204; then the session cannot be read, its history is a 404, and it is not listed."""
    talk = await exam.open(messages=[user("Forget me.")])
    expect.status(await exam.http.ask("DELETE", talk.path), 204)
    expect.refused(await exam.http.ask("GET", talk.path), "the session is deleted")
    for kind in talk.agent.history_types:
        expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": kind}), 404)
    listed = [session["sessionId"] for session in await all_sessions(exam)]
    expect.that(talk.session not in listed, "a deleted session not to be listed", talk.session)


@requirement("AAP-SESS-13", formerly="AAP-SESS-10")
async def deleting_an_unknown_session_is_a_404(exam: AapExamination) -> None:
    """DELETE of an id nobody has, and of a session that is deleted already, is a 404."""
    expect.status(await exam.http.ask("DELETE", f"/sessions/{exam.stranger()}"), 404)
    talk = await exam.open()
    await exam.http.ask("DELETE", talk.path)
    if (await exam.http.ask("GET", talk.path)).status == 404:
        expect.status(await exam.http.ask("DELETE", talk.path), 404)


@requirement("AAP-SESS-13", formerly="AAP-TURN-01")
async def a_turn_needs_a_session(exam: AapExamination) -> None:
    """A turn in a session nobody has is a 404."""
    body = {"messages": [user(exam.profile.prompt("text"))]}
    expect.status(await exam.http.ask("POST", f"/sessions/{exam.stranger()}/turns", body), 404)
