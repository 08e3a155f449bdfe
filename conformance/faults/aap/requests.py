"""The bodies that AAP clients send, as the reference server reads them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True)


class TextBlock(_Wire):
    type: Literal["text"]
    text: str


class ThinkingBlock(_Wire):
    type: Literal["thinking"]
    thinking: str


class ToolUseBlock(_Wire):
    type: Literal["tool_use"]
    toolCallId: str  # noqa: N815 - the wire's spelling
    name: str
    input: dict[str, Any]


class ImageBlock(_Wire):
    type: Literal["image"]
    url: str


Block = Annotated[TextBlock | ThinkingBlock | ToolUseBlock | ImageBlock, Discriminator("type")]
Content = str | list[Block]


class SystemMessage(_Wire):
    role: Literal["system"]
    content: str


class UserMessage(_Wire):
    role: Literal["user"]
    content: Content


class AssistantMessage(_Wire):
    role: Literal["assistant"]
    content: Content


class ToolMessage(_Wire):
    role: Literal["tool"]
    toolCallId: str  # noqa: N815 - the wire's spelling
    content: Content


class ToolPermission(_Wire):
    role: Literal["tool_permission"]
    toolCallId: str  # noqa: N815 - the wire's spelling
    granted: StrictBool
    reason: str | None = None


HistoryMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Discriminator("role")]
ApplicationMessage = Annotated[UserMessage | ToolMessage | ToolPermission, Discriminator("role")]


class ToolSpec(_Wire):
    name: str = Field(min_length=1)
    description: str
    parameters: dict[str, Any]
    title: str | None = None


class ToolRef(_Wire):
    name: str
    trust: StrictBool = False


class AgentOverride(_Wire):
    """What a turn may change of the agent's configuration."""

    tools: list[ToolRef] | None = None
    options: dict[str, str] = {}
    name: str | None = None


class AgentConfig(AgentOverride):
    """What a session is created with."""

    name: str


class NewSession(_Wire):
    """The body of POST /sessions."""

    agent: AgentConfig
    messages: list[HistoryMessage] = []
    tools: list[ToolSpec] = []


class NewTurn(_Wire):
    """The body of POST /sessions/:id/turns."""

    messages: list[ApplicationMessage] = Field(min_length=1)
    stream: Literal["delta", "message", "none"] = "none"
    agent: AgentOverride = AgentOverride()
    tools: list[ToolSpec] | None = None
