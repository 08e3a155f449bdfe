"""Models of what CAS clients send about sessions and events, and the dialect's settings."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from gateway.field_errors import quote_value
from gateway.http import WireModel
from gateway.json_values import JsonObject, JsonValue

from .common import Metadata, MetadataChange, Name, OpenWireModel


class CasSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    stream_start: Literal["turn", "tail", "replay"] = "turn"
    """Where a stream without a cursor begins: at the newest turn that no stream has had, at the end, or the start."""
    metadata: Literal["replace", "merge"] = "replace"
    """Whether an update puts new metadata in the place of the old, or into it (null takes a key away)."""
    heartbeat: str = Field("heartbeat", pattern=r"^[^\r\n]{0,64}$")
    """The comment that shows that a stream lives."""
    body_bytes: int = Field(4 * 1024 * 1024, ge=1024)
    """The largest request, in bytes; files may be larger."""


# -- content ----------------------------------------------------------------------------------------------------------
class UrlSource(WireModel):
    type: Literal["url"]
    url: str = Field(pattern=r"^(https?://|data:)")


class Base64Source(WireModel):
    type: Literal["base64"]
    media_type: str = Field(pattern=r"^[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+$")
    data: str = Field(pattern=r"^[A-Za-z0-9+/=\s]+$")


class TextSource(WireModel):
    type: Literal["text"]
    data: str
    media_type: str | None = None


class FileSource(WireModel):
    type: Literal["file"]
    file_id: str = Field(min_length=1)


class TextBlock(WireModel):
    type: Literal["text"]
    text: str


class ImageBlock(WireModel):
    type: Literal["image"]
    source: Annotated[UrlSource | Base64Source | FileSource, Field(discriminator="type")]


class DocumentBlock(WireModel):
    type: Literal["document"]
    source: Annotated[UrlSource | Base64Source | FileSource | TextSource, Field(discriminator="type")]
    title: str | None = None


Block = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]


def _with_words(blocks: list[JsonValue]) -> list[JsonValue]:
    if all(isinstance(block, TextBlock) and not block.text for block in blocks):
        raise ValueError("must have a text, an image or a document; all its blocks are empty")
    return blocks


MAX_BLOCKS = 1000
"""How many blocks a message or a result may have."""
Results = Annotated[list[Block], Field(max_length=MAX_BLOCKS)]
Blocks = Annotated[list[Block], Field(max_length=MAX_BLOCKS), AfterValidator(_with_words)]


# -- events -----------------------------------------------------------------------------------------------------------
class UserMessage(WireModel):
    type: Literal["user.message"]
    content: Annotated[str, Field(min_length=1)] | Blocks


class UserInterrupt(WireModel):
    type: Literal["user.interrupt"]


class ToolConfirmation(WireModel):
    type: Literal["user.tool_confirmation"]
    tool_use_id: str
    result: Literal["allow", "deny"]
    deny_message: str | None = None


class CustomToolResult(WireModel):
    type: Literal["user.custom_tool_result"]
    custom_tool_use_id: str
    content: str | Results | None = None
    is_error: bool | None = None


class DefineOutcome(OpenWireModel):
    type: Literal["user.define_outcome"]


class UserToolResult(WireModel):
    """The result of a tool that the client runs, under the name that self-hosted environments use."""

    type: Literal["user.tool_result"]
    tool_use_id: str
    content: str | Results | None = None
    is_error: bool | None = None


class SystemMessage(WireModel):
    type: Literal["system.message"]
    content: list[TextBlock] = Field(min_length=1)


MAX_EVENTS = 1000
"""How many events a request may send."""
UserEvent = Annotated[
    UserMessage | UserInterrupt | ToolConfirmation | CustomToolResult | UserToolResult | DefineOutcome | SystemMessage,
    Field(discriminator="type"),
]
FirstEvent = Annotated[UserMessage | DefineOutcome | SystemMessage, Field(discriminator="type")]


class SentEvents(WireModel):
    events: list[UserEvent] = Field(min_length=1, max_length=MAX_EVENTS)


# -- sessions ---------------------------------------------------------------------------------------------------------
class FileMount(WireModel):
    type: Literal["file"] = "file"
    file_id: Name
    path: str | None = None
    mount_path: str | None = None


class RepositoryMount(WireModel):
    type: Literal["github_repository"]
    url: str = Field(min_length=1, max_length=2048)
    mount_path: str | None = Field(None, max_length=512)
    checkout: JsonObject | None = None
    authorization_token: SecretStr | None = None


class MountChange(WireModel):
    authorization_token: SecretStr = Field(min_length=1)


def _id_or_object(value: object) -> JsonValue:
    if not isinstance(value, str | dict):
        raise ValueError(f"must be an id or an object, not {quote_value(value)}")
    return value


def _words_or_object(value: object) -> JsonValue:
    if not isinstance(value, str) and not (
        isinstance(value, dict) and all(isinstance(word, str) for word in value.values())
    ):
        raise ValueError("must be a string, as KEY=VALUE;KEY=VALUE, or an object of strings")
    return value


IdOrObject = Annotated[Any, AfterValidator(_id_or_object)]


class MemoryMount(WireModel):
    type: Literal["memory_store"]
    memory_store_id: Name
    access: Literal["read_write", "read_only"] = "read_write"
    instructions: str | None = Field(None, max_length=4096)


class NewSession(WireModel):
    agent: IdOrObject
    environment_id: str | None = None
    environment: IdOrObject | None = None
    environment_variables: Annotated[Any, AfterValidator(_words_or_object)] | None = None
    title: str | None = Field(None, max_length=512)
    metadata: Metadata | None = None
    resources: list[JsonObject] | None = Field(None, max_length=500)
    vault_ids: list[Name] | None = None
    memory_store_ids: list[Name] | None = None
    incremental_streaming_enabled: bool | None = None
    delta_flush_interval_ms: int | None = None
    initial_events: list[FirstEvent] | None = Field(None, max_length=MAX_EVENTS)


class AnyMount(OpenWireModel):
    """A resource; its other fields depend on its type."""


class SessionChange(WireModel):
    title: str | None = Field(None, max_length=512)
    metadata: MetadataChange | None = None
    agent: dict[str, Any] | None = None
    environment_variables: Annotated[Any, AfterValidator(_words_or_object)] | None = None
    vault_ids: list[Name] | None = None
    # These fields cannot be changed after the session was made.
    status: JsonValue = None
    resources: JsonValue = None
    environment: JsonValue = None
    environment_id: JsonValue = None
    memory_store_ids: JsonValue = None

    @property
    def fixed(self) -> str | None:
        """The first field, if any, that cannot be changed."""
        fixed = ("status", "resources", "environment", "environment_id", "memory_store_ids")
        return next((word for word in fixed if word in self.model_fields_set), None)


PreviewedType = Literal["agent.message", "agent.thinking"]
PREVIEWED_TYPES: tuple[PreviewedType, ...] = ("agent.message", "agent.thinking")
