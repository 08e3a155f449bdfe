"""Section agents: listed, made, shown, changed, deleted, checked and loaded anew."""

from dataclasses import dataclass
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.zenflux.answer import Answer, listed
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.managed import FORBIDDEN, granted, make, manage, mentions, own_name, shows

PROMPT = "You are being examined. Answer in one word, and keep the word to yourself if nobody has asked you for it."
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


async def changeable_agent(
    exam: ZenfluxExamination, method: str, below: str = "", json: Any = ...
) -> Agent | None:
    """An agent of one's own to change; None if agents cannot be made because a call of this kind is forbidden."""
    try:
        return await own_agent(exam)
    except NotTestable:
        answer = await manage(exam, method, f"/agents/{own_name()}{below}", json)
        if answer.code not in FORBIDDEN:
            raise
        return None


# -- the rows of the specification -------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.5-01")
async def agents_are_listed(exam: ZenfluxExamination) -> None:
    """GET /agents lists agents as objects, among them one that was made."""
    try:
        made: Agent | None = await own_agent(exam)
    except NotTestable:
        made = None
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
    agent = await changeable_agent(exam, "PUT", json=config)
    if agent is not None and granted(await manage(exam, "PUT", agent.path, config)):
        is_changed = await shows(exam, config["name"], "/agents", agent.path)
        expect.that(is_changed, f"the agent {agent.id} to have its new name {config['name']}", "it does not")


@requirement("ZF-HTTP-3.5-05")
async def an_agent_is_deleted(exam: ZenfluxExamination) -> None:
    """DELETE /agents/{id} deletes an agent; it may be forbidden."""
    agent = await changeable_agent(exam, "DELETE")
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
    agent = await changeable_agent(exam, "POST", "/reload")
    if agent is not None:
        granted(await manage(exam, "POST", f"{agent.path}/reload"))


@requirement("ZF-HTTP-3.5-10")
async def a_prompt_is_shown(exam: ZenfluxExamination) -> None:
    """GET /agents/{id}/prompt shows the prompt that an agent was made with."""
    agent = await any_agent(exam)
    data = (await manage(exam, "GET", f"{agent.path}/prompt")).done()
    if agent.prompt is not None:
        expect.that(mentions(data, agent.prompt), "the prompt that the agent was made with", data)
