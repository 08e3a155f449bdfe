"""Models of what ZenFlux clients send, and the dialect's settings."""

import re
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from gateway.errors import Invalid
from gateway.field_errors import quote_value
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
    """The same over HTTP, where both spellings are in use."""

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


MAX_TITLE = 500
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


def whole_number_param(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """A number of the query between two bounds; another value is refused."""
    said = request.query.get(name)
    if said is None or said == "":
        return default
    number = int(said) if WHOLE_NUMBER.fullmatch(said) else None
    if number is None or not least <= number <= most:
        raise Invalid(f"{name}: must be a whole number from {least} to {most}, not {quote_value(said)}", param=name)
    return number


def page_params(request: web.Request, default: int, most: int) -> tuple[int, int]:
    """Limit and offset."""
    return whole_number_param(request, "limit", default, 1, most), whole_number_param(request, "offset", 0, 0, 10**9)


def choice_param(request: web.Request, name: str, *words: str) -> str:
    """One of these words; by default the first."""
    said = request.query.get(name) or words[0]
    if said not in words:
        raise Invalid(f"{name}: must be {' or '.join(words)}, not {quote_value(said)}", param=name)
    return said


def title_param(request: web.Request) -> str | None:
    said = request.query.get("title")
    if said is not None and len(said) > MAX_TITLE:
        raise Invalid(f"title: must have at most {MAX_TITLE} characters, not {len(said)}", param="title")
    return said.strip() or None if said else None


ANY_IMAGE = "image/*"
"""The media type of an image if neither the client nor the address shows it."""


DIALECT_NAME = "zenflux"
LOCAL_USER = "local"
"""The user of a conversation that names none."""
