"""Models of what CAS clients send about agents, environments and files."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, field_validator

import gateway.model as m
from gateway.http import WireModel
from gateway.ids import first_duplicate
from gateway.json_values import JsonObject

from .common import Description, HttpAddress, Metadata, MetadataChange, Name, OpenWireModel

MAX_TOOLS, MAX_SYSTEM = 128, 100_000


# -- agents -----------------------------------------------------------------------------------------------------------
class PermissionPolicy(WireModel):
    type: Literal["always_allow", "always_ask", "always_deny"]


class ToolDefaults(OpenWireModel):
    enabled: bool | None = None
    permission_policy: PermissionPolicy | None = None


class ToolConfig(ToolDefaults):
    name: Name | None = None
    type: str | None = None

    @property
    def tool(self) -> str | None:
        """Both spellings of a tool's name are in use."""
        return self.name or self.type


class Toolset(OpenWireModel):
    """The tools of the server; those that our agents do not have are stored and have no effect."""

    type: Literal["agent_toolset_20260401"]
    enabled_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    default_config: ToolDefaults | None = None
    configs: list[ToolConfig] | None = None


class McpToolset(OpenWireModel):
    type: Literal["mcp_toolset"]
    mcp_server_name: Name
    default_config: ToolDefaults | None = None
    configs: list[ToolConfig] | None = None


class CustomTool(OpenWireModel):
    """A tool that the client runs."""

    type: Literal["custom"]
    name: Name
    description: str = ""
    input_schema: JsonObject = Field(default={"type": "object"})


Tool = Annotated[Toolset | McpToolset | CustomTool, Field(discriminator="type")]


class ModelChoice(OpenWireModel):
    id: Name


class McpServerRef(OpenWireModel):
    type: str = "url"
    name: Name
    url: HttpAddress


CUSTOM_SKILL, OFFERED_SKILL = "custom", "qoder"
"""Where a skill comes from: its user, or the server."""
LATEST = "latest"


class SkillReference(OpenWireModel):
    type: str
    skill_id: Name
    version: str | None = None


class AgentFields(WireModel):
    """The fields that a new agent and a change of one share."""

    description: Description | None = None
    system: str | None = Field(None, max_length=MAX_SYSTEM)
    tools: list[Tool] | None = Field(None, max_length=MAX_TOOLS)
    mcp_servers: list[McpServerRef] | None = None
    skills: list[SkillReference] | None = None

    def addresses(self, at: str = "") -> Iterator[tuple[str, str]]:
        """The addresses in this body, each with its field; `at` is put before the field."""
        for number, server in enumerate(self.mcp_servers or ()):
            yield f"{at}mcp_servers.{number}.url", server.url

    @field_validator("tools")
    @classmethod
    def _named_once(cls, tools: list[object] | None) -> list[object] | None:
        twice = first_duplicate(tool.name for tool in tools or [] if isinstance(tool, CustomTool))
        if twice is not None:
            raise ValueError(f"there are two custom tools '{twice}'")
        return tools


class NewAgent(AgentFields):
    name: Name
    model: Name | ModelChoice
    metadata: Metadata | None = None


class AgentChange(AgentFields):
    """Absent fields stay; `version` is the one that the client has seen."""

    name: Name | None = None
    model: Name | ModelChoice | None = None
    metadata: MetadataChange | None = None
    version: int | None = None


class AgentRef(AgentFields):
    """An agent as a new session names it, with changes for this session alone."""

    id: Name
    type: str | None = None
    version: int | None = Field(None, ge=0)
    model: Name | ModelChoice | None = None


# -- environments -----------------------------------------------------------------------------------------------------
class Networking(OpenWireModel):
    type: Name = "unrestricted"
    allowed_hosts: list[str] | None = None
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None


class Packages(OpenWireModel):
    type: Literal["packages"] = "packages"
    apt: list[str] = Field(default=[])
    cargo: list[str] = Field(default=[])
    gem: list[str] = Field(default=[])
    go: list[str] = Field(default=[])
    npm: list[str] = Field(default=[])
    pip: list[str] = Field(default=[])


SetupScript = Annotated[str, Field(max_length=100_000)]


class EnvironmentConfig(WireModel):
    type: Literal["cloud", "self_hosted"] = "cloud"
    networking: Networking | None = None
    packages: Packages | None = None
    setup_script: SetupScript | None = None


class InlineEnvironment(WireModel):
    """An environment made for one session."""

    name: str | None = Field(None, max_length=256)
    description: Description | None = None
    config: EnvironmentConfig
    metadata: Metadata | None = None


class NewEnvironment(InlineEnvironment):
    name: Name
    config: EnvironmentConfig = EnvironmentConfig()


class EnvironmentChange(WireModel):
    name: Name | None = None
    description: Description | None = None
    config: EnvironmentConfig | None = None
    metadata: MetadataChange | None = None


# -- files ------------------------------------------------------------------------------------------------------------
class SkillFields(WireModel):
    """The fields of a form beside the files of a skill; later clients call the title a name."""

    display_title: Name | None = None
    display_name: Name | None = None
    metadata: Metadata | None = None

    @property
    def title(self) -> str:
        return self.display_title or self.display_name or ""


class FileFields(WireModel):
    """The fields of a form beside the file."""

    name: Name | None = None
    metadata: Metadata | None = None


POLICIES = {
    "always_allow": m.Permission.ALLOW,
    "always_ask": m.Permission.ASK,
    "always_deny": m.Permission.DENY,
}
POLICY_WORDS = {permission: policy for policy, permission in POLICIES.items()}
