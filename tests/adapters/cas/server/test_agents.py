"""CAS's agents over real HTTP: made, changed in versions, listed, archived, deleted; and those of the settings."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.cas.server.agents import UserAgents
from gateway.json_values import JsonValue
from gateway.ports import Resource
from tests.support.dialects.cas.catalog_server import Catalog, catalog

TOOLSET = {"type": "agent_toolset_20260401"}
CUSTOM = {"type": "custom", "name": "weather", "description": "d", "input_schema": {"type": "object"}}
NEW = {"name": "helper", "model": "demo-1"}


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


async def test_an_agent_is_made_with_all_its_fields(cas: Catalog) -> None:
    made = await cas.made("/agents", {**NEW, "system": "Be brief.", "tools": [CUSTOM], "metadata": {"team": "a"}})
    assert made["id"].startswith("agent_")
    assert made | {"id": "", "created_at": "", "updated_at": ""} == {
        "id": "", "type": "agent", "name": "helper", "description": "", "model": "demo-1", "system": "Be brief.",
        "tools": [CUSTOM], "mcp_servers": [], "skills": [], "metadata": {"team": "a"}, "version": 1,
        "archived_at": None, "created_at": "", "updated_at": "",
    }
    assert made["created_at"].endswith("Z")
    assert (await cas.get(f"/agents/{made['id']}")).body == made


async def test_an_agent_that_is_deleted_while_it_is_listed_does_no_harm(
    cas: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, usual = await cas.made("/agents", NEW), UserAgents.skills_of

    async def deleted_first(self: UserAgents, found: Resource) -> list[JsonValue]:
        if found.resource_id == made["id"]:
            await self.delete(made["id"])
        return await usual(self, found)

    monkeypatch.setattr(UserAgents, "skills_of", deleted_first)
    listed = await cas.get("/agents")
    assert (listed.status, made in listed.body["data"]) == (200, True)
    assert (await cas.get(f"/agents/{made['id']}")).status == 404


async def test_both_mounts_show_the_same(cas: Catalog) -> None:
    made = await cas.made("/v1/agents", NEW)
    assert (await cas.get(f"/agents/{made['id']}")).body == made


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_change_is_a_new_version_and_the_old_one_stays(cas: Catalog, method: str) -> None:
    made = await cas.made("/agents", {**NEW, "description": "old", "system": "s"})
    changed = await cas.call(method, f"/agents/{made['id']}", {"version": 1, "name": "other", "description": None})
    assert (changed.status, changed.body["version"], changed.body["name"]) == (200, 2, "other")
    assert (changed.body["description"], changed.body["system"]) == ("", "s")
    assert (await cas.get(f"/agents/{made['id']}?version=1")).body == made
    versions = (await cas.get(f"/agents/{made['id']}/versions")).body
    assert [one["version"] for one in versions["data"]] == [2, 1]


async def test_versions_come_in_pages(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    for number in (1, 2, 3):
        await cas.post(f"/agents/{made['id']}", {"version": number, "name": f"n{number}"})
    first = (await cas.get(f"/agents/{made['id']}/versions?limit=3")).body
    rest = (await cas.get(f"/agents/{made['id']}/versions?limit=3&page={first['next_page']}")).body
    assert [one["version"] for one in [*first["data"], *rest["data"]]] == [4, 3, 2, 1]
    assert (first["has_more"], rest["has_more"], rest["next_page"]) == (True, False, None)
    assert (await cas.get(f"/agents/{made['id']}/versions?after_id={made['id']}")).status == 400


@pytest.mark.parametrize("version", [{"version": 7}, {"version": 0}, {}])
async def test_a_change_names_the_current_version(cas: Catalog, version: dict[str, int]) -> None:
    made = await cas.made("/agents", NEW)
    assert (await cas.post(f"/agents/{made['id']}", {"name": "x", **version})).status == 409
    assert (await cas.get(f"/agents/{made['id']}")).body == made


async def test_a_change_that_changes_nothing_is_no_version(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    assert (await cas.post(f"/agents/{made['id']}", {"version": 1, "name": "helper"})).body == made


async def test_an_archived_agent_is_hidden_and_cannot_change(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    archived = await cas.post(f"/agents/{made['id']}/archive", {})
    assert archived.body["archived_at"]
    assert made["id"] not in [one["id"] for one in (await cas.get("/agents")).body["data"]]
    assert made["id"] in [one["id"] for one in (await cas.get("/agents?include_archived=true")).body["data"]]
    assert (await cas.post(f"/agents/{made['id']}", {"version": 1, "name": "x"})).status == 409


async def test_a_deleted_agent_is_gone(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    assert (await cas.delete(f"/agents/{made['id']}")).body == {"id": made["id"], "type": "agent_deleted"}
    assert (await cas.get(f"/agents/{made['id']}")).status == 404
    assert (await cas.delete(f"/agents/{made['id']}")).status == 404


# -- those of the settings --------------------------------------------------------------------------------------------

async def test_the_agents_of_the_settings_are_there_from_the_start(cas: Catalog) -> None:
    listed = (await cas.get("/agents")).body
    assert [(one["id"], one["version"]) for one in listed["data"]] == [("agent_demo", 1)]
    shown = (await cas.get("/agents/agent_demo")).body
    made = await cas.made("/agents", NEW)
    assert shown["created_at"][:4] == made["created_at"][:4], "an agent of the settings is as old as the server"
    assert (await cas.get("/environments/env_default")).body["created_at"] == shown["created_at"]
    await cas.delete(f"/agents/{made['id']}")
    assert "calc" in shown["tools"][0]["enabled_tools"]
    assert [one["version"] for one in (await cas.get("/agents/agent_demo/versions")).body["data"]] == [1]
    assert (await cas.get("/agents/agent_demo?version=2")).status == 404


async def test_the_agents_of_the_settings_cannot_change(cas: Catalog) -> None:
    assert (await cas.post("/agents/agent_demo", {"version": 1, "name": "x"})).status == 403
    assert (await cas.post("/agents/agent_demo/archive")).status == 403
    assert (await cas.delete("/agents/agent_demo")).status == 403


async def test_the_models_are_those_of_the_agents(cas: Catalog) -> None:
    models = (await cas.get("/models")).body
    assert models["data"] == [{"id": "demo-1", "type": "model", "display_name": "Demo agent", "is_enabled": True}]
    assert models["has_more"] is False


async def test_an_agent_is_found_by_its_model_or_its_name(tmp_path: Path) -> None:
    demo = {"backend": "demo"}
    agents = {"ein Name": {**demo, "model": "m"}, "first": demo, "second": demo}
    async with catalog(tmp_path, agents=agents) as cas:
        assert [one["id"] for one in (await cas.get("/models")).body["data"]] == ["m", "demo-1", "second"]
        for model in ("demo-1", "second", "first", "m", "ein Name", {"id": "m", "speed": "fast"}):
            assert (await cas.made("/agents", {"name": "a", "model": model}))["model"] == model
        refused = await cas.post("/agents", {"name": "a", "model": "gpt"})
        assert refused.status == 400
        assert "m, demo-1, second" in refused.body["error"]["message"]
        shown = [one for one in (await cas.get("/agents?limit=100")).body["data"] if one["name"] == "ein Name"]
        assert (await cas.get(f"/agents/{shown[0]['id']}")).status == 200


# -- lists ------------------------------------------------------------------------------------------------------------

async def test_a_list_is_walked_in_both_directions(cas: Catalog) -> None:
    ids = [(await cas.made("/agents", NEW))["id"] for _ in range(5)]
    order = [*ids[::-1], "agent_demo"]
    seen, query = [], "limit=2"
    while True:
        page = (await cas.get(f"/agents?{query}")).body
        seen += [one["id"] for one in page["data"]]
        assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        if not page["has_more"]:
            break
        query = f"limit=2&page={page['next_page']}"
    assert seen == order

    async def ids_of(query: str) -> list[str]:
        return [one["id"] for one in (await cas.get(f"/agents?{query}")).body["data"]]

    assert await ids_of(f"after_id={order[2]}&limit=2") == order[3:5]
    assert await ids_of(f"before_id={order[4]}&limit=2") == order[2:4]
    assert await ids_of("order=asc") == order[::-1]
    assert await ids_of(f"order=asc&after_id={order[2]}") == order[1::-1]
    back = (await cas.get(f"/agents?before_id={order[5]}&limit=3")).body
    assert await ids_of(f"limit=3&page={back['next_page']}") == order[:2]


async def test_a_page_is_found_again_after_its_edge_was_deleted(cas: Catalog) -> None:
    ids = [(await cas.made("/agents", NEW))["id"] for _ in range(3)]
    page = (await cas.get("/agents?limit=2")).body
    await cas.delete(f"/agents/{ids[1]}")
    assert (await cas.get(f"/agents?page={page['next_page']}")).body["first_id"] == ids[0]


async def test_an_empty_list_has_an_envelope(cas: Catalog) -> None:
    empty = {"data": [], "first_id": None, "last_id": None, "has_more": False, "next_page": None}
    assert (await cas.get("/vaults")).body == empty


@pytest.mark.parametrize("query", [
    "limit=0", "limit=-1", "limit=x", "limit=1.5", "limit=%C2%B2",
    "after_id=agent_nobody", "before_id=agent_nobody", "page=nonsense", "page=%00", "page=eA", "order=up",
    "page=YTk5OTk5OTk5OTk5OTk5OTk5OTk",
    "after_id=agent_demo&before_id=agent_demo", "after_id=agent_demo&page=YTE", "include_archived=perhaps",
])
async def test_a_list_that_cannot_be_asked_for(cas: Catalog, query: str) -> None:
    refused = await cas.get(f"/agents?{query}")
    assert (refused.status, refused.body["type"]) == (400, "error")


# -- what is refused --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("change", "param"), [
    ({"name": None}, "name"), ({"name": ""}, "name"), ({"name": 5}, "name"), ({"name": "n" * 257}, "name"),
    ({"model": 5}, "model"), ({"model": {}}, "model"), ({"model": {"id": ""}}, "model"), ({"model": None}, "model"),
    ({"system": 5}, "system"), ({"system": ["x"]}, "system"), ({"description": {}}, "description"),
    ({"tools": "calc"}, "tools"), ({"tools": [5]}, "tools"), ({"tools": [{"type": "other"}]}, "tools"),
    ({"tools": [{}]}, "tools"), ({"tools": [{**TOOLSET, "enabled_tools": "calc"}]}, "tools"),
    ({"tools": [{**TOOLSET, "configs": [{"name": "calc", "permission_policy": {"type": "maybe"}}]}]}, "tools"),
    ({"tools": [{"type": "custom"}]}, "tools"), ({"tools": [{**CUSTOM, "input_schema": "x"}]}, "tools"),
    ({"tools": [CUSTOM, CUSTOM]}, "tools"), ({"tools": [{"type": "mcp_toolset"}]}, "tools"),
    ({"mcp_servers": {}}, "mcp_servers"), ({"mcp_servers": [{"name": "x", "url": "file:///etc"}]}, "mcp_servers"),
    ({"skills": ["x"]}, "skills"), ({"metadata": []}, "metadata"), ({"metadata": {"a": 5}}, "metadata"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata"), ({"metadata": {"k" * 65: ""}}, "metadata"),
    ({"metadata": {"k": "v" * 513}}, "metadata"),
])
async def test_a_field_of_the_wrong_shape_is_named(cas: Catalog, change: dict[str, Any], param: str) -> None:
    refused = await cas.post("/agents", {**NEW, **change})
    assert refused.status == 400
    assert refused.body["error"]["param"].startswith(param)
    assert param in refused.body["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"name": NaN}'])
async def test_a_body_that_is_no_object_is_refused(cas: Catalog, body: bytes) -> None:
    assert (await cas.post("/agents", body, Content_Type="application/json")).status == 400


async def test_metadata_at_its_limits_is_taken(cas: Catalog) -> None:
    metadata = {f"{number:064}": "v" * 512 for number in range(16)}
    assert (await cas.made("/agents", {**NEW, "metadata": metadata}))["metadata"] == metadata


@pytest.mark.parametrize("path", ["/agents/agent_x", "/agents/agent_x/versions", "/agents/%2e%2e%2fetc", "/agents/ä"])
async def test_an_unknown_agent_is_not_found(cas: Catalog, path: str) -> None:
    refused = await cas.get(path)
    assert refused.status == 404
    assert refused.body["error"]["message"].endswith("was not found.")


async def test_a_version_that_is_no_number_is_refused(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    assert (await cas.get(f"/agents/{made['id']}?version=x")).status == 400
    assert (await cas.get(f"/agents/{made['id']}?version=2")).status == 404
    assert (await cas.get(f"/agents/{made['id']}?version=0")).body == made
