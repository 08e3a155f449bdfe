"""Models of what Blade's clients send, and the dialect's settings."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from gateway.http import WireModel
from gateway.json_values import JsonObject, JsonValue

from .asks import WordedAnswer


class BladeSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    socket_path: str = Field("/socket.io/", pattern=r"^/.*/$")
    patch_snapshots: bool = True
    message_bytes: int = Field(10 * 1024 * 1024, ge=1024)
    ping_seconds: float = Field(25.0, gt=0)
    agent: str | None = None


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


def _check_not_anonymous(value: object) -> object:
    if value:
        raise PydanticCustomError("anonymous", "there is no anonymous use here; leave it out")
    return value


class BladeModel(WireModel):
    """As `WireModel`, but nobody may be anonymous."""

    anonymous: Annotated[
        JsonValue, AfterValidator(_check_not_anonymous), WithJsonSchema({"enum": [False, None]}),
    ] = Field(default=None, exclude=True)
    """A client that sends this wants to be unknown to the agent and to others, so it must not be ignored."""


def _empty_object(value: object) -> object:
    return {} if value is None else value


def _empty_text(value: object) -> object:
    return "" if value is None else value


def _with_text_keys(value: object) -> object:
    """Question numbers may be numbers or strings."""
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else _empty_object(value)


# -- chat:send --------------------------------------------------------------------------------------------------------
class TextPartIn(BladeModel):
    type: Literal["text"]
    text: str


class ImageAddress(BladeModel):
    url: str = Field(pattern=r"^(https?://|data:)")


class ImagePartIn(BladeModel):
    type: Literal["image_url"]
    image_url: ImageAddress


class FilePartIn(BladeModel):
    type: Literal["file"]
    name: str = Field(min_length=1, max_length=255)
    data: str


MAX_PARTS = 1000
"""How many parts a message may have."""
PartIn = Annotated[TextPartIn | ImagePartIn | FilePartIn, Field(discriminator="type")]
Pick = Annotated[int, Field(strict=True)]


class AskUserAnswer(BladeModel):
    tool_call_id: str = Field(validation_alias=AliasChoices("tool_call_id", "prompt_id"))
    selections: Annotated[dict[str, list[Pick]], BeforeValidator(_with_text_keys)] = Field(default_factory=dict)
    custom: Annotated[dict[str, str], BeforeValidator(_with_text_keys)] = Field(default_factory=dict)
    answer: WordedAnswer | None = None
    """As text, as later clients send it: one text, or a text for each question in order, by number or by name."""


class ChatSend(BladeModel):
    message: Annotated[str | Annotated[list[PartIn], Field(max_length=MAX_PARTS)], BeforeValidator(_empty_text)] = ""
    mode: Literal["planning", "executing"] | None = None
    model: str | None = None
    headless: bool | None = None
    output_schema: JsonObject | None = None
    runtime_env: Annotated[dict[str, str], BeforeValidator(_empty_object)] = Field(default_factory=dict)
    askuser_answer: AskUserAnswer | None = None


class Subscribe(BladeModel):
    session_id: str
    event_format: str | None = None
    after_sequence: int | None = Field(default=None, ge=0)
    resume: bool | None = None


# -- REST -------------------------------------------------------------------------------------------------------------
class NewSession(BladeModel):
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
    env: Annotated[dict[str, str], BeforeValidator(_empty_object)] = Field(default_factory=dict)
    disable_tools: bool | list[str] | None = None


class RenameSession(BladeModel):
    intent: str = Field(min_length=1, max_length=10_000)


class EnvRequest(BladeModel):
    env: dict[str, str]


class PinRequest(BladeModel):
    pinned: bool


class SharingRequest(BladeModel):
    shared: bool


class MemoryUseRequest(BladeModel):
    memory_enabled: bool


class QueryModel(BaseModel):
    """The query string, whose values are all text."""

    model_config = ConfigDict(extra="ignore")


ShortText = Annotated[str, Field(max_length=255)]
MemoryText = Annotated[str, Field(min_length=1, max_length=500)]
WriteReason = Annotated[str, Field(min_length=1, max_length=500)]
MemoryType = Literal["feedback", "experience"]
RecordType = Literal["memory", "skill_comment"]


# -- memories ---------------------------------------------------------------------------------------------------------
MEMORY_FIELDS = {
    "skill_name": "skill", "record_type": "record", "mem0_id": "external_id", "write_reason": "reason",
    "source_session": "session_id",
}
"""Blade's names of our fields of a memory."""


