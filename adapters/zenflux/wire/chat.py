"""Models of what ZenFlux clients send in chats, and the dialect's settings."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from gateway.http import WireModel
from gateway.json_values import JsonObject, JsonValue


class ZenfluxSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    multi_message: bool = True
    throttle_ms: float = Field(150, ge=0, le=10_000)
    tick_seconds: float = Field(30, gt=0)
    ping_seconds: float = Field(15, gt=0)
    sync_seconds: float = Field(60, gt=0)
    conversation_stop: bool = False
    rollback_objects: bool = False
    default_title: str = Field("新对话", min_length=1)
    title_length: int = Field(30, ge=1, le=200)
    models: Literal["auto", "wrapped", "bare"] = "auto"


def _unless_null(value: object) -> object:
    return True if value is None else value


TrueByDefault = Annotated[bool, BeforeValidator(_unless_null)]
"""True by default, and for null."""


# -- frames of the chat socket ----------------------------------------------------------------------------------------
class FileReference(WireModel):
    file_id: str | None = None
    file_url: str | None = None
    file_name: str | None = None
    file_type: str | None = None
    file_size: int | None = Field(None, ge=0)


class ChatSend(WireModel):
    """A message may be empty if it has files."""

    message: str = ""
    user_id: str = Field(min_length=1, max_length=256)
    conversation_id: str | None = None
    message_id: str | None = Field(None, max_length=128)
    agent_id: str | None = None
    stream: TrueByDefault = True
    background_tasks: list[str] | None = None
    files: list[FileReference] | None = None
    variables: dict[str, Any] | None = None


class ChatAbort(WireModel):
    session_id: str = Field(min_length=1)


class SessionResume(WireModel):
    """Not documented: go on with a run after the event of that number; `stream` as it was in `chat.send`."""

    session_id: str = Field(min_length=1)
    after_seq: int = Field(0, ge=0)
    stream: bool = True


# -- bodies -----------------------------------------------------------------------------------------------------------
def _either(snake: str, *others: str) -> Any:
    return Field(None, validation_alias=AliasChoices(snake, *others))


class ChatRequest(ChatSend):
    """A message over HTTP, where both spellings of its fields are in use."""

    user_id: str = Field(
        "local", min_length=1, max_length=256, validation_alias=AliasChoices("user_id", "userId"),
    )
    conversation_id: str | None = _either("conversation_id", "conversationId")
    message_id: str | None = Field(
        None, max_length=128, validation_alias=AliasChoices("message_id", "messageId"),
    )
    agent_id: str | None = _either("agent_id", "agentId", "intent_id", "intentId")
    background_tasks: list[str] | None = _either("background_tasks", "backgroundTasks")


class ConfirmationRequest(WireModel):
    """`approve`, `reject`, or a filled form."""

    response: str | bool | list[JsonValue] | JsonObject
    metadata: dict[str, Any] | None = None


class RollbackRequest(WireModel):
    """The state to go back to, by its id, its text or its number; by default the first one."""

    option: str | int | None = None
    file_paths: list[str] | None = None


class ContinueRequest(WireModel):
    action: Literal["continue", "background", "stop"] = "continue"


ANY_IMAGE = "image/*"
"""The media type of an image if neither the client nor the address shows it."""


DIALECT_NAME = "zenflux"
LOCAL_USER = "local"
"""The user of a conversation that names none."""
