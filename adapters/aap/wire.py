"""What AAP clients send, in AAP's own spelling, and the dialect's settings."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class AapSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    page_size: int = Field(50, ge=1, le=1000)


class Wire(BaseModel):
    """Types are taken literally; members nobody knows are ignored, and a null is a member that is not there."""

    model_config = ConfigDict(strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


# -- content ----------------------------------------------------------------------------------------------------------

class TextBlock(Wire):
    type: Literal["text"]
    text: str


class ThinkingBlock(Wire):
    type: Literal["thinking"]
    thinking: str


class ToolUseBlock(Wire):
    type: Literal["tool_use"]
    toolCallId: str
    name: str
    input: dict[str, Any]


class ImageBlock(Wire):
    type: Literal["image"]
    url: str = Field(pattern=r"^(https://|data:)")


Block = Annotated[TextBlock | ThinkingBlock | ToolUseBlock | ImageBlock, Field(discriminator="type")]
Content = str | list[Block]


# -- messages ---------------------------------------------------------------------------------------------------------

class SystemMessage(Wire):
    role: Literal["system"]
    content: str


class UserMessage(Wire):
    role: Literal["user"]
    content: Content


class AssistantMessage(Wire):
    role: Literal["assistant"]
    content: Content


class ToolMessage(Wire):
    role: Literal["tool"]
    toolCallId: str
    content: Content


class ToolPermissionMessage(Wire):
    role: Literal["tool_permission"]
    toolCallId: str
    granted: bool
    reason: str | None = None


HistoryMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]
ApplicationMessage = Annotated[UserMessage | ToolMessage | ToolPermissionMessage, Field(discriminator="role")]


# -- requests ---------------------------------------------------------------------------------------------------------

class ToolSpecIn(Wire):
    name: str = Field(min_length=1)
    title: str | None = None
    description: str
    parameters: dict[str, Any]


class ServerToolRef(Wire):
    name: str
    trust: bool = False


class AgentOverride(Wire):
    name: str | None = None
    tools: list[ServerToolRef] | None = None
    options: dict[str, str] | None = None


class AgentConfig(AgentOverride):
    name: str


class NewSession(Wire):
    agent: AgentConfig
    messages: list[HistoryMessage] = []
    tools: list[ToolSpecIn] = []


class NewTurn(Wire):
    messages: list[ApplicationMessage] = Field(min_length=1)
    stream: Literal["delta", "message", "none"] = "none"
    agent: AgentOverride | None = None
    tools: list[ToolSpecIn] | None = None
