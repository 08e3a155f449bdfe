"""Section other resources, agents: their fields, their versions, their ends, and what their tools may do."""

from conformance.cas.examination import Body, CasExamination
from conformance.cas.scenes import replies
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable

GIVEN = {"system": "Be brief.", "description": "For the examiners.", "metadata": {"a": "1"}}


async def _agent(exam: CasExamination, **more: object) -> Body:
    body = {"name": "Examinee", "model": await exam.model(), "tools": exam.profile.custom_tools, **more}
    agent = await exam.make("agent", "/agents", body)
    if "system" in more:
        expect.that(agent.get("system") == more["system"], "the system prompt that was given", agent, "CAS-RES-01")
    return agent


def _model(agent: Body) -> object:
    return agent["model"]["id"] if isinstance(agent["model"], dict) else agent["model"]


@requirement("CAS-RES-01")
async def an_agent_is_made_and_read(exam: CasExamination) -> None:
    """What is given comes back, on creation and on reading; the model may be a string or an object."""
    model = await exam.model()
    for spelled in (model, {"id": model}):
        agent = await _agent(exam, model=spelled, **GIVEN)
        read = await exam.have("agent", "GET", f"/agents/{agent['id']}")
        for told in (agent, read):
            expect.equal("the agent", GIVEN, {name: told.get(name) for name in GIVEN})
            expect.equal("name and model", ("Examinee", model), (told["name"], _model(told)))
            names = [tool.get("name") for tool in told.get("tools", []) if tool.get("type") == "custom"]
            expect.equal("its custom tools", [tool["name"] for tool in exam.profile.custom_tools], names)


@requirement("CAS-RES-01")
async def agents_are_listed(exam: CasExamination) -> None:
    """A new agent is in the list; one without a name is a 400, an unknown one a 404."""
    agent = await _agent(exam)
    page = await exam.have("agents", "GET", "/agents", query={"limit": "100"})
    expect.that(agent["id"] in [item["id"] for item in page["data"]] or page["has_more"], "the agent in the list", page)
    exam.refused(await exam.ask("POST", "/agents", {"model": await exam.model()}), 400)
    exam.refused(await exam.ask("GET", f"/agents/{exam.stranger('agent')}"), 404)


@requirement("CAS-RES-02")
async def an_update_makes_a_version(exam: CasExamination) -> None:
    """Naming the current version makes the next one; the older can still be read and is listed."""
    agent = await _agent(exam, **GIVEN)
    path = f"/agents/{agent['id']}"
    body = {"version": agent["version"], "system": "Be briefer."}
    updated = await exam.have("agent", "POST", path, body)
    expect.that(updated["version"] > agent["version"], "a new version", updated)
    seen = (updated.get("system"), updated["name"], updated.get("description"))
    expect.equal("system, name and description", ("Be briefer.", "Examinee", GIVEN["description"]), seen)
    expect.equal("the latest", updated["version"], (await exam.have("agent", "GET", path))["version"])
    older = await exam.have("agent", "GET", path, query={"version": str(agent["version"])})
    expect.equal("the older version", (agent["version"], GIVEN["system"]), (older["version"], older.get("system")))
    reply = expect.status(await exam.ask("GET", f"{path}/versions"), 200)
    listed = {item.get("version") for item in reply.json()["data"]}
    expect.equal("the versions", {agent["version"], updated["version"]}, listed)


@requirement("CAS-RES-02")
async def an_update_needs_the_current_version(exam: CasExamination) -> None:
    """An update that names an older version is a 409 and changes nothing."""
    agent = await _agent(exam, **GIVEN)
    path = f"/agents/{agent['id']}"
    updated = await exam.have("agent", "POST", path, {"version": agent["version"], "system": "Be briefer."})
    exam.refused(await exam.ask("POST", path, {"version": agent["version"], "system": "Be briefest."}), 409)
    seen = await exam.have("agent", "GET", path)
    expect.equal("the agent", (updated["version"], "Be briefer."), (seen["version"], seen.get("system")))


@requirement("CAS-RES-03")
async def an_agent_is_archived(exam: CasExamination) -> None:
    """An archived agent can be read and says when it was archived."""
    path = f"/agents/{(await _agent(exam))['id']}"
    await exam.have("agent", "POST", f"{path}/archive", {})
    agent = await exam.have("agent", "GET", path)
    expect.that(agent.get("archived_at") is not None, "archived_at to be set", agent)


@requirement("CAS-RES-03")
async def an_agent_is_deleted(exam: CasExamination) -> None:
    """A deleted agent is a 404."""
    path = f"/agents/{(await _agent(exam))['id']}"
    expect.status(await exam.ask("DELETE", path), 200, 204)
    exam.refused(await exam.ask("GET", path), 404)


@requirement("CAS-RES-04")
async def only_enabled_tools_are_called(exam: CasExamination) -> None:
    """A tool that is not enabled is not called; the turn ends all the same."""
    tool = exam.profile.server_tool("allowed_tool")
    others = {name: "always_allow" for name in exam.profile.policies if name != tool.name}
    if not others:
        raise NotTestable("the profile has no other tool")
    talk = await exam.open(agent=(await exam.new_agent(others))["id"])
    run = (await talk.say(tool.prompt)).stopped("end_turn")
    called = [event["name"] for event in run.of("agent.tool_use") if event["evaluated_permission"] == "allow"]
    expect.that(tool.name not in called, f"no call of {tool.name}", called)


@requirement("CAS-RES-04")
async def policies_are_obeyed(exam: CasExamination) -> None:
    """The same tool runs, asks or is denied, as its policy says."""
    tool = exam.profile.server_tool("allowed_tool")
    runs = {"always_allow": (await replies(exam)).run("tool").stopped("end_turn")}
    for policy, stop in (("always_ask", "requires_action"), ("always_deny", "end_turn")):
        talk = await exam.open(agent=(await exam.new_agent({tool.name: policy}))["id"])
        runs[policy] = (await talk.say(tool.prompt)).stopped(stop)
    for policy, run in runs.items():
        ran = [event for event in run.of("agent.tool_result") if not event["is_error"]]
        expect.equal(f"results under {policy}", policy == "always_allow", bool(ran))
