"""What a session takes from the catalog: its agent as it is now, its environment, and what must exist."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.cas.server.session_setup import (
    check_file,
    check_memory_store,
    check_vault,
    choose_agent,
    choose_environment,
)
from gateway.errors import Conflict, GatewayError, Invalid, NotFound
from gateway.http import ANONYMOUS
from tests.support.dialects.cas.catalog_server import Catalog, catalog, form

CUSTOM = {"type": "custom", "name": "weather", "description": "d", "input_schema": {"type": "object", "x": 1}}


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


def toolset(**said: Any) -> list[dict[str, Any]]:
    return [{"type": "agent_toolset_20260401", **said}]


async def test_an_agent_of_the_settings_leaves_everything_as_it_is(cas: Catalog) -> None:
    choice = await choose_agent(cas.context, ANONYMOUS, "agent_demo")
    assert (choice.agent, choice.agent_id, choice.version) == ("demo", "agent_demo", 1)
    assert (choice.settings.tools, choice.settings.model, choice.settings.system) == (None, None, None)
    assert choice.snapshot["type"] == "agent"


async def test_a_made_agent_brings_its_settings(cas: Catalog) -> None:
    made = await cas.made("/agents", {
        "name": "a", "model": {"id": "demo-1"}, "system": "Be brief.", "tools": [*toolset(), CUSTOM],
    })
    choice = await choose_agent(cas.context, ANONYMOUS, {"id": made["id"], "type": "agent"})
    assert (choice.agent, choice.settings.model, choice.settings.system) == ("demo", "demo-1", "Be brief.")
    assert [tool.name for tool in choice.settings.client_tools] == ["weather"]
    assert choice.settings.client_tools[0].parameters == {"type": "object", "x": 1}
    assert choice.snapshot == made


async def test_a_snapshot_does_not_change_with_its_agent(cas: Catalog) -> None:
    made = await cas.made("/agents", {"name": "a", "model": "demo"})
    before = await choose_agent(cas.context, ANONYMOUS, made["id"])
    await cas.post(f"/agents/{made['id']}", {"version": 1, "name": "b"})
    assert before.snapshot["name"] == "a"
    assert (await choose_agent(cas.context, ANONYMOUS, made["id"])).version == 2
    assert (await choose_agent(cas.context, ANONYMOUS, {"id": made["id"], "version": 0})).version == 2
    pinned = await choose_agent(cas.context, ANONYMOUS, {"id": made["id"], "version": 1})
    assert (pinned.snapshot["name"], pinned.version) == ("a", 1)


async def test_a_session_may_change_its_agent_for_itself(cas: Catalog) -> None:
    made = await cas.made("/agents", {"name": "a", "model": "demo", "system": "old", "tools": toolset()})
    choice = await choose_agent(cas.context, ANONYMOUS, {"id": made["id"], "system": "new", "tools": [CUSTOM]})
    assert (choice.settings.system, choice.settings.tools) == ("new", {})
    assert choice.snapshot["tools"] == [CUSTOM]
    assert (await cas.get(f"/agents/{made['id']}")).body == made


@pytest.mark.parametrize(("ref", "refusal"), [
    ("agent_nobody", NotFound), ("", Invalid), ({}, Invalid), ({"id": 5}, Invalid), ({"id": "agent_nobody"}, NotFound),
    ({"id": "agent_demo", "version": 2}, NotFound), ({"id": "agent_demo", "version": -1}, Invalid),
    ({"id": "agent_demo", "version": "1"}, Invalid), ({"id": "agent_demo", "model": "gpt"}, Invalid),
    (5, Invalid), (None, Invalid), ([], Invalid),
])
async def test_an_agent_that_cannot_be_had(cas: Catalog, ref: Any, refusal: type[GatewayError]) -> None:
    with pytest.raises(refusal):
        await choose_agent(cas.context, ANONYMOUS, ref)


async def test_an_archived_agent_starts_no_session(cas: Catalog) -> None:
    made = await cas.made("/agents", {"name": "a", "model": "demo"})
    await cas.post(f"/agents/{made['id']}/archive")
    for ref in (made["id"], {"id": made["id"], "version": 1}):
        with pytest.raises(Conflict, match="archived"):
            await choose_agent(cas.context, ANONYMOUS, ref)


async def test_an_agent_whose_model_is_gone_starts_no_session(cas: Catalog) -> None:
    made = await cas.made("/agents", {"name": "a", "model": "demo"})
    cas.gateway.replace_components(replace(cas.gateway.components, cards={}))
    with pytest.raises(Invalid, match="no model 'demo'"):
        await choose_agent(cas.context, ANONYMOUS, made["id"])


async def test_other_peoples_things_do_not_exist(cas: Catalog) -> None:
    agent = await cas.made("/agents", {"name": "a", "model": "demo"})
    environment = await cas.made("/environments", {"name": "e"})
    with pytest.raises(NotFound):
        await choose_agent(cas.context, "somebody", agent["id"])
    with pytest.raises(NotFound):
        await choose_environment(cas.context, "somebody", {"environment_id": environment["id"]})


# -- environments -----------------------------------------------------------------------------------------------------

async def test_an_environment_is_named_or_described(cas: Catalog) -> None:
    made = await cas.made("/environments", {"name": "e", "config": {"type": "self_hosted"}})
    for body in ({"environment_id": made["id"]}, {"environment": made["id"]}):
        assert await choose_environment(cas.context, ANONYMOUS, body) == (made["id"], True)
    for name in ({}, {"name": "  "}, {"name": None}):
        choice = await choose_environment(
            cas.context, ANONYMOUS, {"environment": {**name, "config": {"type": "cloud"}}}
        )
        shown = (await cas.get(f"/environments/{choice.environment_id}")).body
        assert (shown["name"], choice.self_hosted) == ("Session Environment", False)
    identity, self_hosted = await choose_environment(cas.context, ANONYMOUS, {"environment_id": made["id"]})
    assert (identity, self_hosted) == (made["id"], True)


@pytest.mark.parametrize("body", [
    {}, {"environment": {}}, {"environment": {"name": "x"}}, {"environment": {"config": {"type": "mars"}}},
    {"environment": {"config": 5}}, {"environment_id": 5}, {"environment_id": ""}, {"environment": []},
    {"environment_id": "env_a", "environment": "env_b"}, {"environment": {"config": {}, "metadata": {"a": 1}}},
])
async def test_an_environment_that_makes_no_sense(cas: Catalog, body: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await choose_environment(cas.context, ANONYMOUS, body)


async def test_an_archived_or_unknown_environment_starts_no_session(cas: Catalog) -> None:
    made = await cas.made("/environments", {"name": "e"})
    await cas.post(f"/environments/{made['id']}/archive")
    with pytest.raises(Conflict):
        await choose_environment(cas.context, ANONYMOUS, {"environment_id": made["id"]})
    with pytest.raises(NotFound):
        await choose_environment(cas.context, ANONYMOUS, {"environment_id": "env_none"})


# -- what must exist --------------------------------------------------------------------------------------------------

async def test_what_a_session_uses_must_exist(cas: Catalog) -> None:
    file = await cas.made("/files", form())
    vault = await cas.made("/vaults", {"display_name": "v"})
    store = await cas.made("/memory_stores", {"name": "m"})
    await check_file(cas.context, ANONYMOUS, file["id"])
    await check_vault(cas.context, ANONYMOUS, vault["id"])
    await check_memory_store(cas.context, ANONYMOUS, store["id"])
    for check in (check_file, check_vault, check_memory_store):
        with pytest.raises(Invalid, match="'nothing' was not found"):
            await check(cas.context, ANONYMOUS, "nothing")


async def test_mcp_servers_reach_the_backend(cas: Catalog) -> None:
    server = {"type": "url", "name": "docs", "url": "https://mcp.example.test/sse"}
    made = await cas.made("/agents", {"name": "a", "model": "demo-1", "mcp_servers": [server]})
    choice = await choose_agent(cas.context, ANONYMOUS, made["id"])
    [kept] = choice.settings.mcp_servers
    assert (kept["name"], kept["url"]) == ("docs", "https://mcp.example.test/sse")
