"""What ZenFlux clients send, in ZenFlux's own spelling, and the dialect's settings."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from gateway.web import FailFast


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


class Wire(FailFast, BaseModel):
    """Types are taken literally; members nobody knows are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


def _unless_null(value: Any) -> Any:
    return True if value is None else value


Wanted = Annotated[bool, BeforeValidator(_unless_null)]
"""Yes unless said otherwise; null says nothing."""


# -- frames of the chat socket ----------------------------------------------------------------------------------------

class FileReference(Wire):
    file_id: str | None = None
    file_url: str | None = None
    file_name: str | None = None
    file_type: str | None = None
    file_size: int | None = Field(None, ge=0)


class ChatSend(Wire):
    """A message may be empty where it brings files."""

    message: str = ""
    user_id: str = Field(min_length=1, max_length=256)
    conversation_id: str | None = None
    message_id: str | None = Field(None, max_length=128)
    agent_id: str | None = None
    stream: Wanted = True
    background_tasks: list[str] | None = None
    files: list[FileReference] | None = None
    variables: dict[str, Any] | None = None


class ChatAbort(Wire):
    session_id: str = Field(min_length=1)


class SessionResume(Wire):
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


class Confirmation(Wire):
    """`approve`, `reject`, or what a person made of a form."""

    response: str | bool | list[Any] | dict[str, Any]
    metadata: dict[str, Any] | None = None


class Rollback(Wire):
    """Which state to go back to, by its id, its words or its number; the first one unless said."""

    option: str | int | None = None
    file_paths: list[str] | None = None


class Continue(Wire):
    action: Literal["continue", "background", "stop"] = "continue"
