"""What Blade's clients send beside chat, in Blade's own spelling."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .wire import Wire


class Query(BaseModel):
    """What stands behind the question mark: all of it is text to begin with."""

    model_config = ConfigDict(extra="ignore")


Short = Annotated[str, Field(max_length=255)]
Content = Annotated[str, Field(min_length=1, max_length=500)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Type = Literal["feedback", "experience"]
RecordType = Literal["memory", "skill_comment"]


# -- memories ---------------------------------------------------------------------------------------------------------

class MemoryFields(Wire):
    """What may be left out of a memory, and changed in one; null is the same as nothing."""

    skill_name: Short | None = None
    record_type: RecordType | None = None
    scope: Short | None = None
    owner: Short | None = None
    topic: Short | None = None
    mem0_id: Short | None = None
    superseded_by: int | None = None
    write_reason: Reason | None = None


class NewMemory(MemoryFields):
    content: Content
    type: Type = "feedback"
    source_session: Short = ""


class MemoryChange(MemoryFields):
    content: Content | None = None
    type: Type | None = None


class MemorySwitch(Wire):
    disabled: bool


class MemoryBatch(Wire):
    action: Literal["delete", "disable", "enable"]
    ids: list[int] = Field(min_length=1, max_length=100)


class MemoryQuery(Query):
    keyword: str = ""
    skill_name: str | None = None
    type: Type | None = None
    record_type: RecordType | None = None
    scope: str | None = None
    owner: str | None = None
    topic: str | None = None
    status: Literal["active", "enabled", "disabled", "all"] = "all"
    offset: int = Field(0, ge=0)
    limit: int = Field(20, ge=1, le=100)


# -- keys -------------------------------------------------------------------------------------------------------------

class KeyName(Wire):
    name: str = Field(min_length=1, max_length=50)


# -- scheduled tasks --------------------------------------------------------------------------------------------------

Title = Annotated[str, Field(min_length=1, max_length=200)]
Prompt = Annotated[str, Field(min_length=1, max_length=100_000)]
Word = Annotated[str, Field(min_length=1, max_length=100)]
Model = Annotated[str, Field(max_length=200)]


class NewTask(Wire):
    title: Title
    prompt: Prompt
    cron: Word
    timezone: Word = "UTC"
    enabled: bool = True
    expires_at: str | None = None
    skip_confirmations: bool = False
    model: Model | None = None


class TaskChange(Wire):
    title: Title | None = None
    prompt: Prompt | None = None
    cron: Word | None = None
    timezone: Word | None = None
    enabled: bool | None = None
    expires_at: str | None = None
    skip_confirmations: bool | None = None
    model: Model | None = None


# -- files of a session -----------------------------------------------------------------------------------------------

class FileContent(Wire):
    content: str


class NewName(Wire):
    new_name: str = Field(min_length=1, max_length=255)


class CopyTo(Wire):
    """Where a copy goes; a copy beside the file where nothing is said."""

    destination: str | None = Field(default=None, max_length=4096)


# -- sessions ---------------------------------------------------------------------------------------------------------

class ShareFor(Wire):
    ttl_seconds: int | None = Field(default=None, ge=1, le=365 * 86_400)


class Rewinding(Wire):
    checkpoint_id: str = Field(max_length=64)


class CheckOut(Rewinding):
    position: Literal["before", "turn_end"] = "turn_end"


class ReplayAt(Wire):
    speed: Literal[1, 2, 5] = 1


class ReplayChange(Wire):
    speed: Literal[1, 2, 5] | None = None
    status: Literal["autonomous"] | None = None


class Extra(Wire):
    extra: Any = None
