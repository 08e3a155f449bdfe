"""Models of what ZenFlux clients send about tools."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.http import WireModel

Words = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)]


class McpConfig(WireModel):
    server_name: str


class ToolDefinitionBody(WireModel):
    """A definition; `implementation` is known in order to refuse code."""

    name: str
    description: str = Field(min_length=1, max_length=10_000)
    input_schema: dict[str, Any]
    tool_type: Literal["user_defined", "mcp"] = "user_defined"
    return_mode: Literal["direct", "streaming"] = "direct"
    output_schema: dict[str, Any] | None = None
    mcp_config: McpConfig | None = None
    implementation: Any = None
    keywords: Words | None = None
    examples: Annotated[list[Any], Field(max_length=100)] | None = None
    category: str | None = Field(None, max_length=200)


class ToolRegistration(WireModel):
    definition: ToolDefinitionBody
    replace_existing: bool = False
    enabled: bool = True


class ToolExecution(WireModel):
    tool_name: str
    input: dict[str, Any] = Field(default_factory=dict)
    stream: bool = False
    session_id: str | None = None
    user_id: str | None = None
    timeout: int | None = Field(default=None, ge=1)
