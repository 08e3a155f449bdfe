"""Section agents: listed, made, shown, changed, deleted, checked and loaded anew."""

from dataclasses import dataclass
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.websocket import connect
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import (
    FORBIDDEN,
    call,
    deleted,
    expect_deleted_once,
    granted,
    make,
    manage,
    mentions,
    offered,
    own_name,
    own_unless_forbidden,
    perhaps,
    refused,
    shows,
)
from conformance.zenflux.rest_answer import Answer, listed
from conformance.zenflux.rest_calls import BASE

PROMPT = "You are being examined. Answer in one word, and keep the word to yourself if nobody has asked you for it."
NOBODY = "/agents/examined-nobody"
ACTS = "has the server load all of its agents anew"


@dataclass(frozen=True)
class Agent:
    """An agent to put questions about."""

    id: str
    name: str
    prompt: str | None = None
    """What it was made with, if the examiners made it."""

    @property
    def path(self) -> str:
        return f"/agents/{self.id}"


def configuration(**more: Any) -> dict[str, Any]:
    """All that a new agent needs; members set to `...` are left out."""
    usual = {"agent_id": own_name(), "name": own_name(), "description": "Made by the examiners.", "prompt": PROMPT}
    return {name: value for name, value in (usual | more).items() if value is not ...}


async def create(exam: ZenfluxExamination, config: dict[str, Any]) -> Answer:
    """The answer to a request for a new agent, which is deleted after the case."""
    answer = await make(exam, "/agents", config, f"/agents/{config.get('agent_id')}")
    if answer.is_done and (found := _id_in(answer.body["data"])):
        exam.made(f"/agents/{found}")
    return answer


def _id_in(data: Any) -> str | None:
    found = (data.get(name) for name in ("agent_id", "id")) if isinstance(data, dict) else ()
    return next((name for name in found if isinstance(name, str) and name), None)


async def own_agent(exam: ZenfluxExamination, **more: Any) -> Agent:
    """An agent made for this case; NotTestable if none can be made, which other requirements are about."""
    with expect.preparing("an agent"):
        config = configuration(**more)
        answer = await create(exam, config)
        if answer.code in FORBIDDEN:
            raise NotTestable("the server lets nobody make agents")
        agent = Agent(_id_in(answer.done()) or config["agent_id"], config["name"], config["prompt"])
        expect.that(await _is_there(exam, agent), "an agent that was made to be there", answer.reply.told)
    return agent


async def _is_there(exam: ZenfluxExamination, agent: Agent) -> bool:
    return await shows(exam, agent.name, "/agents") or await shows(exam, agent.name, agent.path)


async def any_agent(exam: ZenfluxExamination) -> Agent:
    """An agent to look at: one of one's own, or else the first that is listed."""
    try:
        return await own_agent(exam)
    except NotTestable:
        with expect.preparing("an agent"):
            items = listed((await manage(exam, "GET", "/agents")).done(), "agents")
            item = expect.first("an agent in the list", (item for item in items if _id_in(item)), items)
        return Agent(_id_in(item) or "", str(item.get("name")))


# -- the rows of the specification -------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.5-01")
async def agents_are_listed(exam: ZenfluxExamination) -> None:
    """GET /agents lists agents as objects, among them one that was made."""
    made = await perhaps(exam, own_agent)
    items = listed((await manage(exam, "GET", "/agents")).done(), "agents")
    if made is not None:
        expect.that(mentions(items, made.name), f"the agent {made.name} in the list", items)


@requirement("ZF-HTTP-3.5-02")
async def an_agent_is_made(exam: ZenfluxExamination) -> None:
    """POST /agents makes an agent that GET then shows; it may be forbidden."""
    config = configuration()
    answer = await create(exam, config)
    if granted(answer):
        agent = Agent(_id_in(answer.body["data"]) or config["agent_id"], config["name"])
        expect.that(await _is_there(exam, agent), f"the agent {agent.name} to be there once it is made", "it is not")


@requirement("ZF-HTTP-3.5-03")
async def an_agent_is_shown(exam: ZenfluxExamination) -> None:
    """GET /agents/{id} shows the agent of this id."""
    agent = await any_agent(exam)
    data = (await manage(exam, "GET", agent.path)).done()
    expect.that(mentions(data, agent.name), f"the agent {agent.name}", data)


@requirement("ZF-HTTP-3.5-04")
async def an_agent_is_changed(exam: ZenfluxExamination) -> None:
    """PUT /agents/{id} changes an agent; it may be forbidden."""
    config = configuration(agent_id=...)
    agent = await own_unless_forbidden(exam, own_agent, "PUT", NOBODY, config)
    if agent is not None and granted(await manage(exam, "PUT", agent.path, config)):
        is_changed = await shows(exam, config["name"], "/agents", agent.path)
        expect.that(is_changed, f"the agent {agent.id} to have its new name {config['name']}", "it does not")


