"""MCP servers are addresses that their user has registered; agents have them, and their tokens stay sealed."""

import itertools
import os
from typing import Any

import pytest

import gateway.model as m
from gateway.client import AddressPolicy
from gateway.errors import Forbidden, Invalid, NotFound
from gateway.ports import AgentDefinition
from gateway.resources.agents import AgentService
from gateway.resources.mcp_server_records import McpServerChoice, McpServerDefinition, check_server_url
from gateway.resources.mcp_servers import CHOICE_KIND, KIND, McpServerEnabled, McpServerNotFound, McpServerService
from gateway.resources.named_resources import AlreadyExists
from gateway.resources.user_settings import UserSettings
from gateway.storage.resources.memory import MemoryResources

CARDS = {
    "demo": m.AgentCard(name="demo", model="demo-1", options=(
        m.AgentOption(name="NOTION_TOKEN", kind=m.OptionKind.SECRET),)),
    "fixed": m.AgentCard(name="fixed", mcp_servers=("house",)),
}
NOTION = McpServerDefinition(url="https://mcp.example.com/mcp")
TUTOR = AgentDefinition(name="Tutor", system="You teach.", model="demo-1")
ENTRY = {"type": "url", "name": "notion", "url": NOTION.url}


class Servers(McpServerService):
    """The service, with the store and the agents beside it."""

    def __init__(self) -> None:
        self.store = MemoryResources(clock=itertools.count(1.0).__next__)
        self.agents = AgentService(self.store, lambda: CARDS, started_at=0.5)
        self.settings = UserSettings(self.store, lambda: CARDS)
        super().__init__(self.store, self.agents, self.settings, AddressPolicy)


@pytest.fixture
def servers() -> Servers:
    return Servers()


async def names(servers: Servers, agent_id: str, owner: str = "ann") -> list[str]:
    return [one.name for one in await servers.of_agent(owner, agent_id)]


# -- the register -----------------------------------------------------------------------------------------------------

async def test_a_server_is_registered_changed_and_deleted(servers: Servers) -> None:
    made = await servers.register("ann", "notion", NOTION)
    assert (made.name, made.definition, made.has_token, made.is_active) == ("notion", NOTION, False, True)
    assert [one.name for one in await servers.all("ann")] == ["house", "notion"]
    assert [one.name for one in await servers.all("bob")] == ["house"]
    changed = await servers.change("ann", "notion", description="Notes", is_active=False)
    assert changed.definition is not None
    assert (changed.definition.url, changed.definition.description, changed.is_active) == (NOTION.url, "Notes", False)
    with pytest.raises(AlreadyExists):
        await servers.register("ann", "notion", NOTION)
    for call in (servers.get("bob", "notion"), servers.change("bob", "notion"), servers.delete("bob", "notion")):
        with pytest.raises(McpServerNotFound):
            await call
    await servers.delete("ann", "notion")
    with pytest.raises(McpServerNotFound):
        await servers.get("ann", "notion")


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 33, "ä", "a/b"])
async def test_a_name_is_a_name(servers: Servers, name: str) -> None:
    with pytest.raises(Invalid):
        await servers.register("ann", name, NOTION)
    with pytest.raises(McpServerNotFound):
        await servers.get("ann", name)


@pytest.mark.parametrize("url", [
    "", "mcp.example.com", "ftp://mcp.example.com", "file:///etc/passwd", "https://", "https://a b.example.com/",
    "https://user:key@mcp.example.com/mcp", "https://key@mcp.example.com/", "https://mcp.example.com:0/",
    "https://mcp.example.com:x/", "https://mcp.example.com/" + "x" * 2048,
])
def test_only_addresses_over_http_without_keys(url: str) -> None:
    with pytest.raises(Invalid):
        check_server_url(url)


@pytest.mark.parametrize("url", [
    "http://127.0.0.1:8000/mcp", "http://localhost/mcp", "http://169.254.169.254/latest", "http://10.0.0.7/",
    "http://[::1]/", "http://0x7f000001/", "http://metadata.google.internal/",
])
async def test_inner_addresses_are_refused(servers: Servers, url: str) -> None:
    with pytest.raises(Forbidden):
        await servers.register("ann", "inner", McpServerDefinition(url=url))
    await servers.register("ann", "notion", NOTION)
    with pytest.raises(Forbidden):
        await servers.change("ann", "notion", url=url)
    assert (await servers.get("ann", "notion")).definition == NOTION


