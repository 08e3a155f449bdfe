"""MCP servers: those that a user has registered by name, and which of them the sessions of an agent have."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Addresses, Agents, Resource, Resources, StoredAgent

from .agents import UnknownModel
from .mcp_server_records import (
    SEALED_FIELD,
    McpServerChoice,
    McpServerDefinition,
    StoredMcpServer,
    check_server_url,
    configured_names,
    read_definition,
    read_server,
    server_body,
    server_url,
    servers_without,
    session_entry,
    with_choice,
)
from .named_resources import NamedResources
from .user_settings import UserSettings

KIND, CHOICE_KIND = "mcp_server", "agent_mcp_server"
SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
MAX_SERVERS = 100
"""How many MCP servers a user may register."""
MAX_CHOICES = 1000
MAX_TOKEN_LENGTH = 8 * 1024
HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")

class McpServerNotFound(NotFound):
    """There is no MCP server of this name."""

    usual_reason = m.FaultReason.MCP_SERVER_NOT_FOUND


class McpServerEnabled(Conflict):
    """The agent has this server already."""

    usual_reason = m.FaultReason.MCP_SERVER_ENABLED


class McpServerService:
    """The MCP servers of all users; those of other users are not found. Nothing is connected to here.

    Servers are addresses and never commands. Addresses are checked as text here, and as IP addresses by whoever
    connects to them.
    """

    kinds: tuple[str, ...] = (CHOICE_KIND,)

    def __init__(
        self, resources: Resources, agents: Agents, settings: UserSettings, addresses: Callable[[], Addresses],
    ) -> None:
        self._resources = resources
        self._agents = agents
        self._settings = settings
        self._addresses = addresses
        self._servers = NamedResources(resources, KIND, "MCP server", SERVER_NAME, MAX_SERVERS)
        self._choices = NamedResources(resources, CHOICE_KIND, "MCP server of an agent", SERVER_NAME, MAX_CHOICES)

    # -- the register ---------------------------------------------------------------------------------------------

    async def all(self, owner: str) -> Sequence[StoredMcpServer]:
        """The servers of the settings, then those of the user, oldest first."""
        own = [read_server(one) for one in await self._servers.all(owner)]
        agents = self._agents.configured().values()
        fixed = self._configured(name for agent in agents for name in configured_names(agent))
        return [*fixed, *(one for one in own if one.name not in {other.name for other in fixed})]

    async def get(self, owner: str, name: str) -> StoredMcpServer:
        found = next((one for one in await self.all(owner) if one.name == name), None)
        if found is None:
            raise McpServerNotFound(f"there is no MCP server '{name[:128]}'")
        return found

    async def register(
        self, owner: str, name: str, definition: McpServerDefinition, token: str | None = None,
    ) -> StoredMcpServer:
        """Store a server under a name; its token is sealed, and never shown again."""
        self._servers.check_name(name, "server_name")
        await self._check(owner, definition, token)
        self._check_own(name)
        secrets = {SEALED_FIELD: token} if token else {}
        return read_server(await self._servers.create(owner, name, server_body(definition), secrets=secrets))

    async def change(self, owner: str, name: str, **fields: object) -> StoredMcpServer:
        """Change the fields that are named; new sessions get the changed server."""
        found = await self._own(owner, name)
        old = read_definition(found)
        new = msgspec.structs.replace(old, **fields)
        await self._check(owner, new, None)
        if new == old:
            return read_server(found)
        changed = read_server(await self._servers.update(found, server_body(new)))
        if new.url != old.url:
            for agent in await self._made_agents_with(owner, name, old.url):
                await self._set_servers(owner, agent, [
                    {**one, "url": new.url} if one.get("name") == name else one
                    for one in agent.definition.mcp_servers
                ])
        return changed

    async def delete(self, owner: str, name: str) -> None:
        """Delete a registration, and take the server from the user's agents."""
        found = await self._own(owner, name)
        for agent in await self._made_agents_with(owner, name, read_definition(found).url):
            await self._set_servers(owner, agent, servers_without(agent, name))
        for choice in await self._choices.all(owner):
            if choice.body["name"] == name:
                await self._resources.delete(CHOICE_KIND, owner, choice.resource_id)
        await self._resources.delete(KIND, owner, found.resource_id)

    # -- of an agent ----------------------------------------------------------------------------------------------

    async def of_agent(self, owner: str, agent_id: str) -> Sequence[StoredMcpServer]:
        """The servers of an agent: those of the settings, then those that were enabled, switched off ones too."""
        agent = await self._agents.get(owner, agent_id)
        return [*self._configured(configured_names(agent), agent_id), *await self._enabled(owner, agent)]

    async def enable(self, owner: str, agent_id: str, name: str, choice: McpServerChoice) -> StoredMcpServer:
        """Give an agent a registered server."""
        agent = await self._agents.get(owner, agent_id)
        if name in configured_names(agent):
            raise McpServerEnabled(f"agent '{agent_id}' has the MCP server '{name}' already; it is set in the server's "
                                   "config.yaml")
        if any(one.name == name for one in await self._enabled(owner, agent)):
            raise McpServerEnabled(f"agent '{agent_id}' has the MCP server '{name}' already", param="server_name")
        server = await self._own(owner, name)
        await self._check_secret(owner, choice.auth_env)
        if (left := await self._choices.find(owner, name, agent.resource_id)) is not None:
            await self._resources.delete(CHOICE_KIND, owner, left.resource_id)  # another dialect took the server away
        made = await self._choices.create(owner, name, msgspec.to_builtins(choice), parent=agent.resource_id)
        if agent.configured is None:
            entry = session_entry(name, read_definition(server))
            await self._set_servers(owner, agent, [*servers_without(agent, name), entry])
        return with_choice(read_server(server), agent_id, made)

    async def change_choice(self, owner: str, agent_id: str, name: str, **fields: object) -> StoredMcpServer:
        """Change what an agent has chosen of a server."""
        agent = await self._agents.get(owner, agent_id)
        found = await self._enabled_one(owner, agent, name)
        new = replace(found.choice or McpServerChoice(), **fields)
        await self._check_secret(owner, new.auth_env)
        kept = await self._choices.find(owner, name, agent.resource_id)
        if kept is None:
            made = await self._choices.create(owner, name, msgspec.to_builtins(new), parent=agent.resource_id)
        else:
            made = await self._choices.update(kept, msgspec.to_builtins(new))
        if agent.configured is None and found.definition is not None:
            entry = [session_entry(name, found.definition)] if new.is_active else []
            await self._set_servers(owner, agent, [*servers_without(agent, name), *entry])
        return with_choice(found, agent_id, made)

    async def disable(self, owner: str, agent_id: str, name: str) -> None:
        """Take a server from an agent; its registration stays."""
        agent = await self._agents.get(owner, agent_id)
        await self._enabled_one(owner, agent, name)
        if agent.configured is None:
            await self._set_servers(owner, agent, servers_without(agent, name))
        if (choice := await self._choices.find(owner, name, agent.resource_id)) is not None:
            await self._resources.delete(CHOICE_KIND, owner, choice.resource_id)

    # -- use ------------------------------------------------------------------------------------------------------

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        """The settings of a new session with the servers of its agent, and with the headers that they get.

        `agent` is the agent of the settings that runs the session; the servers of an agent that a user made stand in
        the settings already.
        """
        agent_id = settings.agent_id or agent
        try:
            found = await self._agents.get(owner, agent_id)
        except NotFound:
            return settings
        enabled = {one.name: one for one in await self._enabled(owner, found) if one.choice is not None}
        if not enabled:
            return settings
        servers: list[JsonObject] = []
        for given in settings.mcp_servers:
            own = enabled.pop(str(given.get("name")), None)
            if own is None or own.definition is None or own.definition.url != given.get("url"):
                servers.append(given)
            elif own.is_active:
                servers.append({**given, **session_entry(own.name, own.definition, with_tools=True)})
                enabled[own.name] = own
        if found.configured is not None:
            taken = {one.get("name") for one in servers}
            servers += [session_entry(name, one.definition, with_tools=True) for name, one in enabled.items()
                        if one.definition is not None and one.is_active and name not in taken]
        headers = await self._headers(owner, [
            one for name, one in enabled.items() if any(name == other.get("name") for other in servers)])
        return replace(settings, mcp_servers=tuple(servers), mcp_headers={**settings.mcp_headers, **headers})

    async def session_server(self, owner: str, name: str) -> m.Settings:
        """The settings of a session that has this registered server alone."""
        found = await self._own(owner, name)
        stored = read_server(found)
        assert stored.definition is not None, "it is registered"
        return m.Settings(
            mcp_servers=(session_entry(name, stored.definition, with_tools=True),),
            mcp_headers=await self._headers(owner, [stored]),
        )

    async def with_tools(
        self, owner: str, settings: m.Settings, wanted: Mapping[str, Sequence[str]],
    ) -> m.Settings:
        """The settings with registered servers that the session has not, each with the tools that are wanted of it."""
        taken = {str(one.get("name")) for one in settings.mcp_servers}
        added, chosen = list[JsonObject](), list[StoredMcpServer]()
        for one in await self.all(owner) if wanted else ():
            definition, tools = one.definition, wanted.get(one.name, ())
            if definition is None or not one.is_active or one.name in taken:
                continue
            named: list[JsonValue] = [tool for tool in tools if definition.tools is None or tool in definition.tools]
            if named:
                added.append({**session_entry(one.name, definition), "tools": named})
                chosen.append(one)
        if not added:
            return settings
        headers = {**settings.mcp_headers, **await self._headers(owner, chosen)}
        return replace(settings, mcp_servers=(*settings.mcp_servers, *added), mcp_headers=headers)

    async def _headers(self, owner: str, servers: Iterable[StoredMcpServer]) -> dict[str, str]:
        """The header of each server that has a token, by the server's URL."""
        headers: dict[str, str] = {}
        for one in servers:
            definition = one.definition
            if definition is None or definition.auth_type == "none":
                continue
            name = (one.choice.auth_env if one.choice else None) or definition.auth_env
            if name:
                token = await self._secret(owner, name)
            else:
                token = (await self._own(owner, one.name)).secrets.get(SEALED_FIELD)
            if token and HEADER_VALUE.fullmatch(token):
                is_key = definition.auth_type == "api_key"
                headers[definition.url] = f"X-API-Key: {token}" if is_key else f"Authorization: Bearer {token}"
        return headers

    async def _secret(self, owner: str, name: str) -> str | None:
        """A secret of the user by its name; the server's environment is never looked at."""
        for secrets in (await self._settings.get(owner)).secrets.values():
            if name in secrets:
                return secrets[name]
        for credential in await self._resources.list("credential", owner, limit=1000):
            if credential.body.get("auth", {}).get("secret_name") == name:
                return credential.secrets.get("secret_value")
        return None

    # -- rules ----------------------------------------------------------------------------------------------------

    async def _check(self, owner: str, definition: McpServerDefinition, token: str | None) -> None:
        check_server_url(definition.url)
        if (problem := self._addresses().problem(definition.url)) is not None:
            raise Forbidden(f"server_url: {problem}", param="server_url")
        if token and (len(token) > MAX_TOKEN_LENGTH or not HEADER_VALUE.fullmatch(token)):
            raise Invalid(f"auth_config: a token has at most {MAX_TOKEN_LENGTH} characters, all of them printable "
                          "ASCII", param="auth_config")
        if token and definition.auth_env:
            raise Invalid("auth_config: give a token or the name of one, not both", param="auth_config")
        await self._check_secret(owner, definition.auth_env)

    async def _check_secret(self, owner: str, name: str | None) -> None:
        if name is not None and await self._secret(owner, name) is None:
            raise Invalid(f"auth_env: you have no secret '{name[:128]}'; it must be a secret of your own settings or "
                          "of a vault", param="auth_env")

    def _check_own(self, name: str) -> None:
        if any(name in configured_names(agent) for agent in self._agents.configured().values()):
            raise Forbidden(f"the MCP server '{name}' is set in the server's config.yaml and cannot be changed here")

    async def _own(self, owner: str, name: str) -> Resource:
        """The registration of the user, unless the name is one of the settings."""
        self._check_own(name)
        found = await self._servers.find(owner, name)
        if found is None:
            raise McpServerNotFound(f"there is no MCP server '{name[:128]}'")
        return found

    async def _enabled(self, owner: str, agent: StoredAgent) -> Sequence[StoredMcpServer]:
        """The servers of an agent that are not of the settings.

        An agent that a user made has the servers that its definition names, and those that are switched off. If the
        definition has another address under the name of a registered server, that server is the agent's own.
        """
        choices = {str(one.body["name"]): one for one in await self._choices.all(owner, agent.resource_id)}
        named = {str(one.get("name")): one for one in agent.definition.mcp_servers}
        if not choices and not named:
            return []
        registered = {one.name: one for one in map(read_server, await self._servers.all(owner))}
        found = []
        for name, choice in choices.items():
            chosen = msgspec.convert(choice.body, McpServerChoice)
            if name not in registered:
                continue
            own = named.get(name)
            if own is not None and own.get("url") != server_url(registered[name]):
                continue
            if agent.configured is not None or own is not None or not chosen.is_active:
                found.append(with_choice(registered[name], agent.agent_id, choice))
        linked = {one.name for one in found}
        return [*found, *(
            StoredMcpServer(
                name=name, definition=McpServerDefinition(url=str(one.get("url", ""))), agent_id=agent.agent_id,
                created_at=agent.created_at, updated_at=agent.updated_at,
            )
            for name, one in named.items() if name not in linked
        )]

    async def _enabled_one(self, owner: str, agent: StoredAgent, name: str) -> StoredMcpServer:
        if name in configured_names(agent):
            raise Forbidden(f"the MCP server '{name}' is set in the server's config.yaml and cannot be changed here")
        found = next((one for one in await self._enabled(owner, agent) if one.name == name), None)
        if found is None:
            raise McpServerNotFound(f"agent '{agent.agent_id}' has no MCP server '{name[:128]}'")
        return found

    async def _made_agents_with(self, owner: str, name: str, url: str) -> list[StoredAgent]:
        """The agents of the user whose definition has this registered server, at its address."""
        parents = {choice.parent for choice in await self._choices.all(owner) if choice.body["name"] == name}
        if not parents:
            return []
        return [agent for agent in await self._agents.page(owner)
                if agent.resource_id in parents and agent.configured is None
                and any((one.get("name"), one.get("url")) == (name, url) for one in agent.definition.mcp_servers)]

    async def _set_servers(self, owner: str, agent: StoredAgent, servers: Iterable[Mapping[str, object]]) -> None:
        changed = agent.definition.changed("", mcp_servers=tuple(dict(one) for one in servers))
        with suppress(UnknownModel):  # its model is not served any more: the agent has no new sessions
            await self._agents.change(owner, agent.agent_id, changed, expected=agent.version)

    def _configured(self, names: Iterable[str], agent_id: str | None = None) -> list[StoredMcpServer]:
        started = next((one.created_at for one in self._agents.configured().values()), 0.0)
        return [
            StoredMcpServer(name=name, definition=None, created_at=started, updated_at=started, agent_id=agent_id)
            for name in dict.fromkeys(names)
        ]