@requirement("ZF-HTTP-3.5-05")
async def an_agent_is_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /agents/{id} deletes an agent; it may be forbidden."""
    agent = await own_unless_forbidden(exam, own_agent, "DELETE", NOBODY)
    if agent is not None and granted(await manage(exam, "DELETE", agent.path)):
        is_left = await shows(exam, agent.name, "/agents") and await shows(exam, agent.name, agent.path)
        expect.that(not is_left, f"the agent {agent.id} to be gone", "it is still listed and shown")


@requirement("ZF-HTTP-3.5-06")
async def templates_are_listed(exam: ZenfluxExamination) -> None:
    """GET /agents/templates lists templates as objects, and is not taken for an agent of this name."""
    listed((await manage(exam, "GET", "/agents/templates")).done(), "templates")


@requirement("ZF-HTTP-3.5-07")
async def a_configuration_is_checked(exam: ZenfluxExamination) -> None:
    """POST /agents/validate takes the configuration of an agent, and makes none."""
    config = configuration()
    (await make(exam, "/agents/validate", config, f"/agents/{config['agent_id']}")).done()
    is_made = await shows(exam, config["name"], "/agents", f"/agents/{config['agent_id']}")
    expect.that(not is_made, "no agent to be made of a configuration that is only checked", "there is one")


@requirement("ZF-HTTP-3.5-08", destructive=ACTS)
async def all_agents_are_loaded_anew(exam: ZenfluxExamination) -> None:
    """POST /agents/reload loads the agents anew; it may be forbidden."""
    granted(await manage(exam, "POST", "/agents/reload"))


@requirement("ZF-HTTP-3.5-09")
async def an_agent_is_loaded_anew(exam: ZenfluxExamination) -> None:
    """POST /agents/{id}/reload loads an agent anew; it may be forbidden."""
    agent = await own_unless_forbidden(exam, own_agent, "POST", f"{NOBODY}/reload")
    if agent is not None:
        granted(await manage(exam, "POST", f"{agent.path}/reload"))


@requirement("ZF-HTTP-3.5-10")
async def a_prompt_is_shown(exam: ZenfluxExamination) -> None:
    """GET /agents/{id}/prompt shows the prompt that an agent was made with."""
    agent = await any_agent(exam)
    data = (await manage(exam, "GET", f"{agent.path}/prompt")).done()
    if agent.prompt is not None:
        expect.that(mentions(data, agent.prompt), "the prompt that the agent was made with", data)


# -- what the published server and front end do ------------------------------------------------------------------------


@requirement("ZF-AG-01.out")
async def the_list_of_agents_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {total, agents}, with agent_id, name, description, version, is_active, total_calls and times of each."""
    await offered(exam, "/agents")
    data = await exam.read("agent_page", "/agents")
    expect.equal("total", len(data["agents"]), data["total"])


@requirement("ZF-AG-01.err")
async def include_inactive_is_true_or_false(exam: ZenfluxExamination) -> None:
    """include_inactive is taken if it is true or false, and is a 400 if it is neither."""
    await offered(exam, "/agents")
    (await call(exam, "GET", "/agents", include_inactive="true")).done("ZF-AG-01.err")
    refused(await call(exam, "GET", "/agents", include_inactive="perhaps"), 400)


@requirement("ZF-AG-02.in")
async def an_agent_has_the_id_it_was_given(exam: ZenfluxExamination) -> None:
    """agent_id is kept if it is given, and made up if not; description and model may be left out."""
    await own_agent(exam)
    config = configuration(description=...)
    data = expect.keyed("the agent", (await create(exam, config)).done("ZF-AG-02.in"), "agent_id")
    expect.equal("agent_id", config["agent_id"], data["agent_id"])
    minted = [_id_in((await create(exam, configuration(agent_id=...))).done("ZF-AG-02.in")) for _ in range(2)]
    expect.that(None not in minted and len(set(minted)) == 2, "an id for each agent that was given none", minted)


@requirement("ZF-AG-02.out")
async def a_new_agent_is_told(exam: ZenfluxExamination) -> None:
    """data has agent_id, name and status."""
    await own_agent(exam)
    config = configuration()
    data = (await create(exam, config)).done()
    exam.schemas.fit("agent_made", data, "the data of POST /agents")
    expect.equal("the name", config["name"], data["name"])