async def test_a_server_of_the_settings_is_fixed(servers: Servers) -> None:
    assert (await servers.get("ann", "house")).definition is None
    for call in (servers.register("ann", "house", NOTION), servers.change("ann", "house"),
                 servers.delete("ann", "house"), servers.disable("ann", "fixed", "house"),
                 servers.change_choice("ann", "fixed", "house", is_active=False)):
        with pytest.raises(Forbidden):
            await call
    with pytest.raises(McpServerEnabled):
        await servers.enable("ann", "fixed", "house", McpServerChoice())


# -- tokens -----------------------------------------------------------------------------------------------------------

async def headers(servers: Servers, auth_type: Any = "bearer", token: str | None = None, **fields: Any) -> Any:
    """The headers of a session with this server."""
    await servers.register("ann", "notion", McpServerDefinition(url=NOTION.url, auth_type=auth_type, **fields), token)
    await servers.enable("ann", "demo", "notion", McpServerChoice())
    return (await servers.filled("ann", "demo", m.Settings())).mcp_headers


async def test_a_token_is_sealed_and_sent_to_its_server_alone(servers: Servers) -> None:
    assert await headers(servers, token="top-secret") == {NOTION.url: "Authorization: Bearer top-secret"}
    [kept] = await servers.store.list(KIND, "ann")
    assert "top-secret" not in repr(kept.body)
    assert "top-secret" not in repr(await servers.all("ann"))
    settings = await servers.filled("ann", "demo", m.Settings())
    assert settings.mcp_headers_of(NOTION.url) == {"Authorization": "Bearer top-secret"}
    assert settings.mcp_headers_of("https://other.example.com/mcp") == {}


async def test_kinds_of_tokens(servers: Servers) -> None:
    assert await headers(servers, "api_key", "k3y") == {NOTION.url: "X-API-Key: k3y"}


async def test_a_server_without_authentication_gets_no_token(servers: Servers) -> None:
    assert await headers(servers, "none", "k3y") == {}


@pytest.mark.parametrize("token", ["a\r\nX-Admin: yes", "ä", " a", "x" * 8193])
async def test_a_token_is_one_header(servers: Servers, token: str) -> None:
    with pytest.raises(Invalid):
        await servers.register("ann", "notion", NOTION, token)


