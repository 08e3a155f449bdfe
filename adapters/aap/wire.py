"""Models of what AAP clients send, and the dialect's settings."""

import re
from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from gateway.http import WireModel
from gateway.json_values import JsonObject


class AapSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    page_size: int = Field(50, ge=1, le=1000)


class AapModel(WireModel):
    """As `WireModel`, and a null is an absent member."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        if not isinstance(given, dict) or None not in given.values():
            return given
        return {key: value for key, value in given.items() if value is not None}


# -- content ----------------------------------------------------------------------------------------------------------
class TextBlock(AapModel):
    type: Literal["text"]
    text: str


class ThinkingBlock(AapModel):
    type: Literal["thinking"]
    thinking: str


class ToolUseBlock(AapModel):
    type: Literal["tool_use"]
    toolCallId: str
    name: str
    input: dict[str, Any]


DATA_IMAGE = re.compile(r"data:image/[a-z0-9][a-z0-9.+-]*(?:;[a-z0-9-]+=[^;,\s]*)*;base64,", re.ASCII | re.IGNORECASE)
"""The beginning of the `data:` URI of an image."""


def _check_image_url(url: str) -> str:
    """Refuse an address that cannot be the address of an image."""
    if url.startswith("https://"):
        if not _has_host(url):
            raise PydanticCustomError("picture", "expected an https:// address with a host, such as https://example.com/cat.png")
    elif url.startswith("data:"):
        head = DATA_IMAGE.match(url)
        if head is None:
            raise PydanticCustomError("picture", "expected a data: URI of the form data:image/<type>;base64,<data>")
        if not _is_base64(url[head.end():]):
            raise PydanticCustomError("picture", "expected base64 after 'base64,' in the data: URI")
    else:
        raise PydanticCustomError("picture", "expected an https:// address or a data:image/<type>;base64,<data> URI")
    return url


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s\x00-\x1f\x7f]", url)
    except ValueError:  # a port that is no number, brackets that do not close
        return False


def _is_base64(text: str) -> bool:
    """Whether this is base64 of something; padding may be left out."""
    try:
        return bool(a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True))
    except (NotBase64, ValueError):
        return False


class ImageBlock(AapModel):
    type: Literal["image"]
    url: Annotated[str, AfterValidator(_check_image_url)]


Block = Annotated[TextBlock | ThinkingBlock | ToolUseBlock | ImageBlock, Field(discriminator="type")]
Content = str | list[Block]


# -- messages ---------------------------------------------------------------------------------------------------------
def image_addresses(messages: Iterable[object]) -> Iterator[tuple[str, str]]:
    """The addresses of images in these messages, each with its field."""
    for number, message in enumerate(messages):
        content = getattr(message, "content", None)
        for place, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, ImageBlock):
                yield f"messages.{number}.content.{place}.url", block.url


class SystemMessage(AapModel):
    role: Literal["system"]
    content: str


class UserMessage(AapModel):
    role: Literal["user"]
    content: Content


class AssistantMessage(AapModel):
    role: Literal["assistant"]
    content: Content


class ToolMessage(AapModel):
    role: Literal["tool"]
    toolCallId: str
    content: Content


class ToolPermissionMessage(AapModel):
    role: Literal["tool_permission"]
    toolCallId: str
    granted: bool
    reason: str | None = None


HistoryMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]
ApplicationMessage = Annotated[UserMessage | ToolMessage | ToolPermissionMessage, Field(discriminator="role")]


# -- requests ---------------------------------------------------------------------------------------------------------
def _check_json_schema(parameters: JsonObject) -> JsonObject:
    """Refuse what is not a JSON Schema."""
    import jsonschema_rs  # 3 MB, which a server whose clients declare no tools spares

    try:
        jsonschema_rs.validator_for(parameters, offline=True)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise PydanticCustomError("schema", "expected a JSON Schema: {why}", {"why": why}) from None
    return parameters


class ToolDeclaration(AapModel):
    name: str = Field(min_length=1)
    title: str | None = None
    description: str
    parameters: Annotated[JsonObject, AfterValidator(_check_json_schema)]


class ServerToolRef(AapModel):
    name: str
    trust: bool = False


class AgentOverride(AapModel):
    name: str | None = None
    tools: list[ServerToolRef] | None = None
    options: dict[str, str] | None = None


class AgentConfig(AgentOverride):
    name: str


class NewSession(AapModel):
    agent: AgentConfig
    messages: list[HistoryMessage] = Field(default_factory=list)
    tools: list[ToolDeclaration] = Field(default_factory=list)


class NewTurn(AapModel):
    messages: list[ApplicationMessage] = Field(min_length=1)
    stream: Literal["delta", "message", "none"] = "none"
    agent: AgentOverride | None = None
    tools: list[ToolDeclaration] | None = None


SECRET_MASK = "***"  # noqa: S105  # stands for a secret
TRUST_CAPABILITY = "trust"
VERSION = 3
ANY_PARAMETERS: JsonObject = {"type": "object"}
"""The parameters of a tool that does not say which it takes."""