@requirement("ZF-AG-02.err")
async def an_agent_that_makes_no_sense_is_refused(exam: ZenfluxExamination) -> None:
    """No name or prompt, a bad agent_id, an unknown model and a data_dir are 400; an agent_id that is taken is 409."""
    agent = await own_agent(exam)
    wrong: tuple[dict[str, Any], ...] = (
        {"name": ...},
        {"name": ""},
        {"prompt": ...},
        {"prompt": ""},
        {"agent_id": "a b/c"},
        {"model": own_name()},
        {"data_dir": "examined"},
    )
    for change in wrong:
        refused(await create(exam, configuration(**change)), 400)
    refused(await call(exam, "POST", "/agents", configuration(agent_id=agent.id)), 409)


@requirement("ZF-AG-02.does")
async def a_new_agent_can_be_talked_to(exam: ZenfluxExamination) -> None:
    """chat.send takes a new agent at once."""
    agent = await own_agent(exam)
    await exam.told("text", "ZF-AG-02.does", agent_id=agent.id)


@requirement("ZF-AG-03.out")
async def the_detail_of_an_agent_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is what the list has, and model, capabilities, mcp_tools, apis, skills, data_dir, counts and times."""
    agent = await own_agent(exam)
    data = await exam.read("agent_detail", agent.path)
    expect.equal("the agent", [agent.id, agent.name], [data["agent_id"], data["name"]])


@requirement("ZF-AG-03.err")
async def an_unknown_agent_is_not_shown(exam: ZenfluxExamination) -> None:
    """An unknown agent is a 404."""
    await offered(exam, "/agents")
    refused(await call(exam, "GET", f"/agents/{own_name()}"), 404)


@requirement("ZF-AG-04.in")
async def what_a_change_of_an_agent_does_not_name_stays(exam: ZenfluxExamination) -> None:
    """A change of the description leaves name and prompt as they were."""
    agent, words = await own_agent(exam), own_name()
    (await call(exam, "PUT", agent.path, {"description": words})).done()
    with expect.preparing("a look at the agent"):
        data = expect.keyed("the agent", await exam.get(agent.path), "name", "description")
        prompt = await exam.get(f"{agent.path}/prompt")
    expect.equal("name and description", [agent.name, words], [data["name"], data["description"]])
    expect.that(mentions(prompt, PROMPT), "the prompt as it was", prompt)


@requirement("ZF-AG-04.out")
async def a_changed_agent_is_told(exam: ZenfluxExamination) -> None:
    """data has agent_id, the new name, status and what the detail has."""
    agent, name = await own_agent(exam), own_name()
    data = (await call(exam, "PUT", agent.path, configuration(agent_id=..., name=name))).done()
    exam.schemas.fit("agent_changed", data, f"the data of PUT {agent.path}")
    expect.equal("id and name", [agent.id, name], [data["agent_id"], data["name"]])


@requirement("ZF-AG-04.err")
async def a_change_of_an_agent_that_makes_no_sense_is_refused(exam: ZenfluxExamination) -> None:
    """An unknown agent is 404; an unknown model and members of a wrong type are 400."""
    agent = await own_agent(exam)
    refused(await call(exam, "PUT", f"/agents/{own_name()}", configuration(agent_id=...)), 404)
    for change in ({"model": own_name()}, {"name": 7}, {"is_active": "never"}):
        refused(await call(exam, "PUT", agent.path, configuration(agent_id=...) | change), 400)


@requirement("ZF-AG-05.out")
async def a_deleted_agent_is_told(exam: ZenfluxExamination) -> None:
    """data is {agent_id}."""
    agent = await own_agent(exam)
    data = await deleted(exam, agent.path, "agent_named")
    expect.equal("agent_id", agent.id, data["agent_id"])


@requirement("ZF-AG-05.err")
async def an_agent_is_deleted_once(exam: ZenfluxExamination) -> None:
    """Deleting an agent twice is a 404."""
    agent = await own_agent(exam)
    await expect_deleted_once(exam, agent.path)


@requirement("ZF-AG-05.does")
async def conversations_of_a_deleted_agent_stay(exam: ZenfluxExamination) -> None:
    """Once an agent is deleted, its conversations can still be read, and it can no longer be talked to."""
    agent = await own_agent(exam)
    with expect.preparing("a conversation with an agent of one's own"):
        run = await exam.told("text", "ZF-AG-02.does", agent_id=agent.id)
    (await call(exam, "DELETE", agent.path)).done()
    said = [message["role"] for message in await exam.history(run.conversation_id)]
    expect.equal("the messages that are left", ["user", "assistant"], said)
    async with exam.line() as line:
        nobody = await line.ask("chat.send", line.params("Hello", agent_id=exam.stranger()))
        owner = None if nobody.get("ok") is False else "ZF-WS-08"
        await line.refused("chat.send", line.params("Hello", agent_id=agent.id), "the agent was deleted", owner)


@requirement("ZF-AG-06.out")
async def templates_can_be_used(exam: ZenfluxExamination) -> None:
    """data is {total, templates}; the config of a template makes an agent, with a name and a prompt."""
    await own_agent(exam)
    data = await exam.read("template_page", "/agents/templates")
    expect.equal("total", len(data["templates"]), data["total"])
    for template in data["templates"]:
        (await create(exam, template["config"] | configuration())).done("ZF-AG-06.out")


@requirement("ZF-AG-07.out")
async def what_is_wrong_with_a_configuration_is_told(exam: ZenfluxExamination) -> None:
    """data is {valid, errors, warnings}; what is missing or wrong is an error of its field, and no refusal."""
    await own_agent(exam)
    wrong: dict[str, dict[str, Any]] = {"prompt": {"prompt": ...}, "model": {"model": own_name()}, "name": {"name": ""}}
    for field, change in wrong.items():
        verdict = await _verdict(exam, configuration(**change))
        expect.equal(f"valid without a right {field}", False, verdict["valid"])
        expect.that(field in [error["field"] for error in verdict["errors"]], f"an error of {field}", verdict)
    right = await _verdict(exam, configuration())
    expect.equal("a right configuration", [True, []], [right["valid"], right["errors"]])


async def _verdict(exam: ZenfluxExamination, config: dict[str, Any]) -> dict[str, Any]:
    answer = await make(exam, "/agents/validate", config, f"/agents/{config['agent_id']}")
    data = answer.done("ZF-AG-07.out" if 400 <= answer.code < 500 and answer.code != 404 else None)
    exam.schemas.fit("agent_verdict", data, "the data of POST /agents/validate")
    return dict(data)


@requirement("ZF-AG-07.err")
async def only_an_object_is_a_configuration(exam: ZenfluxExamination) -> None:
    """A configuration that is no object is a 400."""
    await own_agent(exam)
    refused(await call(exam, "POST", "/agents/validate", ["agent"]), 400)


@requirement("ZF-AG-08.out", destructive=ACTS)
async def a_reload_of_all_is_told(exam: ZenfluxExamination) -> None:
    """data is {reloaded, failed}."""
    answer = await call(exam, "POST", "/agents/reload")
    if answer.code in (*FORBIDDEN, 404, 501):
        raise NotTestable("the server lets nobody load its agents anew")
    exam.schemas.fit("agents_reloaded", answer.done(), "the data of POST /agents/reload")


@requirement("ZF-AG-09.out")
async def a_reload_of_one_is_told(exam: ZenfluxExamination) -> None:
    """data is {reloaded, failed}, with the id of the agent in one of them."""
    agent = await own_agent(exam)
    answer = await call(exam, "POST", f"{agent.path}/reload")
    if answer.code in FORBIDDEN:
        raise NotTestable("the server lets nobody load an agent anew")
    data = answer.done()
    exam.schemas.fit("agents_reloaded", data, f"the data of POST {agent.path}/reload")
    expect.equal("the agents", [agent.id], data["reloaded"] + [item["agent_id"] for item in data["failed"]])


@requirement("ZF-AG-09.err")
async def an_unknown_agent_is_not_loaded_anew(exam: ZenfluxExamination) -> None:
    """Loading an unknown agent anew is a 404."""
    await own_agent(exam)
    refused(await call(exam, "POST", f"/agents/{own_name()}/reload"), 404)


@requirement("ZF-AG-10.out")
async def a_prompt_is_told(exam: ZenfluxExamination) -> None:
    """data is {agent_id, prompt}."""
    agent = await own_agent(exam)
    data = await exam.read("agent_prompt", f"{agent.path}/prompt")
    expect.equal("id and prompt", [agent.id, PROMPT], [data["agent_id"], data["prompt"]])


@requirement("ZF-AG-10.err")
async def an_unknown_agent_has_no_prompt(exam: ZenfluxExamination) -> None:
    """The prompt of an unknown agent is a 404."""
    await own_agent(exam)
    refused(await call(exam, "GET", f"/agents/{own_name()}/prompt"), 404)


@requirement("ZF-AG-11.out")
async def the_making_of_an_agent_can_be_watched(exam: ZenfluxExamination) -> None:
    """The socket /agents/ws/create/{id} says complete with agent_id and name, and is closed by the server."""
    agent = await own_agent(exam)
    frames: list[dict[str, Any]] = []
    async with connect(exam.http, f"{BASE}/agents/ws/create/{agent.id}") as socket:
        while (frame := await socket.next()) is not None:
            frames.append(expect.keyed("a frame", frame, "type"))
    told = [{name: frame.get(name) for name in ("type", "agent_id", "name", "success")} for frame in frames[-1:]]
    complete = {"type": "complete", "agent_id": agent.id, "name": agent.name, "success": True}
    expect.equal("the last frame", [complete], told)
