"""CAS's bodies by the names that its table spells: a server writes them, a client reads them and sends some."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from mappings.language import Body, rows_of

DELETED_KINDS = ("agent", "skill", "environment", "file", "vault", "credential", "memory_store", "memory")


# -- sessions ---------------------------------------------------------------------------------------------------------
class SessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session"
    session_id: str
    agent: Mapping[str, JsonValue]
    agent_id: str
    environment_id: str
    status: str
    turn_status: str
    title: str
    metadata: Mapping[str, JsonValue]
    resources: Sequence[JsonValue]
    vault_ids: Sequence[str]
    memory_store_ids: Sequence[str]
    environment_variables: Mapping[str, JsonValue]
    active_seconds: float
    duration_seconds: float
    usage: m.Usage
    archived_at: float | None
    created_at: float
    updated_at: float


class DeletedSessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.deleted"
    session_id: str


class CanceledSessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.canceled"
    session_id: str


class FileResource(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "resource.file"
    id: str
    file_id: str
    path: str
    created_at: float
    updated_at: float


class RepositoryResource(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "resource.github_repository"
    id: str
    url: str
    mount_path: str | None
    checkout: Mapping[str, JsonValue] | None
    created_at: float
    updated_at: float


class MemoryStoreResource(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "resource.memory_store"
    id: str
    memory_store_id: str
    access: str
    instructions: str | None
    created_at: float
    updated_at: float


class DeletedBody(Body, frozen=True, kw_only=True):
    """The id of a deleted resource; there is a row for each kind of resource."""

    rows: ClassVar[tuple[str, ...]] = ("resource.deleted", *(f"deleted.{kind}" for kind in DELETED_KINDS))
    id: str


class ThreadBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "thread"
    id: str
    session_id: str
    parent_id: str | None
    agent_id: str
    agent_name: str
    model: str | JsonObject
    agent_version: int
    name: str
    role: str
    status: str | None
    stop_reason: Mapping[str, JsonValue]
    caused_by: str | None
    archived_at: float | None
    created_at: float
    updated_at: float


class TurnStop(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "stop.turn"
    why: m.StopReason


class ArchiveStop(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "stop.archive"


class AskStop(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "stop.requires_action"
    event_ids: Sequence[str]


class SentEventsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "sent"
    events: Sequence[JsonValue]


# -- catalog ----------------------------------------------------------------------------------------------------------
class PageBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "page"
    items: Sequence[JsonValue]
    first_id: str | None
    last_id: str | None
    has_more: bool
    next_page: str | None


class AgentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "agent"
    id: str
    name: str
    description: str
    model: str | JsonObject
    system: str
    tools: Sequence[JsonValue]
    mcp_servers: Sequence[JsonValue]
    skills: Sequence[JsonValue]
    metadata: Mapping[str, JsonValue]
    version: int
    archived_at: float | None
    created_at: float
    updated_at: float


class ModelBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "model"
    id: str
    name: str
    enabled: bool = True


class SkillBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "skill"
    id: str
    title: str
    source: str
    version: str
    version_id: str
    metadata: Mapping[str, str]
    created_at: float
    updated_at: float


class SkillVersionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "skill_version"
    id: str
    skill_id: str
    version: str
    name: str
    description: str
    created_at: float


class EnvironmentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "environment"
    id: str
    name: str
    description: str
    config: Mapping[str, JsonValue]
    metadata: Mapping[str, JsonValue]
    archived_at: float | None
    created_at: float
    updated_at: float


class FileBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "file"
    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    metadata: Mapping[str, JsonValue]
    created_at: float


class FileLinkBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "file.link"
    url: str
    expires_at: float


class VaultBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "vault"
    id: str
    name: str
    metadata: Mapping[str, JsonValue]
    archived_at: float | None
    created_at: float
    updated_at: float


class CredentialBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "credential"
    id: str
    vault_id: str
    name: str | None
    auth: Mapping[str, JsonValue]
    metadata: Mapping[str, JsonValue]
    archived_at: float | None
    created_at: float
    updated_at: float


class MemoryStoreBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "memory_store"
    id: str
    name: str
    description: str
    status: str
    entries: int
    bytes: int
    metadata: Mapping[str, JsonValue]
    archived_at: float | None
    created_at: float
    updated_at: float


class MemoryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "memory"
    id: str
    store_id: str
    version_id: str
    path: str
    content: str | None
    sha256: str
    size: int
    metadata: Mapping[str, JsonValue]
    created_at: float
    updated_at: float


class MemoryVersionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "memory_version"
    id: str
    memory_id: str
    store_id: str
    operation: str
    path: str
    content: str | None
    sha256: str
    size: int
    created_at: float


class CredentialValidationBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "credential.validation"
    id: str
    vault_id: str
    has_refresh_token: bool
    at: float


# -- what a client asks for -------------------------------------------------------------------------------------------
class NewSessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.new"
    agent: JsonValue
    environment_id: str
    title: str | None


class ChangedSessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.changed"
    agent: Mapping[str, JsonValue]


class AgentSettingsBody(Body, frozen=True, kw_only=True):
    """The settings of an agent that CAS has; what is None is left to the server."""

    row: ClassVar[str] = "agent.settings"
    model: str | None = None
    system: str | None = None
    mcp_servers: Sequence[JsonValue] | None = None
    tools: Sequence[JsonValue] | None = None


class NewAgentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "agent.new"
    name: str
    settings: Mapping[str, JsonValue]
    model: str
    metadata: Mapping[str, str]


class UsedAgentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "agent.used"
    id: str
    settings: Mapping[str, JsonValue]


class NewEnvironmentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "environment.new"
    name: str
    metadata: Mapping[str, str]


class NewEventsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "events.new"
    events: Sequence[JsonValue]


class ToolConfigBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool.config"
    name: str
    enabled: bool
    policy: str


class ToolsetBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "toolset"
    names: Sequence[str] | None = None
    configs: Sequence[ToolConfigBody] | None = None


class CustomToolBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool.custom"
    name: str
    description: str
    parameters: Mapping[str, JsonValue]


# -- questions, as the input of a call --------------------------------------------------------------------------------
class ChoiceBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "choice"
    label: JsonValue
    description: str | None


class QuestionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "question"
    question: str
    header: str | None
    multi_select: bool | None
    options: Sequence[ChoiceBody] | None


class QuestionsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "questions"
    questions: Sequence[QuestionBody]


# -- what a client sends ----------------------------------------------------------------------------------------------
class ImageBlockBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "block.image"
    source: JsonValue


class DocumentBlockBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "block.document"
    title: str
    source: JsonValue


class UrlSourceBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "source.url"
    url: str


class Base64SourceBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "source.base64"
    media_type: str
    data: str


OBJECTS = rows_of(__name__)
"""The rows of the table's objects, each with the struct whose fields it spells."""
