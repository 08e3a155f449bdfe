"""Models of what ZenFlux clients send about MCP servers."""

from typing import Any, Literal

from pydantic import Field

from gateway.http import WireModel

AuthType = Literal["none", "api_key", "bearer", "oauth2"]


class McpAuth(WireModel):
    """A token, or the name of a secret that the user has."""

    token_env: str | None = None
    api_key_env: str | None = None
    token: str | None = None
    api_key: str | None = None


class CommandFields(WireModel):
    """Fields of a server that is a command; they are known in order to refuse them."""

    command: Any = None
    args: Any = None


class NewMcpServer(CommandFields):
    server_name: str
    server_url: str = ""
    auth_type: AuthType = "none"
    auth_config: McpAuth | None = None
    auth_env: str | None = None
    tool_filter: list[str] | None = Field(None, max_length=1000)
    tool_prefix: str | None = Field(None, max_length=64)
    auto_reconnect: bool = True
    health_check_interval: int = Field(60, ge=1)
    description: str | None = Field(None, max_length=10_000)
    capability: str | None = Field(None, max_length=200)


class McpServerChange(CommandFields):
    """What is not named stays."""

    server_url: str | None = None
    auth_type: AuthType | None = None
    auth_env: str | None = None
    description: str | None = Field(None, max_length=10_000)
    is_active: bool | None = None
    capability: str | None = Field(None, max_length=200)


class AgentMcpServer(WireModel):
    """What an agent has of a registered server; what is not named stays."""

    auth_env: str | None = None
    is_active: bool | None = None
    metadata: dict[str, Any] | None = None
