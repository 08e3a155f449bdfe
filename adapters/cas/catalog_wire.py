"""What CAS clients send about agents, environments and files, in CAS's own spelling."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from gateway.ids import repeated
from gateway.web import FailFast

MAX_KEYS, MAX_KEY, MAX_VALUE = 16, 64, 512
MAX_TOOLS, MAX_SYSTEM = 128, 100_000


class Wire(FailFast, BaseModel):
    """Types are taken literally; members nobody knows are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class Open(Wire):
    """As `Wire`, but members nobody knows are kept and given back."""

    model_config = ConfigDict(extra="allow")


def _within_limits(metadata: dict[str, Any]) -> dict[str, Any]:
    if len(metadata) > MAX_KEYS:
        raise ValueError(f"must have at most {MAX_KEYS} keys, not {len(metadata)}")
    for key, value in metadata.items():
        if len(key) > MAX_KEY:
            raise ValueError(f"the key '{key[:MAX_KEY]}…' must have at most {MAX_KEY} characters, not {len(key)}")
        if isinstance(value, str) and len(value) > MAX_VALUE:
            raise ValueError(f"the value of '{key}' must have at most {MAX_VALUE} characters, not {len(value)}")
    return metadata


Metadata = Annotated[dict[str, str], AfterValidator(_within_limits)]
MetadataChange = Annotated[dict[str, str | None], AfterValidator(_within_limits)]
"""A key that is null is taken away."""



class MetadataHeld(Wire):
    """Metadata after a change, for its limits."""

    metadata: Metadata


Name = Annotated[str, Field(min_length=1, max_length=256)]
Words = Annotated[str, Field(max_length=2048)]
Address = Annotated[str, Field(max_length=2048, pattern=r"^https?://")]


# -- agents -----------------------------------------------------------------------------------------------------------

class Policy(Wire):
    type: Literal["always_allow", "always_ask", "always_deny"]


class ToolDefaults(Open):
    enabled: bool | None = None
    permission_policy: Policy | None = None


class ToolConfig(ToolDefaults):
    name: Name | None = None
    type: str | None = None

    @property
    def tool(self) -> str | None:
        """Both spellings of a tool's name are in use."""
        return self.name or self.type


class Toolset(Open):
    """The tools of the server; those that our agents do not have are kept in words and have no effect."""

    type: Literal["agent_toolset_20260401"]
    enabled_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    default_config: ToolDefaults | None = None
    configs: list[ToolConfig] | None = None


class McpToolset(Open):
    type: Literal["mcp_toolset"]
    mcp_server_name: Name
    default_config: ToolDefaults | None = None
    configs: list[ToolConfig] | None = None


class CustomTool(Open):
    """A tool that the client carries out."""

    type: Literal["custom"]
    name: Name
    description: str = ""
    input_schema: dict[str, Any] = {"type": "object"}


Tool = Annotated[Toolset | McpToolset | CustomTool, Field(discriminator="type")]


class ModelChoice(Open):
    id: Name


class McpServer(Open):
    type: str = "url"
    name: Name
    url: Address


class Skill(Open):
    type: str
    skill_id: Name
    version: str | None = None


class AgentFields(Wire):
    """What a new agent and a change of one have in common."""

    description: Words | None = None
    system: str | None = Field(None, max_length=MAX_SYSTEM)
    tools: list[Tool] | None = Field(None, max_length=MAX_TOOLS)
    mcp_servers: list[McpServer] | None = None
    skills: list[Skill] | None = None

    def addresses(self, at: str = "") -> Iterator[tuple[str, str]]:
        """The addresses that are named here, each with its field; `at` stands before the field."""
        for number, server in enumerate(self.mcp_servers or ()):
            yield f"{at}mcp_servers.{number}.url", server.url

    @field_validator("tools")
    @classmethod
    def _named_once(cls, tools: list[Any] | None) -> list[Any] | None:
        twice = repeated(tool.name for tool in tools or [] if isinstance(tool, CustomTool))
        if twice is not None:
            raise ValueError(f"there are two custom tools '{twice}'")
        return tools


class NewAgent(AgentFields):
    name: Name
    model: Name | ModelChoice
    metadata: Metadata | None = None


class AgentChange(AgentFields):
    """What is not named stays; `version` is the one the client has seen."""

    name: Name | None = None
    model: Name | ModelChoice | None = None
    metadata: MetadataChange | None = None
    version: int | None = None


class AgentRef(AgentFields):
    """An agent as a new session names it, with what is different for this session alone."""

    id: Name
    type: str | None = None
    version: int | None = Field(None, ge=0)
    model: Name | ModelChoice | None = None


# -- environments -----------------------------------------------------------------------------------------------------

class Networking(Open):
    type: Name = "unrestricted"
    allowed_hosts: list[str] | None = None
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None


class Packages(Open):
    type: Literal["packages"] = "packages"
    apt: list[str] = []
    cargo: list[str] = []
    gem: list[str] = []
    go: list[str] = []
    npm: list[str] = []
    pip: list[str] = []


Script = Annotated[str, Field(max_length=100_000)]


class EnvironmentConfig(Wire):
    type: Literal["cloud", "self_hosted"] = "cloud"
    networking: Networking | None = None
    packages: Packages | None = None
    setup_script: Script | None = None


class InlineEnvironment(Wire):
    """An environment made for one session."""

    name: str | None = Field(None, max_length=256)
    description: Words | None = None
    config: EnvironmentConfig
    metadata: Metadata | None = None


class NewEnvironment(InlineEnvironment):
    name: Name
    config: EnvironmentConfig = EnvironmentConfig()


class EnvironmentChange(Wire):
    name: Name | None = None
    description: Words | None = None
    config: EnvironmentConfig | None = None
    metadata: MetadataChange | None = None


# -- files ------------------------------------------------------------------------------------------------------------

class FileFields(Wire):
    """What a form says beside the file."""

    name: Name | None = None
    metadata: Metadata | None = None
