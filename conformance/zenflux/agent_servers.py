"""Section agent_servers: which MCP servers of the register an agent has."""

from dataclasses import dataclass

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.agents import Agent, any_agent, own_agent
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import (
    call,
    deleted,
    expect_deleted_once,
    granted,
    made,
    manage,
    mentions,
    offered,
    own_name,
    own_unless_forbidden,
    perhaps,
    refused,
    shows,
)
from conformance.zenflux.mcp_servers import Server, is_there, own_server
from conformance.zenflux.rest_answer import listed

NO_AGENT = "/agents/examined-nobody/mcp"


@dataclass(frozen=True)
class Enabled:
    """A server that an agent has."""

    agent: Agent
    server: Server

    @property
    def list(self) -> str:
        return f"{self.agent.path}/mcp"

    @property
    def path(self) -> str:
        return f"{self.list}/{self.server.name}"


async def own_enabled(exam: ZenfluxExamination) -> Enabled:
    """An agent and a server of this case's, the one with the other; NotTestable if that cannot be."""
    with expect.preparing("an agent with an MCP server"):
        found = Enabled(await own_agent(exam), await own_server(exam))
        answer = await manage(exam, "POST", found.path, {})
        made(answer, "enable MCP servers")
        expect.that(await _is_enabled(exam, found), "a server that was enabled to be so", answer.reply.told)
    return found


async def _is_enabled(exam: ZenfluxExamination, it: Enabled) -> bool:
    """Whether the agent's list shows the server, or it cannot be enabled once more."""
    return await shows(exam, it.server.mark, it.list) or (await manage(exam, "POST", it.path, {})).code == 409


# -- the rows of the specification -------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.5-11")
async def servers_of_an_agent_are_listed(exam: ZenfluxExamination) -> None:
    """GET /agents/{id}/mcp lists the servers that an agent has, among them one that was enabled."""
    made = await perhaps(exam, own_enabled)
    place = made.list if made else f"{(await any_agent(exam)).path}/mcp"
    items = listed((await manage(exam, "GET", place)).done(), "mcps", "servers")
    if made is not None:
        expect.that(mentions(items, made.server.name), f"the server {made.server.name} in the agent's list", items)


@requirement("ZF-HTTP-3.5-12")
async def a_server_is_enabled(exam: ZenfluxExamination) -> None:
    """POST /agents/{id}/mcp/{name} gives an agent a server of the register; it may be forbidden."""
    agent = await own_unless_forbidden(exam, own_agent, "POST", f"{NO_AGENT}/nobody", {})
    server = await own_unless_forbidden(exam, own_server, "POST", f"{NO_AGENT}/nobody", {})
    if agent is not None and server is not None:
        it = Enabled(agent, server)
        if granted(await manage(exam, "POST", it.path, {})):
            expect.that(await _is_enabled(exam, it), f"the agent to have the server {server.name}", "it does not")


@requirement("ZF-HTTP-3.5-13")
async def a_server_of_an_agent_is_changed(exam: ZenfluxExamination) -> None:
    """PUT /agents/{id}/mcp/{name} changes how an agent has a server; it may be forbidden."""
    change = {"metadata": {"note": "examined"}}
    it = await own_unless_forbidden(exam, own_enabled, "PUT", f"{NO_AGENT}/nobody", change)
    if it is not None:
        granted(await manage(exam, "PUT", it.path, change))


@requirement("ZF-HTTP-3.5-14")
async def a_server_is_disabled(exam: ZenfluxExamination) -> None:
    """DELETE /agents/{id}/mcp/{name} takes a server from an agent; it may be forbidden."""
    it = await own_unless_forbidden(exam, own_enabled, "DELETE", f"{NO_AGENT}/nobody")
    if it is not None and granted(await manage(exam, "DELETE", it.path)):
        is_left = await shows(exam, it.server.mark, it.list)
        expect.that(not is_left, f"the agent to be without the server {it.server.name}", "it still has it")


@requirement("ZF-HTTP-3.5-15")
async def available_servers_are_listed(exam: ZenfluxExamination) -> None:
    """GET /agents/{id}/mcp/available lists servers, those of the register too, and is not taken for one."""
    server = await perhaps(exam, own_server)
    place = f"{(await any_agent(exam)).path}/mcp/available"
    items = listed((await manage(exam, "GET", place)).done(), "mcps", "servers")
    if server is not None:
        expect.that(mentions(items, server.name), f"the server {server.name} among the available", items)


# -- what the published server does ------------------------------------------------------------------------------------


@requirement("ZF-MCP-01.out")
async def the_list_of_an_agent_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {agent_id, total, mcps}; each server is the agent's and not global."""
    it = await own_enabled(exam)
    data = await exam.read("agent_mcp_page", it.list)
    told = [[item["server_name"], item["agent_id"], item["is_global"]] for item in data["mcps"]]
    expect.equal("the servers", [[it.server.name, it.agent.id, False]], told)
    expect.equal("agent_id and total", [it.agent.id, 1], [data["agent_id"], data["total"]])


@requirement("ZF-MCP-01.err")
async def an_unknown_agent_has_no_servers(exam: ZenfluxExamination) -> None:
    """The servers of an unknown agent are a 404."""
    await offered(exam, f"{(await any_agent(exam)).path}/mcp")
    refused(await call(exam, "GET", NO_AGENT), 404)


@requirement("ZF-MCP-02.out")
async def enabling_is_answered_with_the_server(exam: ZenfluxExamination) -> None:
    """data is the server, with the agent it belongs to."""
    it = Enabled(await own_agent(exam), await own_server(exam))
    data = await exam.send("mcp_server", it.path, {})
    told = [data["server_name"], data["agent_id"], data["is_global"]]
    expect.equal("the server", [it.server.name, it.agent.id, False], told)


