"""An MCP server as the store has it, and as the services of the gateway know it."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from gateway.errors import Invalid
from gateway.json_values import JsonObject
from gateway.ports import Resource, StoredAgent

MAX_URL_LENGTH = 2048
SEALED_FIELD = "auth"
"""The name of a server's token among its sealed secrets."""

AuthType = Literal["none", "api_key", "bearer", "oauth2"]


class McpServerDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An MCP server as its user describes it.

    `auth_env` is the name of a secret of the user: a secret option of the user's settings, or a variable of a vault.
    `tools` are the only tools that sessions get, if there is a list. `extra` has, under the name of a dialect, what
    only that dialect knows and gives back.
    """

    url: str
    auth_type: AuthType = "none"
    auth_env: str | None = None
    description: str = ""
    capability: str | None = None
    tools: tuple[str, ...] | None = None
    is_active: bool = True
    extra: dict[str, JsonObject] = {}


class McpServerChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent has of a registered server beside the registration."""

    auth_env: str | None = None
    is_active: bool = True
    metadata: JsonObject = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMcpServer:
    """A registered server; for an agent, also what the agent has chosen.

    `definition` is None for a server of config.yaml, which cannot be changed and whose address is not shown.
    """

    name: str
    definition: McpServerDefinition | None
    created_at: float
    updated_at: float
    number: int = 0
    agent_id: str | None = None
    choice: McpServerChoice | None = None
    has_token: bool = False

    @property
    def is_active(self) -> bool:
        return (self.definition is None or self.definition.is_active) and (self.choice is None or self.choice.is_active)


def check_server_url(url: str) -> None:
    """Refuse a URL that is not an HTTP address, or that contains a key."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or len(url) > MAX_URL_LENGTH or re.search(r"[\s\x00-\x20\x7f\\]", url):
        raise Invalid("server_url: must be an address that begins with http:// or https://", param="server_url")
    if "@" in urlsplit(url).netloc:
        raise Invalid("server_url: must have no user and no password; give the token as auth_config",
                      param="server_url")


def configured_names(agent: StoredAgent) -> tuple[str, ...]:
    """The servers that config.yaml gives to an agent of the settings."""
    return agent.configured.mcp_servers if agent.configured is not None else ()


def session_entry(name: str, definition: McpServerDefinition, *, with_tools: bool = False) -> JsonObject:
    """A server as settings of sessions have it."""
    tools: JsonObject = {"tools": list(definition.tools)} if with_tools and definition.tools is not None else {}
    return {"type": "url", "name": name, "url": definition.url, **tools}


def server_url(server: StoredMcpServer) -> str | None:
    """The address of a server; None if the server is one of config.yaml."""
    return server.definition.url if server.definition is not None else None


def servers_without(agent: StoredAgent, name: str) -> list[JsonObject]:
    """The servers in the definition of an agent, without this one."""
    return [one for one in agent.definition.mcp_servers if one.get("name") != name]


def server_body(definition: McpServerDefinition) -> JsonObject:
    """The body of the resource that stores a definition."""
    return {"definition": msgspec.to_builtins(definition)}


def read_definition(found: Resource) -> McpServerDefinition:
    """The definition that a resource stores."""
    return msgspec.convert(found.body["definition"], McpServerDefinition)


def read_server(found: Resource) -> StoredMcpServer:
    """The registered server that a resource stores."""
    return StoredMcpServer(
        name=str(found.body["name"]), definition=read_definition(found), created_at=found.created_at,
        updated_at=found.updated_at, number=found.ordinal, has_token=SEALED_FIELD in found.secrets,
    )


def with_choice(server: StoredMcpServer, agent_id: str, choice: Resource) -> StoredMcpServer:
    """The server as an agent has it, by the choice that a resource stores."""
    return StoredMcpServer(
        name=server.name, definition=server.definition, created_at=choice.created_at, updated_at=choice.updated_at,
        number=choice.ordinal, agent_id=agent_id, choice=msgspec.convert(choice.body, McpServerChoice),
        has_token=server.has_token,
    )
