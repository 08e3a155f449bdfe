"""ZenFlux's bodies by the names that its table spells: a server writes them, a client reads them and sends some."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable
from mappings.language import Body, rows_of


def spell(table: DialectTable, body: Body) -> JsonObject:
    """A body as its row spells it."""
    return table.object(body.row, body)


# -- around the others ------------------------------------------------------------------------------------------------
class ReplyBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "reply"
    data: Any
    flat: JsonValue


class RefusalBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "refusal"
    code: int
    message: str


class ListBody(Body, frozen=True, kw_only=True):
    """A list under its name; there is a row for each kind."""

    rows: ClassVar[tuple[str, ...]] = tuple(f"list.{kind}" for kind in (
        "agents", "models", "tools", "conversations", "messages", "sessions", "pending",
    ))
    items: JsonValue


# -- agents and models ------------------------------------------------------------------------------------------------
class AgentBody(Body, frozen=True, kw_only=True):
    """An agent; there are rows for its summary, its details and the template that it is."""

    rows: ClassVar[tuple[str, ...]] = ("agent.summary", "agent.detail", "agent.template")
    agent_id: str
    name: str
    description: str
    version: str
    is_active: bool
    model: str
    plan_manager_enabled: bool
    enabled_capabilities: Mapping[str, bool]
    llm: JsonValue
    apis: Sequence[JsonValue]
    memory: JsonValue
    mcp_servers: Sequence[str]
    skills: Sequence[str]
    calls: JsonValue
    succeeded: int
    created_at: float
    updated_at: float


class ModelBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "model"
    name: str
    title: str
    provider: str
    agents: Sequence[str]


class ToolSchemaBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool.schema"
    name: str
    description: str
    parameters: Mapping[str, JsonValue]


# -- frames of the chat socket ----------------------------------------------------------------------------------------
class RequestFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "request"
    id: str
    method: str
    params: Mapping[str, JsonValue]


class ResumeBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session.resume"
    run_id: str
    after_seq: int


class ResponseFrame(Body, frozen=True, kw_only=True):
    """What a client reads of a response, whether it is an acceptance or a refusal."""

    row: ClassVar[str] = "response"
    id: JsonValue
    is_ok: bool
    run_id: str
    code: str
    message: str


class AcceptedFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "accepted"
    id: JsonValue
    run_id: str
    session_id: str
    message_id: str


class ResumedFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "resumed"
    id: JsonValue
    run_id: str
    session_id: str
    message_id: str
    after_seq: int


class RefusedFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "refused"
    id: JsonValue
    code: str
    message: str


class PongFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "pong"
    at: float


class TickFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tick"
    at: float


class PingFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "ping"


# -- within frames and messages ---------------------------------------------------------------------------------------
class OpeningBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "opening"
    reply_id: str
    model: str


class UsageBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "usage"
    usage: m.Usage
    total: int
    latency: float
    llm_calls: int
    model: str


class ImageBlock(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "image"
    image_source: str
    media_type: str
    image_data: str


class Blocks(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "blocks"
    content: m.Content


class ResultBlock(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "result"
    call_id: str | None
    text: str
    is_error: bool


class SentFile(Body, frozen=True, kw_only=True):
    """A file as a message names it."""

    row: ClassVar[str] = "file.sent"
    file_id: str | None = None
    url: str | None = None
    name: str | None = None
    media_type: str | None = None
    size: int | None = None


# -- asks -------------------------------------------------------------------------------------------------------------
class ConfirmationBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "confirmation"
    request_id: str
    run_id: str
    session_id: str
    type: str
    tool_name: str
    question: str
    description: str
    options: Sequence[JsonValue]
    questions: Sequence["QuestionBody"] | None
    timeout: int | None
    kind: str
    call: m.ToolCall | None
    at: float


class OpenConfirmation(Body, frozen=True, kw_only=True):
    """What tells an ask that is open from one that is settled."""

    row: ClassVar[str] = "confirmation.open"


class QuestionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "question"
    id: str
    question: str
    header: str | None
    type: str
    options: Sequence[JsonValue]
    descriptions: Sequence[JsonValue]


class ChoiceBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "choice"
    label: str
    description: str | None


# -- conversations and runs -------------------------------------------------------------------------------------------
class ConversationBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "conversation"
    session_id: str
    title: str
    user_id: str
    created_at: float
    updated_at: float
    status: str
    agent: str
    metadata: Mapping[str, JsonValue]


class MessageBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "message"
    id: str
    session_id: str
    role: str
    content: JsonValue
    status: str
    at: float
    metadata: Mapping[str, JsonValue]


class SessionBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "session"
    run_id: str
    active: bool
    turns: int
    message_count: int
    has_plan: bool
    at: float
    user_id: str
    session_id: str
    message_id: str
    preview: str
    status: str


class TroubleBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "trouble"
    fault: m.Fault
    code: m.FaultCode


class RunBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "run"
    run_id: str
    session_id: str
    message_id: str | None
    message: str
    content: str
    status: str
    error: TroubleBody | None
    usage: UsageBody
    pending: Sequence[ConfirmationBody]


class StopBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "stop"
    run_id: str
    outcome: m.Outcome
    at: float


class StoppedFrame(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "stopped"
    id: JsonValue
    payload: StopBody


class EndBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "end"
    run_id: str
    outcome: m.Outcome
    at: float


class PreviewBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "preview"
    run_id: str
    ask: m.RollbackAsk
    options: Sequence[JsonValue]
    option_ids: Sequence[str]


class PreloadBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "preload"
    session_id: str
    count: int
    oldest: str | None
    updated_at: float
    limit: int


class SummaryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "summary"
    session_id: str
    title: str
    count: int
    created_at: float
    updated_at: float
    summary: str | None
    last: JsonValue


class FoundBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "found"
    conversation: JsonValue
    where: str
    snippet: str


# -- the rest ---------------------------------------------------------------------------------------------------------
class TaskBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "task"
    name: str
    description: str
    scheduled: bool
    schedule: JsonValue


class TaskJobBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "task.job"
    id: str
    title: str
    next_at: float | None
    cron: str


class TaskRunBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "task.run"
    name: str
    status: str
    trigger: str
    started_at: float
    finished_at: float | None
    milliseconds: int | None
    error: str | None
    result: JsonValue


class MemoryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "memory"
    id: str
    content: str
    score: float | None
    user_id: str
    created_at: float
    metadata: Mapping[str, JsonValue]


class ShownSkillBody(Body, frozen=True, kw_only=True):
    """A skill; there are rows for its summary and its details."""

    rows: ClassVar[tuple[str, ...]] = ("skill.summary", "skill.detail")
    name: str
    description: str
    priority: JsonValue
    preferred_for: Sequence[str]
    scripts: Sequence[JsonValue]
    resources: Sequence[JsonValue]
    text: str
    agent_id: str
    enabled: bool
    created_at: float


class SkillFileBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "skill.file"
    name: str
    kind: str
    file: str
    text: str | None
    binary: bool
    size: int
    language: str | None
    message: str | None


class ToolBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool"
    name: str
    description: str
    type: str
    return_mode: JsonValue
    input_schema: JsonObject
    output_schema: JsonValue
    mcp_config: JsonObject | None
    keywords: JsonValue
    examples: JsonValue
    category: JsonValue
    asks: bool
    status: str
    agents: Sequence[str]


class ToolRunBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool.run"
    id: str
    name: str
    status: str
    output: str | None
    error: str | None
    error_code: str | None
    started_at: float
    ended_at: float
    milliseconds: int


class ToolChunkBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "tool.chunk"
    id: str
    number: int
    kind: str
    content: JsonValue
    at: float


class McpServerBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "mcp_server"
    number: JsonValue
    name: str
    url: str
    auth_type: str | None
    auth_env: str | None
    agent_id: str | None
    is_global: bool
    is_active: bool
    capability: str | None
    description: str | None
    created_at: float
    updated_at: float
    connected_at: float | None
    metadata: Mapping[str, JsonValue]


class DocumentEntryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "document.entry"
    name: str
    path: str
    title: str


class CategoryBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "category"
    id: str
    files: Sequence[DocumentEntryBody]


class DocumentBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "document"
    path: str
    title: str
    content: str
    category: str


class FileBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "file"
    file_id: str
    name: str
    size: int
    media_type: str
    url: str
    path: str
    created_at: float


class ScheduledTaskBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "scheduled_task"
    id: str
    user_id: str
    title: str
    prompt: str
    cron: str
    status: str
    since: float
    count: int
    next_at: float | None
    last_at: float | None
    session_id: str | None


class EmbeddingStatus(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "embedding_status"


class HealthBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "health"
    status: str
    version: str
    at: float


class MetricsBody(Body, frozen=True, kw_only=True):
    row: ClassVar[str] = "metrics"
    metrics: Mapping[str, float | bool]
    at: float


OBJECTS = rows_of(__name__)
"""The rows of the table's objects, each with the struct whose fields it spells."""