class MemoryFields(BladeModel):
    """The optional fields of a memory, which can be changed; null is absent."""

    skill_name: ShortText | None = None
    record_type: RecordType | None = None
    scope: ShortText | None = None
    owner: ShortText | None = None
    topic: ShortText | None = None
    mem0_id: ShortText | None = None
    superseded_by: int | None = None
    write_reason: WriteReason | None = None


class NewMemory(MemoryFields):
    content: MemoryText
    type: MemoryType = "feedback"
    source_session: ShortText = ""


class MemoryChange(MemoryFields):
    content: MemoryText | None = None
    type: MemoryType | None = None


class MemorySwitch(BladeModel):
    disabled: bool


class MemoryBatch(BladeModel):
    action: Literal["delete", "disable", "enable"]
    ids: list[int] = Field(min_length=1, max_length=100)


class MemoryQuery(QueryModel):
    keyword: str = ""
    skill_name: str | None = None
    type: MemoryType | None = None
    record_type: RecordType | None = None
    scope: str | None = None
    owner: str | None = None
    topic: str | None = None
    status: Literal["active", "enabled", "disabled", "all"] = "all"
    offset: int = Field(0, ge=0)
    limit: int = Field(20, ge=1, le=100)


# -- keys -------------------------------------------------------------------------------------------------------------
class KeyName(BladeModel):
    name: str = Field(min_length=1, max_length=50)


# -- skills -----------------------------------------------------------------------------------------------------------
class SkillFileIn(BladeModel):
    path: str = Field(min_length=1, max_length=512)
    content: str


class SkillUpload(BladeModel):
    name: str = Field(min_length=1, max_length=64)
    files: list[SkillFileIn] = Field(min_length=1, max_length=200)


class SkillChoice(BladeModel):
    skill_id: str = Field(min_length=1, validation_alias=AliasChoices("skill_id", "skill_name", "name"))


class SkillQuery(QueryModel):
    q: str
    limit: int = Field(10, ge=1, le=50)


# -- what is counted --------------------------------------------------------------------------------------------------
class PromptToCount(BladeModel):
    prompt: str
    model: str | None = None


class MessageToCount(BladeModel):
    role: str
    content: JsonValue = None


class MessagesToCount(BladeModel):
    messages: list[MessageToCount] = Field(max_length=10_000)
    model: str | None = None
    add_generation_prompt: bool | None = True
    enable_thinking: bool | None = None
    tools: list[JsonValue] | None = None


class TailQuery(QueryModel):
    tail: int = Field(100, ge=1, le=10_000)


# -- scheduled tasks --------------------------------------------------------------------------------------------------
TaskTitle = Annotated[str, Field(min_length=1, max_length=200)]
TaskPrompt = Annotated[str, Field(min_length=1, max_length=100_000)]
TaskWord = Annotated[str, Field(min_length=1, max_length=100)]
ModelName = Annotated[str, Field(max_length=200)]


class NewTask(BladeModel):
    title: TaskTitle
    prompt: TaskPrompt
    cron: TaskWord
    timezone: TaskWord = "UTC"
    enabled: bool = True
    expires_at: str | None = None
    skip_confirmations: bool = False
    model: ModelName | None = None


class TaskChange(BladeModel):
    title: TaskTitle | None = None
    prompt: TaskPrompt | None = None
    cron: TaskWord | None = None
    timezone: TaskWord | None = None
    enabled: bool | None = None
    expires_at: str | None = None
    skip_confirmations: bool | None = None
    model: ModelName | None = None


# -- files of a session -----------------------------------------------------------------------------------------------
class FileContent(BladeModel):
    content: str


class RenameFile(BladeModel):
    new_name: str = Field(min_length=1, max_length=255)


class CopyRequest(BladeModel):
    """The target of a copy; without it, the copy is beside the file."""

    destination: str | None = Field(default=None, max_length=4096)


# -- sessions ---------------------------------------------------------------------------------------------------------
class ShareRequest(BladeModel):
    ttl_seconds: int | None = Field(default=None, ge=1, le=365 * 86_400)


class RewindRequest(BladeModel):
    checkpoint_id: str = Field(max_length=64)


class CheckoutRequest(RewindRequest):
    position: Literal["before", "turn_end"] = "turn_end"


class ReplayRequest(BladeModel):
    speed: Literal[1, 2, 5] = 1


class ReplayChange(BladeModel):
    speed: Literal[1, 2, 5] | None = None
    status: Literal["autonomous"] | None = None


class ExtraInfo(BladeModel):
    extra: JsonValue = None


FILES_CHANGED = "workspace.files_changed"
"""The topic of the custom event or command for changed files."""