async def test_the_name_of_a_secret_is_one_of_the_users_own(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTION_TOKEN", "of the server")
    monkeypatch.setenv("HOME_TOKEN", "of the server")
    named = McpServerDefinition(url=NOTION.url, auth_type="bearer", auth_env="NOTION_TOKEN")
    for env in ("NOTION_TOKEN", "HOME_TOKEN", "PATH", next(iter(os.environ))):
        with pytest.raises(Invalid):
            await servers.register("ann", "notion", McpServerDefinition(url=NOTION.url, auth_env=env))
    await servers.settings.change("ann", options={"demo": {"NOTION_TOKEN": "of ann"}})
    with pytest.raises(Invalid):
        await servers.register("bob", "notion", named)
    assert await headers(servers, auth_env="NOTION_TOKEN") == {NOTION.url: "Authorization: Bearer of ann"}
    with pytest.raises(Invalid):
        await servers.change("ann", "notion", auth_env="HOME_TOKEN")
    with pytest.raises(Invalid):
        await servers.change_choice("ann", "demo", "notion", auth_env="HOME_TOKEN")


async def test_a_secret_may_be_a_variable_of_a_vault(servers: Servers) -> None:
    auth = {"type": "environment_variable", "secret_name": "VAULT_TOKEN"}
    await servers.store.create("credential", "ann", {"auth": auth}, secrets={"secret_value": "of the vault"})
    assert await headers(servers, auth_env="VAULT_TOKEN") == {NOTION.url: "Authorization: Bearer of the vault"}


# -- of an agent ------------------------------------------------------------------------------------------------------

async def test_a_configured_agent_gets_the_users_own_additions(servers: Servers) -> None:
    await servers.register("ann", "notion", NOTION)
    await servers.enable("ann", "fixed", "notion", McpServerChoice(metadata={"a": 1}))
    assert await names(servers, "fixed") == ["house", "notion"]
    assert await names(servers, "fixed", "bob") == ["house"]
    assert (await servers.filled("ann", "fixed", m.Settings())).mcp_servers == (ENTRY,)
    assert await servers.filled("bob", "fixed", m.Settings()) == m.Settings()
    assert await servers.filled("ann", "demo", m.Settings()) == m.Settings()
    assert await servers.filled("ann", "nobody", m.Settings()) == m.Settings()
    with pytest.raises(McpServerEnabled):
        await servers.enable("ann", "fixed", "notion", McpServerChoice())
    changed = await servers.change_choice("ann", "fixed", "notion", is_active=False)
    assert (changed.is_active, changed.choice) == (False, McpServerChoice(metadata={"a": 1}, is_active=False))
    assert (await servers.filled("ann", "fixed", m.Settings())).mcp_servers == ()
    await servers.disable("ann", "fixed", "notion")
    assert await names(servers, "fixed") == ["house"]
    assert (await servers.get("ann", "notion")).definition == NOTION


async def test_the_servers_of_a_made_agent_are_part_of_it(servers: Servers) -> None:
    await servers.agents.create("ann", TUTOR, "tutor")
    await servers.register("ann", "notion", NOTION, None)
    await servers.enable("ann", "tutor", "notion", McpServerChoice())
    agent = await servers.agents.get("ann", "tutor")
    assert (agent.version, agent.definition.mcp_servers) == (2, (ENTRY,))
    await servers.change("ann", "notion", url="https://new.example.com/mcp", tools=("add",))
    chosen = await servers.agents.choose("ann", "tutor")
    settings = await servers.filled("ann", "demo", chosen.settings)
    assert settings.mcp_servers == ({**ENTRY, "url": "https://new.example.com/mcp", "tools": ["add"]},)
    await servers.change_choice("ann", "tutor", "notion", is_active=False)
    assert (await servers.agents.get("ann", "tutor")).definition.mcp_servers == ()
    assert await names(servers, "tutor") == ["notion"]
    await servers.change_choice("ann", "tutor", "notion", is_active=True)
    assert len((await servers.agents.get("ann", "tutor")).definition.mcp_servers) == 1
    await servers.disable("ann", "tutor", "notion")
    assert (await servers.agents.get("ann", "tutor")).definition.mcp_servers == ()
    with pytest.raises(McpServerNotFound):
        await servers.disable("ann", "tutor", "notion")


async def test_servers_that_another_dialect_gave_are_listed_and_can_be_taken(servers: Servers) -> None:
    other = {"type": "url", "name": "other", "url": "https://other.example.com/mcp"}
    await servers.agents.create("ann", TUTOR.changed("", mcp_servers=(other,)), "tutor")
    assert await names(servers, "tutor") == ["other"]
    chosen = await servers.agents.choose("ann", "tutor")
    assert await servers.filled("ann", "demo", chosen.settings) == chosen.settings
    await servers.disable("ann", "tutor", "other")
    assert await names(servers, "tutor") == []


async def test_deleting_a_registration_takes_it_from_all_agents(servers: Servers) -> None:
    await servers.agents.create("ann", TUTOR, "tutor")
    await servers.register("ann", "notion", NOTION)
    for agent in ("demo", "tutor"):
        await servers.enable("ann", agent, "notion", McpServerChoice())
    await servers.delete("ann", "notion")
    assert await names(servers, "demo") == await names(servers, "tutor") == []
    assert (await servers.agents.get("ann", "tutor")).definition.mcp_servers == ()
    assert not await servers.store.list(CHOICE_KIND, "ann")


async def test_deleting_an_agent_takes_its_choices(servers: Servers) -> None:
    await servers.agents.create("ann", TUTOR, "tutor")
    await servers.register("ann", "notion", NOTION)
    await servers.enable("ann", "tutor", "notion", McpServerChoice())
    await servers.agents.delete("ann", "tutor")
    assert not await servers.store.list(CHOICE_KIND, "ann")
    with pytest.raises(NotFound):
        await servers.of_agent("ann", "tutor")


async def test_a_server_that_is_switched_off_is_in_no_new_session(servers: Servers) -> None:
    await servers.agents.create("ann", TUTOR, "tutor")
    await servers.register("ann", "notion", NOTION)
    await servers.enable("ann", "tutor", "notion", McpServerChoice())
    await servers.change("ann", "notion", is_active=False)
    chosen = await servers.agents.choose("ann", "tutor")
    assert (await servers.filled("ann", "demo", chosen.settings)).mcp_servers == ()


async def test_what_a_session_names_itself_stays(servers: Servers) -> None:
    await servers.register("ann", "notion", McpServerDefinition(url=NOTION.url, auth_type="bearer"), "top-secret")
    await servers.enable("ann", "demo", "notion", McpServerChoice())
    own = {"type": "url", "name": "notion", "url": "https://other.example.com/mcp"}
    settings = await servers.filled("ann", "demo", m.Settings(mcp_servers=(own,)))
    assert settings.mcp_servers == (own,)
    assert settings.mcp_headers == {}
