"""Section sessions, what a session is made of: its agent, caught as it was, and its environment."""

from typing import Any

from conformance.cas.examination import Body, CasExamination
from conformance.cas.object_comparison import agree
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Reply

DEFAULT_NAME = "Session Environment"


async def _second_version(exam: CasExamination, agent: Body) -> Body:
    """The agent with another system prompt, as its version 2."""
    with expect.preparing("a second version of the agent"):
        body = {"version": agent["version"], "system": "The second version."}
        found: Body = await exam.have("agent", "POST", f"/agents/{agent['id']}", body)
    return found


@requirement("CAS-SESS-04")
async def an_agent_is_named_in_two_ways(exam: CasExamination) -> None:
    """agent is an id, or an object with id and, if wanted, type and version; extra fields do no harm."""
    name = await exam.agent()
    for reference in (name, {"id": name}, {"id": name, "type": "agent"}, {"id": name, "version": 0, "extra": 1}):
        session = await exam.agreed(await exam.admit(agent=reference), "agent_id")
        expect.equal(f"agent_id for {reference}", name, session["agent_id"])


@requirement("CAS-SESS-04")
async def a_version_can_be_chosen(exam: CasExamination) -> None:
    """Without a version, or with 0, the latest is caught; with a number that one."""
    first = await exam.new_agent()
    second = await _second_version(exam, first)
    name = first["id"]
    references: tuple[tuple[Any, Body], ...] = (
        (name, second),
        ({"id": name}, second),
        ({"id": name, "version": 0}, second),
        ({"id": name, "version": first["version"]}, first),
    )
    for reference, wanted in references:
        snapshot = (await exam.agreed(await exam.admit(agent=reference), "agent"))["agent"]
        expect.equal(f"the snapshot for {reference}", _caught(wanted), _caught(snapshot))


def _caught(agent: Body) -> tuple[Any, ...]:
    return agent.get("version"), agent.get("name"), agent.get("system") or ""


@requirement("CAS-SESS-04")
async def an_unknown_agent_is_refused(exam: CasExamination) -> None:
    """An agent or a version nobody has, or no agent at all, is a 404 or 400."""
    stranger, environment = exam.stranger("agent"), await exam.environment()
    for reference in (stranger, {"id": stranger}, {"id": await exam.agent(), "version": 4711}, {"type": "agent"}, None):
        body = {"environment_id": environment} | ({"agent": reference} if reference is not None else {})
        exam.refused(await exam.create(body), 404, 400)


@requirement("CAS-SESS-04")
async def the_snapshot_does_not_change(exam: CasExamination) -> None:
    """Updating the agent changes no session made before."""
    agent = await exam.new_agent(system="The first version.")
    talk = await exam.open(agent=agent["id"])
    caught = await exam.agreed(talk, "agent")
    await _second_version(exam, agent)
    agree("the snapshot", caught["agent"], (await talk.info())["agent"])


@requirement("CAS-SESS-05")
async def an_environment_is_named_in_two_ways(exam: CasExamination) -> None:
    """environment_id and environment both take an id."""
    name = await exam.environment()
    for field in ("environment_id", "environment"):
        session = await exam.agreed(await exam.admit(**{field: name}), "environment_id")
        expect.equal(f"environment_id for {field}", name, session["environment_id"])


async def _inline(exam: CasExamination, **environment: Any) -> Reply:
    reply = await exam.attempt(environment=environment)
    if reply.status == 201:
        exam.remember(f"/environments/{reply.json()['environment_id']}")
    return reply


@requirement("CAS-SESS-05")
async def an_environment_can_be_given_inline(exam: CasExamination) -> None:
    """An inline environment is made with the session; without a name, or with a blank one, it has the usual name."""
    config = exam.profile.environment_config
    cases: tuple[tuple[Body, str], ...] = (
        ({"name": "Mine", "description": "of the examiners", "metadata": {"a": "1"}}, "Mine"),
        ({}, DEFAULT_NAME),
        ({"name": ""}, DEFAULT_NAME),
        ({"name": "  "}, DEFAULT_NAME),
    )
    for given, wanted in cases:
        reply = expect.status(await _inline(exam, config=config, **given), 201)
        made = await exam.have("environment", "GET", f"/environments/{reply.json()['environment_id']}")
        expect.equal(f"the name of the environment given as {given}", wanted, made.get("name"))


@requirement("CAS-SESS-05")
async def an_environment_needs_a_config(exam: CasExamination) -> None:
    """An inline environment without config is a 400; an unknown environment is a 404 or 400."""
    exam.refused(await _inline(exam, name="Mine"), 400)
    for field in ("environment_id", "environment"):
        exam.refused(await exam.attempt(**{field: exam.stranger("env")}), 404, 400)