@requirement("ZF-MCP-02.err")
async def what_cannot_be_enabled_is_refused(exam: ZenfluxExamination) -> None:
    """An unknown agent and an unknown server are 404, a server that is enabled 409, somebody else's secret 400."""
    it, other = await own_enabled(exam), await own_server(exam)
    refused(await call(exam, "POST", f"{NO_AGENT}/{it.server.name}", {}), 404)
    refused(await call(exam, "POST", f"{it.list}/{own_name()}", {}), 404)
    refused(await call(exam, "POST", it.path, {}), 409)
    refused(await call(exam, "POST", f"{it.list}/{other.name}", {"auth_env": "EXAMINED_BY_NOBODY"}), 400)


@requirement("ZF-MCP-03.out")
async def a_change_is_answered_with_the_server(exam: ZenfluxExamination) -> None:
    """data is the server, as it is after the change."""
    it = await own_enabled(exam)
    data = (await call(exam, "PUT", it.path, {"metadata": {"note": it.server.mark}})).done()
    exam.schemas.fit("mcp_server", data, f"the data of PUT {it.path}")
    expect.equal("metadata", {"note": it.server.mark}, data["metadata"])


@requirement("ZF-MCP-03.err")
async def what_an_agent_does_not_have_cannot_be_changed(exam: ZenfluxExamination) -> None:
    """An unknown agent, and a server that the agent does not have, are 404; is_active of a wrong type is 400."""
    it, other = await own_enabled(exam), await own_server(exam)
    refused(await call(exam, "PUT", f"{NO_AGENT}/{it.server.name}", {"is_active": True}), 404)
    refused(await call(exam, "PUT", f"{it.list}/{other.name}", {"is_active": True}), 404)
    refused(await call(exam, "PUT", it.path, {"is_active": "never"}), 400)


@requirement("ZF-MCP-03.does")
async def an_inactive_server_is_left_out(exam: ZenfluxExamination) -> None:
    """After is_active false a server is listed with include_inactive only."""
    it = await own_enabled(exam)
    (await call(exam, "PUT", it.path, {"is_active": False})).done()
    expect.that(not await shows(exam, it.server.mark, it.list), "an inactive server not to be listed", "it is")
    items = listed((await call(exam, "GET", it.list, include_inactive="true")).done(), "mcps")
    expect.that(mentions(items, it.server.name), "the server with include_inactive", items)


@requirement("ZF-MCP-04.out")
async def disabling_is_answered_with_the_names(exam: ZenfluxExamination) -> None:
    """data is {agent_id, server_name}."""
    it = await own_enabled(exam)
    data = await deleted(exam, it.path, "agent_mcp_removed")
    expect.equal("the names", [it.agent.id, it.server.name], [data["agent_id"], data["server_name"]])


@requirement("ZF-MCP-04.err")
async def what_an_agent_does_not_have_cannot_be_disabled(exam: ZenfluxExamination) -> None:
    """Disabling twice, or for an unknown agent, is a 404."""
    it = await own_enabled(exam)
    refused(await call(exam, "DELETE", f"{NO_AGENT}/{it.server.name}"), 404)
    await expect_deleted_once(exam, it.path)


@requirement("ZF-MCP-04.does")
async def a_disabled_server_stays_registered(exam: ZenfluxExamination) -> None:
    """A server that is taken from an agent stays in the register."""
    it = await own_enabled(exam)
    (await call(exam, "DELETE", it.path)).done()
    expect.that(await is_there(exam, it.server), "the server to stay in the register", "it is gone")


@requirement("ZF-MCP-05.in")
async def enabled_servers_can_be_left_out(exam: ZenfluxExamination) -> None:
    """With include_enabled false, servers that the agent has are not among the available."""
    it, other = await own_enabled(exam), await own_server(exam)
    items = listed((await call(exam, "GET", f"{it.list}/available", include_enabled="false")).done(), "mcps")
    told = [mentions(items, server.name) for server in (it.server, other)]
    expect.equal("whether the enabled and the other are available", [False, True], told)


@requirement("ZF-MCP-05.out")
async def the_available_servers_have_their_shape(exam: ZenfluxExamination) -> None:
    """data is {agent_id, total, enabled_count, mcps}; is_enabled_by_agent says which the agent has."""
    it, other = await own_enabled(exam), await own_server(exam)
    data = await exam.read("agent_mcp_choice", f"{it.list}/available")
    told = {item["server_name"]: item["is_enabled_by_agent"] for item in data["mcps"]}
    expect.equal("is_enabled_by_agent", [True, False], [told.get(it.server.name), told.get(other.name)])
    expect.equal("agent_id and enabled_count", [it.agent.id, 1], [data["agent_id"], data["enabled_count"]])
    expect.equal("total", len(data["mcps"]), data["total"])


@requirement("ZF-MCP-05.err")
async def nothing_is_available_to_an_unknown_agent(exam: ZenfluxExamination) -> None:
    """What is available to an unknown agent is a 404."""
    await offered(exam, f"{(await any_agent(exam)).path}/mcp/available")
    refused(await call(exam, "GET", f"{NO_AGENT}/available"), 404)


@requirement("ZF-MCP-10.does")
async def agents_lose_a_server_that_is_removed(exam: ZenfluxExamination) -> None:
    """A server that is removed from the register is taken from the agents that had it."""
    it = await own_enabled(exam)
    (await call(exam, "DELETE", it.server.path)).done()
    is_left = await shows(exam, it.server.mark, it.list)
    expect.that(not is_left, "the agent to be without a server that was removed", "it still has it")
