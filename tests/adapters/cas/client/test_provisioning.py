"""The agents and environments of a CAS server: made once, used again, and made anew when they are gone."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.cas.client.provisioning import OWN_MARK, agent_card, agent_settings, read_agent
from gateway.backends.demo.backend import DEMO_CARD
from gateway.errors import BackendFailed
from gateway.ports.remote import NewRemoteSession
from tests.adapters.cas.client.test_remote import ASKING, MINE, conversation, remote_of, speaking
from tests.support.client import byte_server as wire
from tests.support.dialects.cas.client import Client
from tests.support.dialects.cas.scripted_server import ScriptedServer, scripted_server


def listed(*rows: dict[str, Any], more: str | None = None) -> wire.Answer:
    return wire.says(orjson.dumps({"data": rows, "has_more": more is not None, "next_page": more}))


# -- at a gateway of ours ---------------------------------------------------------------------------------------------

async def test_settings_go_over_with_the_agent(tmp_path: Path) -> None:
    settings = m.Settings(
        tools={"clock": m.Permission.DENY, "calc": m.Permission.ASK}, client_tools=(MINE,), system="Be kind.",
        model="demo-1", options={"mood": "loud"}, mcp_servers=({"type": "url", "name": "m", "url": "https://example.test/m"},),
    )
    async with speaking(tmp_path) as (served, remote):
        session = await remote.open(NewRemoteSession(settings=settings, title="A title"))
        view = await served.gateway.sessions.get("", session)
        assert view.title == "A title"
        assert view.settings.tools == settings.tools
        assert view.settings.client_tools == settings.client_tools
        assert (view.settings.system, view.settings.model) == ("Be kind.", "demo-1")
        assert [server["name"] for server in view.settings.mcp_servers] == ["m"]
        assert view.settings.options == {}, "CAS has no options"


async def test_nothing_said_about_tools_stays_nothing_said(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        plain, with_tool = [await remote.open(NewRemoteSession(settings=one)) for one in (
            m.Settings(), m.Settings(client_tools=(MINE,)))]
        assert (await served.gateway.sessions.get("", plain)).settings.tools is None
        told = (await served.gateway.sessions.get("", with_tool)).settings
        own = {tool.spec.name: tool.permission for tool in DEMO_CARD.tools}
        assert told.tools == own, "the agent's own"
        none = await remote.open(NewRemoteSession(settings=m.Settings(tools={})))
        assert (await served.gateway.sessions.get("", none)).settings.tools == {}


async def test_agents_and_environments_are_used_again(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        client, other = Client(served), remote_of(served)
        for one in (remote, other):
            for settings in (m.Settings(), ASKING, m.Settings(), ASKING):
                await one.open(NewRemoteSession(settings=settings))
        await other.close()
        agents = (await client.ok("GET", "/agents?limit=100"))["data"]
        assert sorted(agent["name"] for agent in agents) == ["demo", OWN_MARK, OWN_MARK]
        assert len((await client.ok("GET", "/environments"))["data"]) == 1
        assert len((await client.ok("GET", "/sessions?limit=100"))["data"]) == 8


async def test_what_is_gone_is_made_anew(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        client = Client(served)
        await remote.open(NewRemoteSession())
        [agent] = [one["id"] for one in (await client.ok("GET", "/agents"))["data"] if one["name"] == OWN_MARK]
        [environment] = [one["id"] for one in (await client.ok("GET", "/environments"))["data"]]
        await client.ok("POST", f"/agents/{agent}/archive")
        await client.ok("DELETE", f"/environments/{environment}")
        session = await remote.open(NewRemoteSession())
        assert (await client.ok("GET", f"/sessions/{session}"))["agent_id"] != agent


async def test_a_named_agent_is_taken_as_it_is(tmp_path: Path) -> None:
    async with speaking(tmp_path, agent="agent_demo") as (served, remote):
        card = await remote.about()
        assert (card.name, card.model) == ("demo", "demo-1")
        assert [tool.spec.name for tool in card.tools] == ["clock", "calc", "search", "erase"]
        plain, asking = await remote.open(NewRemoteSession()), await remote.open(NewRemoteSession(settings=ASKING))
        agents = (await Client(served).ok("GET", "/agents"))["data"]
        assert [agent["id"] for agent in agents] == ["agent_demo"], "none was made"
        assert (await served.gateway.sessions.get("", plain)).settings == m.Settings()
        assert (await served.gateway.sessions.get("", asking)).settings.tools == ASKING.tools
        assert (await conversation(remote, asking, "/permit x")).facts.turns[0].asks == [("permission", 0, None)]


async def test_an_agent_may_be_named_as_the_settings_of_its_server_name_it(tmp_path: Path) -> None:
    async with speaking(tmp_path, agent="demo") as (served, remote):
        session = await remote.open(NewRemoteSession(settings=ASKING))
        assert (await remote.about()).name == "demo"
        assert [one["id"] for one in (await Client(served).ok("GET", "/agents"))["data"]] == ["agent_demo"]
        assert (await served.gateway.sessions.get("", session)).settings.tools == ASKING.tools


async def test_a_name_that_two_agents_have_names_none() -> None:
    twins = [{"id": name, "name": "Ada"} for name in ("agent_1", "agent_2")]
    async with scripted_server(stranger(get_agents=[listed(*twins)]), agent="Ada") as remote:
        with pytest.raises(BackendFailed, match="404"):
            await remote.open(NewRemoteSession())


async def test_a_named_agent_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with speaking(tmp_path, agent="agent_nobody") as (_, remote):
        for deed in (remote.about(), remote.open(NewRemoteSession())):
            with pytest.raises(BackendFailed, match="agent_nobody"):
                await deed


async def test_the_servers_own_choice_is_its_oldest_agent(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        await remote.open(NewRemoteSession(settings=ASKING))
        assert (await remote.about()).name == "demo"


# -- at other people's ------------------------------------------------------------------------------------------------

async def opened(stranger: ScriptedServer) -> str:
    async with scripted_server(stranger) as remote:
        return await remote.open(NewRemoteSession())


def stranger(**answers: list[wire.Answer]) -> ScriptedServer:
    return ScriptedServer(**{
        "get_agents": [listed()], "get_environments": [listed({"id": "env_1", "name": OWN_MARK})],
        "get_models": [listed({"id": "m-0", "is_enabled": False}, {"id": "m-1"})],
        "post_agents": [wire.says(b'{"id":"agent_1"}', 201)], "post_sessions": [wire.says(b'{"id":"sess_1"}', 201)],
        **answers,
    })


async def test_without_agents_the_first_model_is_taken() -> None:
    server = stranger()
    assert await opened(server) == "sess_1"
    assert server.asked("post_agents")[0].json["model"] == "m-1"
    assert server.asked("post_sessions")[0].json == {"agent": "agent_1", "environment_id": "env_1"}
    assert all(one.headers["idempotency-key"] for one in server.server.asked if one.method == "POST")
    async with scripted_server(stranger()) as remote:
        assert (await remote.about()).model == "m-1"


async def test_an_agent_of_ours_is_found_on_any_page() -> None:
    first = stranger()
    await opened(first)
    mark = first.asked("post_agents")[0].json["metadata"]
    again = stranger(get_agents=[
        listed({"id": "a"}, {"id": "b", "metadata": mark, "archived_at": "then"}, more="2"),
        listed({"id": "c", "metadata": mark}),
    ])
    await opened(again)
    assert again.asked("post_agents") == []
    assert again.asked("post_sessions")[0].json["agent"] == "c"


async def test_without_a_model_nothing_can_be_made() -> None:
    with pytest.raises(BackendFailed, match="neither an agent nor a model"):
        await opened(stranger(get_models=[listed()]))


async def test_a_refusal_that_stays_is_told_after_one_more_try() -> None:
    server = stranger(post_sessions=[wire.says(b'{"error":{"message":"No more sessions."}}', 409)])
    with pytest.raises(BackendFailed, match="No more sessions"):
        await opened(server)
    assert len(server.asked("post_sessions")) == 2


@pytest.mark.parametrize("named", [None, "agent_9"])
async def test_tools_of_a_client_do_not_take_away_what_the_agent_asks_about(named: str | None) -> None:
    policed = {"type": "agent_toolset_20260401", "configs": [
        {"name": "Bash", "permission_policy": {"type": "always_ask"}}]}
    agent = {"id": "agent_9", "model": "m-1", "tools": [policed, {"type": "custom", "name": "old"}]}
    server = stranger(get_agents=[listed(agent)], get_agent_9=[wire.says(orjson.dumps(agent))])
    async with scripted_server(server, agent=named) as remote:
        await remote.open(NewRemoteSession(settings=m.Settings(client_tools=(MINE,))))
    made = server.asked("post_agents")[0].json if named is None else server.asked("post_sessions")[0].json["agent"]
    assert (made["tools"][0], [tool["name"] for tool in made["tools"][1:]]) == (policed, [MINE.name])


# -- words ------------------------------------------------------------------------------------------------------------

def test_a_card_tells_what_the_agent_tells() -> None:
    named = {"id": "agent_1", "name": "Ada", "version": 4, "description": "", "model": {"id": "m", "x": 1}}
    card = agent_card(read_agent({**named, "tools": [
        {"type": "agent_toolset_20260401", "enabled_tools": ["Bash", 5], "configs": [
            {"name": "Bash", "permission_policy": {"type": "always_ask"}}, "x"]},
        {"type": "agent_toolset_20260401", "configs": [{"type": "Read"}, {"name": "Write", "enabled": False}]},
        {"type": "custom", "name": "mine"}, "x",
    ]}))
    assert (card.name, card.version, card.description, card.model) == ("Ada", "4", None, "m")
    assert [(tool.spec.name, tool.permission) for tool in card.tools] == [
        ("Bash", m.Permission.ASK), ("Read", m.Permission.ALLOW)]
    assert agent_card(read_agent({"id": "agent_1", "tools": None})).name == "agent_1"


def test_a_client_tool_without_parameters_takes_an_object() -> None:
    [custom] = agent_settings(m.Settings(client_tools=(m.ToolSpec(name="t"),))).tools or ()
    assert custom == {"type": "custom", "name": "t", "description": "", "input_schema": {"type": "object"}}

