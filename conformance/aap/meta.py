"""Section meta: what GET /meta says of the server's agents, and whether it is true."""

from collections import Counter
from typing import Any

from conformance.aap.conversation import user
from conformance.aap.examination import AapExamination
from conformance.aap.turn import ENDS, STREAMED, WHOLE
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply
from conformance.kit.schemas import Schemas, is_schema


async def _agents(exam: AapExamination) -> list[dict[str, Any]]:
    with expect.owned("AAP-META-01"):
        body = expect.status(await exam.http.ask("GET", "/meta"), 200).json()
        exam.schemas.fit("meta", body | {"version": 3} if isinstance(body, dict) else body, "the answer to GET /meta")
    agents: list[dict[str, Any]] = body["agents"]
    return agents


def _listed(agents: list[dict[str, Any]], member: str) -> list[tuple[str, Any]]:
    """Every entry of a list all agents may have, with the name of its agent."""
    return [(str(agent.get("name")), item) for agent in agents for item in agent.get(member) or []]


@requirement("AAP-META-01")
async def meta_is_version_three(exam: AapExamination) -> None:
    """GET /meta gives the version as the integer 3 and a list of agents."""
    is_version_three(await exam.http.ask("GET", "/meta"), exam.schemas)


def is_version_three(reply: Reply, schemas: Schemas) -> None:
    body = expect.status(reply, 200).json()
    schemas.fit("meta", body, "the answer to GET /meta")
    expect.that(type(body["version"]) is int, "version to be the integer 3", body["version"])


@requirement("AAP-META-02")
async def agents_are_described(exam: AapExamination) -> None:
    """Every agent has a name of its own and a semantic version."""
    are_agents(await _agents(exam), exam.schemas)


def are_agents(agents: list[dict[str, Any]], schemas: Schemas) -> None:
    for agent in agents:
        schemas.fit("agent", agent, "an agent of /meta")
    twice = [name for name, count in Counter(agent["name"] for agent in agents).items() if count > 1]
    expect.equal("names that more than one agent has", [], twice)


@requirement("AAP-META-03")
async def options_are_described(exam: AapExamination) -> None:
    """Every option is a text, a secret or a select with a default that can be chosen."""
    have_options(await _agents(exam), exam.schemas)


def have_options(agents: list[dict[str, Any]], schemas: Schemas) -> None:
    for agent, option in _listed(agents, "options"):
        schemas.fit("option", option, f"an option of the agent {agent!r}")
        if option["type"] == "select":
            expect.member(f"the default of the option {option['name']!r}", option["options"], option["default"])


@requirement("AAP-META-04")
async def capabilities_are_empty_objects(exam: AapExamination) -> None:
    """Every known leaf of the capabilities is an empty object."""
    have_capabilities(await _agents(exam), exam.schemas)


def have_capabilities(agents: list[dict[str, Any]], schemas: Schemas) -> None:
    for agent in agents:
        if "capabilities" in agent:
            schemas.fit("capabilities", agent["capabilities"], f"the capabilities of {agent.get('name')!r}")


@requirement("AAP-META-04")
async def what_is_declared_is_supported(exam: AapExamination) -> None:
    """A turn in a declared stream mode is taken, and a declared history type can be read."""
    for mode in (await exam.agent()).modes:
        body = {"messages": [user(exam.profile.prompt("text"))], "stream": mode}
        talk = await exam.open()
        with expect.owned(ENDS if mode in STREAMED else WHOLE):
            reply = await talk.attempt(body)
        expect.status(reply, 200)
    for agent in await exam.agents():
        talk = await exam.open(agent=agent)
        for kind in agent.history_types:
            expect.status(await exam.http.ask("GET", f"{talk.path}/history", query={"type": kind}), 200)


@requirement("AAP-META-05")
async def tools_are_described(exam: AapExamination) -> None:
    """Every server tool has a name, a description and parameters that are a JSON Schema."""
    have_tools(await _agents(exam), exam.schemas)


def have_tools(agents: list[dict[str, Any]], schemas: Schemas) -> None:
    for agent, tool in _listed(agents, "tools"):
        schemas.fit("tool", tool, f"a tool of the agent {agent!r}")
        what = f"the parameters of the tool {tool['name']!r} to be a JSON Schema"
        expect.that(is_schema(tool["parameters"]), what, tool["parameters"])


NO_SCHEMAS: tuple[tuple[Any, str], ...] = (
    ("object", "the parameters are a string"),
    ([], "the parameters are a list"),
    ({"type": 5}, "a type is a name, or a list of names"),
    ({"type": "object", "properties": []}, "properties are an object"),
    ({"type": "object", "properties": {"word": {"type": "string", "minLength": "one"}}}, "a length is a number"),
)


@requirement("AAP-META-06", formerly="AAP-META-05")
async def a_client_tool_needs_a_schema(exam: AapExamination) -> None:
    """A client tool that lacks a member, or whose parameters are no JSON Schema, is refused and changes nothing."""
    agent, spec = await exam.agent(), exam.profile.client_spec
    if not agent.takes_client_tools:
        raise NotTestable(f"the agent {agent.name!r} does not declare application.tools")
    lacking = [({key: spec[key] for key in spec if key != name}, f"it has no {name}") for name in NEEDED]
    wrong = [*lacking, *(({**spec, "parameters": given}, why) for given, why in NO_SCHEMAS)]
    talk = await exam.open(client_tools=[spec])
    before = await talk.info()
    for tool, why in wrong:
        expect.refused(await exam.create({"agent": {"name": agent.name}, "tools": [tool]}), f"of a tool, {why}")
        turn = {"messages": [user(exam.profile.prompt("text"))], "tools": [tool], "stream": agent.usual_mode}
        expect.refused(await talk.attempt(turn), f"of a tool, {why}")
        expect.equal("the session after a refusal", before, await talk.info())


NEEDED = ("name", "description", "parameters")
