"""A resource that is made in one dialect is seen, changed and deleted in the others: every kind, and every pair."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from adapters import known_dialects
from gateway.ports import SharedKind
from tests.support import shared_resources as shared
from tests.support.dialect_tables import DIALECTS
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.gateway_server import Served, serving
from tests.support.skill_zips import zipped

AAP, ZENFLUX, CAS, BLADE = "/aap", "/api/v1", "/api/v1/cloud", "/api"


@dataclass(frozen=True)
class Caller:
    """Calls of all dialects on one gateway."""

    served: Served

    async def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        return await shared.Caller(self.served.http, self.served.address).call(method, path, body, status=status)


@asynccontextmanager
async def calling(folder: Path) -> AsyncIterator[Caller]:
    async with serving(folder, log="memory", dialects={name: {} for name in known_dialects()}) as served:
        yield Caller(served)


# -- every kind, and every pair of dialects ---------------------------------------------------------------------------

HANDS = shared.all_hands()
PAIRS = [
    pytest.param(kind, maker, other, id=f"{kind.name.lower()}-{maker}-{other}")
    for kind, by_dialect in HANDS.items()
    for maker, making in by_dialect.items() if making.make is not None
    for other in by_dialect if other != maker
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[shared.Caller]:
    async with calling(tmp_path_factory.mktemp("crossing")) as caller:
        yield shared.Caller(caller.served.http, caller.served.address)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("kind", "maker", "other"), PAIRS)
async def test_what_one_dialect_makes_another_sees_changes_and_deletes(
    one_gateway: shared.Caller, kind: SharedKind, maker: str, other: str,
) -> None:
    """What the other dialect cannot do, the maker does, and the other sees."""
    caller, (making, others) = one_gateway, (HANDS[kind][maker], HANDS[kind][other])
    first, second = shared.VALUES[kind]
    assert making.make is not None
    name = await making.make(caller, first)
    assert [await hands.see(caller, name) for hands in (making, others)] == [first, first]
    if change := others.change or making.change:
        await change(caller, name, second)
        assert [await hands.see(caller, name) for hands in (making, others)] == [second, second]
    delete = others.delete or making.delete
    assert delete is not None, f"neither {maker} nor {other} deletes a resource of the kind '{kind}'"
    await delete(caller, name)
    assert [await hands.see(caller, name) for hands in (making, others)] == [None, None]


def test_every_dialect_that_shows_a_kind_is_tried() -> None:
    """A dialect, a path or a kind that is added is missed here until it has hands."""
    shown = {(kind, name) for name in DIALECTS for kind, places in dialect_of(name).resources.items() if places.paths}
    tried = {(kind, name) for kind, by_dialect in HANDS.items() for name in by_dialect}
    declared = {(kind, name) for name in DIALECTS for kind in dialect_of(name).resources}
    alone = {kind for kind in SharedKind if len({name for other, name in declared if other is kind}) < 2}
    missing = {one for one in shown - tried if one[0] not in alone and one[0] not in shared.ELSEWHERE}
    assert missing == set()
    assert tried <= declared


def test_every_verb_of_every_kind_is_tried() -> None:
    for kind, by_dialect in HANDS.items():
        verbs = {verb for hands in by_dialect.values() for verb in ("make", "change", "delete") if getattr(hands, verb)}
        assert verbs >= {"make", "delete"}, kind
        assert "change" in verbs or len(set(shared.VALUES[kind])) == 1, kind


async def test_what_dialects_declare_is_what_they_serve(tmp_path: Path) -> None:
    """A declared path has a route; a path that one dialect declares, and another serves, is declared by both."""
    async with calling(tmp_path) as caller:
        routes = {route.resource.canonical for route in caller.served.gateway.web.router.routes() if route.resource}
    for name in DIALECTS:
        dialect = dialect_of(name)
        for kind, places in dialect.resources.items():
            for path in places.paths:
                assert any(route.startswith(f"{dialect.mount}{path}") for route in routes), (name, kind, path)
    words = {path for name in DIALECTS for places in dialect_of(name).resources.values() for path in places.paths}
    for name in DIALECTS:
        dialect = dialect_of(name)
        own = {path for places in dialect.resources.values() for path in places.paths}
        served = {word for word in words if f"{dialect.mount}{word}" in routes}
        assert served <= own, (name, served - own)


# -- in detail --------------------------------------------------------------------------------------------------------

TUTOR = {"agent_id": "tutor", "name": "Tutor", "prompt": "You teach.", "enabled_capabilities": {"clock": False}}


async def test_an_agent_of_zenflux_is_an_agent_of_cas(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await caller.call("POST", f"{ZENFLUX}/agents", TUTOR)
        shown = await caller.call("GET", f"{CAS}/agents/tutor")
        assert (shown["name"], shown["system"], shown["version"]) == ("Tutor", "You teach.", 1)
        [toolset] = shown["tools"]
        assert "clock" not in toolset["enabled_tools"]
        assert "calc" in toolset["enabled_tools"]
        assert "tutor" in [one["id"] for one in (await caller.call("GET", f"{CAS}/agents"))["data"]]
        changed = await caller.call("POST", f"{CAS}/agents/tutor", {"version": 1, "system": "You ask."})
        assert changed["version"] == 2
        assert (await caller.call("GET", f"{ZENFLUX}/agents/tutor/prompt"))["prompt"] == "You ask."
        assert (await caller.call("GET", f"{ZENFLUX}/agents/tutor"))["enabled_capabilities"]["clock"] is False
        await caller.call("DELETE", f"{CAS}/agents/tutor")
        await caller.call("GET", f"{ZENFLUX}/agents/tutor", status=404)


async def test_an_agent_of_cas_is_an_agent_of_zenflux(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        tools = [{"type": "agent_toolset_20260401", "enabled_tools": ["clock"]}]
        made = await caller.call("POST", f"{CAS}/agents", {
            "name": "Tutor", "model": "demo-1", "system": "You teach.", "tools": tools}, status=201)
        agent_id = made["id"]
        shown = await caller.call("GET", f"{ZENFLUX}/agents/{agent_id}")
        assert shown["name"] == "Tutor"
        assert shown["enabled_capabilities"].items() >= {"clock": True, "calc": False}.items()
        switches = {"calc": True, "clock": False}
        await caller.call("PUT", f"{ZENFLUX}/agents/{agent_id}", {"enabled_capabilities": switches})
        [toolset] = (await caller.call("GET", f"{CAS}/agents/{agent_id}"))["tools"]
        assert "calc" in toolset["enabled_tools"]
        assert "clock" not in toolset["enabled_tools"]
        await caller.call("DELETE", f"{ZENFLUX}/agents/{agent_id}")
        await caller.call("GET", f"{CAS}/agents/{agent_id}", status=404)


async def test_a_conversation_of_zenflux_shows_its_agent_in_cas(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await caller.call("POST", f"{ZENFLUX}/agents", TUTOR)
        talk = await caller.call("POST", f"{ZENFLUX}/conversations?agent_id=tutor")
        session = await caller.call("GET", f"{CAS}/sessions/{talk['data']['id']}")
        assert (session["agent"]["id"], session["agent"]["system"]) == ("tutor", "You teach.")


async def test_an_agent_that_was_made_elsewhere_is_an_agent_of_aap(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await caller.call("POST", f"{ZENFLUX}/agents", TUTOR)
        [demo, tutor] = (await caller.call("GET", f"{AAP}/meta"))["agents"]
        assert (demo["name"], tutor["name"], tutor["title"]) == ("demo", "tutor", "Tutor")
        assert "clock" not in [tool["name"] for tool in tutor["tools"]]
        wrong = {"agent": {"name": "tutor", "tools": [{"name": "clock"}]}}
        assert "has no tool 'clock'" in str(await caller.call("POST", f"{AAP}/sessions", wrong, status=400))
        asked = {"agent": {"name": "tutor", "tools": [{"name": "calc", "trust": True}]}}
        session = (await caller.call("POST", f"{AAP}/sessions", asked, status=201))["sessionId"]
        shown = await caller.call("GET", f"{AAP}/sessions/{session}")
        assert shown["agent"]["name"] == "tutor"
        assert (await caller.call("GET", f"{ZENFLUX}/conversations/{session}"))["agent_id"] == "tutor"
        view = caller.served.gateway.table.get(session).view
        assert (view.agent, view.settings.system, view.settings.tools) == ("demo", "You teach.", {"calc": "allow"})
        await caller.call("PUT", f"{ZENFLUX}/agents/tutor", {"is_active": False})
        assert len((await caller.call("GET", f"{AAP}/meta"))["agents"]) == 1


async def test_memories_of_zenflux_and_blade_are_the_same(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        said = await caller.call("POST", f"{ZENFLUX}/mem0/add", {
            "user_id": "local", "messages": [{"role": "user", "content": "Likes green tea."}]})
        number = said["data"]["results"][0]["id"]
        await caller.call("POST", f"{ZENFLUX}/mem0/search", {"user_id": "local", "query": "tea"})
        shown = await caller.call("GET", f"{BLADE}/memories/{number}")
        assert (shown["content"], shown["hit_count"]) == ("Likes green tea.", 1)
        await caller.call("PUT", f"{BLADE}/memories/{number}", {"content": "Likes coffee."})
        [now] = (await caller.call("GET", f"{ZENFLUX}/mem0/user/local"))["data"]
        assert now["memory"] == "Likes coffee."
        await caller.call("DELETE", f"{BLADE}/memories/{number}")
        assert (await caller.call("GET", f"{ZENFLUX}/mem0/user/local"))["data"] == []


async def test_the_mcp_servers_of_an_agent_are_the_same_in_zenflux_and_cas(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await caller.call("POST", f"{ZENFLUX}/agents", TUTOR)
        url = "https://mcp.example.com/mcp"
        await caller.call("POST", f"{ZENFLUX}/tools/mcp/register", {"server_name": "notion", "server_url": url})
        await caller.call("POST", f"{ZENFLUX}/agents/tutor/mcp/notion")
        shown = await caller.call("GET", f"{CAS}/agents/tutor")
        assert shown["mcp_servers"] == [{"type": "url", "name": "notion", "url": url}]
        other = {"type": "url", "name": "other", "url": "https://other.example.com/mcp"}
        await caller.call("POST", f"{CAS}/agents/tutor", {
            "version": shown["version"], "mcp_servers": [*shown["mcp_servers"], other]})
        listed = await caller.call("GET", f"{ZENFLUX}/agents/tutor/mcp")
        assert [one["server_name"] for one in listed["mcps"]] == ["notion", "other"]
        await caller.call("DELETE", f"{ZENFLUX}/agents/tutor/mcp/other")
        shown = await caller.call("GET", f"{CAS}/agents/tutor")
        assert [one["name"] for one in shown["mcp_servers"]] == ["notion"]
        await caller.call("POST", f"{CAS}/agents/tutor", {"version": shown["version"], "mcp_servers": []})
        assert (await caller.call("GET", f"{ZENFLUX}/agents/tutor/mcp"))["total"] == 0


# -- skills -----------------------------------------------------------------------------------------------------------

async def upload_skill(caller: Caller, name: str) -> None:
    form = aiohttp.FormData()
    form.add_field("file", BytesIO(zipped()), filename="skill.zip")
    url = caller.served.url(f"{ZENFLUX}/skills/upload?skill_name={name}")
    async with caller.served.http.post(url, data=form) as answer:
        assert answer.status == 200, await answer.text()


async def test_a_skill_that_zenflux_installs_is_a_skill_of_the_agent_in_cas(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await upload_skill(caller, "tidy")
        await caller.call("POST", f"{ZENFLUX}/agents", TUTOR)
        named = {"skill_name": "tidy", "agent_id": "tutor"}
        await caller.call("POST", f"{ZENFLUX}/skills/install", named)
        shown = await caller.call("GET", f"{CAS}/agents/tutor")
        assert shown["skills"] == [{"type": "custom", "skill_id": "tidy", "version": "1"}]
        await caller.call("POST", f"{ZENFLUX}/skills/toggle", {**named, "enabled": False})
        assert (await caller.call("GET", f"{CAS}/agents/tutor"))["skills"] == []


async def test_the_skills_of_an_agent_of_cas_are_installed(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await upload_skill(caller, "tidy")
        await upload_skill(caller, "draw")
        named = [{"type": "custom", "skill_id": "tidy"}, {"type": "anthropic", "skill_id": "xlsx", "version": "latest"}]
        made = await caller.call("POST", f"{CAS}/agents", {
            "name": "Tutor", "model": "demo-1", "skills": named}, status=201)
        agent_id = made["id"]
        assert [one["skill_id"] for one in made["skills"]] == ["tidy", "xlsx"], "a name that nobody knows is kept"
        installed = f"{ZENFLUX}/skills/instance/{agent_id}"
        assert [one["name"] for one in (await caller.call("GET", installed))["skills"]] == ["tidy"]
        assert (await caller.call("GET", f"{ZENFLUX}/agents/{agent_id}"))["skills"] == ["tidy"]
        changed = await caller.call("POST", f"{CAS}/agents/{agent_id}", {
            "version": 1, "skills": [{"type": "custom", "skill_id": "draw"}]})
        assert [one["skill_id"] for one in changed["skills"]] == ["draw"]
        assert [one["name"] for one in (await caller.call("GET", installed))["skills"]] == ["draw"]
        await caller.call("POST", f"{CAS}/agents/{agent_id}", {"version": 2, "name": "Coach"})
        assert [one["name"] for one in (await caller.call("GET", installed))["skills"]] == ["draw"]
        session = await caller.call("POST", f"{CAS}/sessions", {
            "agent": agent_id, "environment": {"config": {"type": "cloud"}}}, status=201)
        assert [one["skill_id"] for one in session["agent"]["skills"]] == ["draw"]
        [ref] = caller.served.gateway.table.get(session["id"]).view.settings.skills
        assert ref.name == "draw"
        await caller.call("POST", f"{ZENFLUX}/skills/uninstall", {"skill_name": "draw", "agent_id": agent_id})
        assert (await caller.call("GET", f"{CAS}/agents/{agent_id}"))["skills"] == []
        await caller.call("DELETE", f"{CAS}/agents/{agent_id}")
        await caller.call("GET", installed, status=404)
