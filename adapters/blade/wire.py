"""What Blade's clients send, in Blade's own spelling, and the dialect's settings."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from gateway.web import FailFast

from .asking import InWords


class BladeSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    socket_path: str = Field("/socket.io/", pattern=r"^/.*/$")
    patch_snapshots: bool = True
    message_bytes: int = Field(10 * 1024 * 1024, ge=1024)
    ping_seconds: float = Field(25.0, gt=0)
    agent: str | None = None

    @property
    def manner(self) -> str:
        return "" if self.patch_snapshots else "bare"


class BlockType(StrEnum):
    """The closed list of content blocks."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"
    TOOL_UI = "tool_ui"
    TOOL_BRIDGE = "tool_bridge"
    SYSTEM_NOTIFICATION = "system_notification"
    MODE_CHANGE = "mode_change"
    PLANNING_ENTER = "planning_enter"
    PLANNING_EXIT = "planning_exit"
    PLAN_STATUS = "plan_status"
    ASK_USER_ANSWER = "ask_user_answer"


BLOCK_TYPES = frozenset(map(str, BlockType))


def _known(value: Any) -> Any:
    if value:
        raise PydanticCustomError("anonymous", "there is no anonymous use here; leave it out")
    return value


class Wire(FailFast, BaseModel):
    """Types are taken literally; members nobody knows are ignored, and null is as good as absent where it may be."""

    model_config = ConfigDict(strict=True, extra="ignore")

    anonymous: Annotated[Any, AfterValidator(_known)] = Field(default=None, exclude=True)
    """Who sends this wants not to be known to the agent or to others: nothing to be ignored."""


def _empty(value: Any) -> Any:
    return {} if value is None else value


def _unsaid(value: Any) -> Any:
    return "" if value is None else value


def _keyed(value: Any) -> Any:
    """Question numbers may come as numbers or as words."""
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else _empty(value)


# -- chat:send --------------------------------------------------------------------------------------------------------

class TextPartIn(Wire):
    type: Literal["text"]
    text: str


class Address(Wire):
    url: str = Field(pattern=r"^(https?://|data:)")


class ImagePartIn(Wire):
    type: Literal["image_url"]
    image_url: Address


class FilePartIn(Wire):
    type: Literal["file"]
    name: str = Field(min_length=1, max_length=255)
    data: str


MOST_PARTS = 1000
"""How many parts a message may have."""
PartIn = Annotated[TextPartIn | ImagePartIn | FilePartIn, Field(discriminator="type")]
Pick = Annotated[int, Field(strict=True)]


class AskUserAnswer(Wire):
    tool_call_id: str = Field(validation_alias=AliasChoices("tool_call_id", "prompt_id"))
    selections: Annotated[dict[str, list[Pick]], BeforeValidator(_keyed)] = {}
    custom: Annotated[dict[str, str], BeforeValidator(_keyed)] = {}
    answer: InWords | None = None
    """In words, as later clients give it: one text, or words for each question in order or by number or name."""


class ChatSend(Wire):
    message: Annotated[str | Annotated[list[PartIn], Field(max_length=MOST_PARTS)], BeforeValidator(_unsaid)] = ""
    mode: Literal["planning", "executing"] | None = None
    model: str | None = None
    headless: bool | None = None
    output_schema: dict[str, Any] | None = None
    runtime_env: Annotated[dict[str, str], BeforeValidator(_empty)] = {}
    askuser_answer: AskUserAnswer | None = None


class Subscribe(Wire):
    session_id: str
    event_format: str | None = None
    after_sequence: int | None = Field(default=None, ge=0)
    resume: bool | None = None


# -- REST -------------------------------------------------------------------------------------------------------------

class NewSession(Wire):
    intent: str | None = Field(default=None, max_length=10_000)
    solution_id: str | None = None
    biz_role_id: str | None = None
    template_id: str | None = None
    primary_skill_id: str | None = None
    software_factory_id: str | None = None
    workspace_id: str | None = None
    model: str | None = None
    memory_enabled: bool | None = None
    is_persistent: bool | None = None
    env: Annotated[dict[str, str], BeforeValidator(_empty)] = {}
    disable_tools: bool | list[str] | None = None


class Renamed(Wire):
    intent: str = Field(min_length=1, max_length=10_000)


class EnvIn(Wire):
    env: dict[str, str]


class Pinned(Wire):
    pinned: bool


class Shared(Wire):
    shared: bool


class Remembering(Wire):
    memory_enabled: bool
