"""Models of what ZenFlux clients send about agents, tools, MCP servers, skills, memories and tasks."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from gateway.http import WireModel, dumps
from gateway.json_values import JsonObject, JsonValue

AgentName = Annotated[str, Field(min_length=1, max_length=100)]
Prompt = Annotated[str, Field(min_length=1, max_length=100_000)]


class ApiAuth(WireModel):
    type: str | None = None
    header: str | None = None
    env: str | None = None


class ApiReference(WireModel):
    """An API of the agent; it is shown, and never called."""

    name: str = Field(min_length=1)
    base_url: str
    auth: ApiAuth | None = None
    doc: str | None = None
    capability: str | None = None
    description: str | None = None


class AgentFields(WireModel):
    """The fields that a new agent and a change of one share."""

    description: str | None = Field(None, max_length=10_000)
    model: str | None = None
    plan_manager_enabled: bool | None = None
    llm: JsonObject | None = None
    enabled_capabilities: dict[str, bool] | None = None
    apis: list[ApiReference] | None = Field(None, max_length=100)
    memory: JsonObject | None = None
    data_dir: str | None = None


KEPT_FIELDS = ("plan_manager_enabled", "llm", "enabled_capabilities", "apis", "memory")
"""Fields of agents that only ZenFlux has: they are kept and given back."""


class NewAgent(AgentFields):
    agent_id: str | None = None
    name: AgentName
    prompt: Prompt


class AgentChange(AgentFields):
    """What is not named stays."""

    name: AgentName | None = None
    prompt: Prompt | None = None
    is_active: bool | None = None


Words = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)]


class McpConfig(WireModel):
    server_name: str


class ToolDefinitionBody(WireModel):
    """A definition; `implementation` is known in order to refuse code."""

    name: str
    description: str = Field(min_length=1, max_length=10_000)
    input_schema: JsonObject
    tool_type: Literal["user_defined", "mcp"] = "user_defined"
    return_mode: Literal["direct", "streaming"] = "direct"
    output_schema: JsonObject | None = None
    mcp_config: McpConfig | None = None
    implementation: JsonValue = None
    keywords: Words | None = None
    examples: Annotated[list[JsonValue], Field(max_length=100)] | None = None
    category: str | None = Field(None, max_length=200)


class ToolRegistration(WireModel):
    definition: ToolDefinitionBody
    replace_existing: bool = False
    enabled: bool = True


class ToolExecution(WireModel):
    tool_name: str
    input: JsonObject = Field(default_factory=dict)
    stream: bool = False
    session_id: str | None = None
    user_id: str | None = None
    timeout: int | None = Field(default=None, ge=1)


AuthType = Literal["none", "api_key", "bearer", "oauth2"]


class McpAuth(WireModel):
    """A token, or the name of a secret that the user has."""

    token_env: str | None = None
    api_key_env: str | None = None
    token: str | None = None
    api_key: str | None = None


class CommandFields(WireModel):
    """Fields of a server that is a command; they are known in order to refuse them."""

    command: JsonValue = None
    args: JsonValue = None


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
    metadata: JsonObject | None = None


SkillName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class SkillChoice(WireModel):
    """A skill and the agent that it is installed on."""

    skill_name: SkillName
    agent_id: AgentId


class SkillSwitch(SkillChoice):
    enabled: bool


class SkillText(SkillChoice):
    """A new SKILL.md."""

    content: str


UserId = Annotated[str, Field(min_length=1, max_length=256)]
MAX_METADATA_BYTES = 4096


class MemoryMetadata(WireModel):
    """What a client keeps with a memory; `type` is the gateway's own, too."""

    metadata: JsonObject | None = None

    @field_validator("metadata")
    @classmethod
    def _small(cls, metadata: JsonObject | None) -> JsonObject | None:
        if metadata is not None and len(dumps(metadata)) > MAX_METADATA_BYTES:
            raise ValueError(f"must have at most {MAX_METADATA_BYTES} bytes")
        return metadata


class MemorySearch(WireModel):
    user_id: UserId
    query: str = Field(min_length=1, max_length=10_000)
    limit: int = Field(10, ge=1, le=50)


class MemoryMessage(WireModel):
    role: Literal["user", "assistant", "system", "tool"]
    content: str = Field(max_length=100_000)


class NewMemories(MemoryMetadata):
    """Messages to remember; what the user says is kept word for word."""

    user_id: UserId
    messages: list[MemoryMessage] = Field(min_length=1, max_length=100)


class MemoryUpdate(MemoryMetadata):
    id: str
    memory: str | None = Field(None, min_length=1, max_length=500)


class MemoryBatch(WireModel):
    since_hours: int = Field(24, ge=1, le=168)
    max_concurrent: int = Field(5, ge=1, le=20)
    updates: list[MemoryUpdate] | None = Field(None, max_length=1000)


class TaskStart(WireModel):
    """Start a task by hand; a background job works on a conversation."""

    user_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    params: JsonObject | None = None
    wait: bool = False


class TaskBatch(WireModel):
    """Start a background job for all conversations of some hours."""

    since_hours: int = Field(24, ge=1, le=168)
    max_concurrent: int = Field(5, ge=1, le=20)
    params: JsonObject | None = None
