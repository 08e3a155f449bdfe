"""The closed word lists of the model: every enum that events, commands and asks may use."""

from enum import StrEnum

ROOT = "root"
"""The scope of the agent itself; sub-agents have scopes of their own."""


class BlockKind(StrEnum):
    TEXT = "text"
    THINKING = "thinking"
    TOOL_USE = "tool_use"
    IMAGE = "image"
    DATA = "data"


class ToolOrigin(StrEnum):
    """Who carries a tool call out."""

    BUILTIN = "builtin"
    MCP = "mcp"
    CLIENT = "client"
    PROVIDER = "provider"


class Permission(StrEnum):
    """What a session lets the agent do with one tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class StopReason(StrEnum):
    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    NEEDS_INPUT = "needs_input"
    MAX_TOKENS = "max_tokens"
    MAX_STEPS = "max_steps"
    REFUSAL = "refusal"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    ERROR = "error"


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class ToolStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    AWAITING_INPUT = "awaiting_input"
    DONE = "done"
    ERROR = "error"
    CANCELLED = "cancelled"


class ScopeStatus(StrEnum):
    RUNNING = "running"
    IDLE = "idle"
    BLOCKED = "blocked"
    ENDED = "ended"
    ARCHIVED = "archived"  # put away by a person, long after it has ended


class Resolution(StrEnum):
    ANSWERED = "answered"
    GRANTED = "granted"
    DENIED = "denied"
    RETURNED = "returned"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class SessionStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class CloseReason(StrEnum):
    ARCHIVED = "archived"
    DELETED = "deleted"
    TERMINATED = "terminated"


class CompactionTrigger(StrEnum):
    """What brought a compaction about."""

    AUTO = "auto"
    MANUAL = "manual"
    FORCED_RETRY = "forced_retry"


class NoticeLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AnnotationTopic(StrEnum):
    """The annotation topics that every table has to spell."""

    RECOMMENDED = "recommended"
    PREFACE = "preface"
    INTENT = "intent"
    BILLING = "billing"
    SEARCH = "search"
    KNOWLEDGE = "knowledge"
    MEMORY_REFS = "memory_refs"


class SupportLevel(StrEnum):
    """How well a dialect, or an agent, carries a feature."""

    FULL = "full"  # nothing is lost
    PARTIAL = "partial"  # a part of it arrives, in its own form
    FALLBACK = "fallback"  # it arrives in another form: an image as a link, a question as a tool call
    DROPPED = "dropped"  # it does not arrive
    REJECTED = "rejected"  # a request for it is rejected


SESSION_FEATURES = {
    "skills": "instructions that a user installs, for the agent to read",
    "mcp_servers": "servers of tools that a user or a session names",
    "memories": "what is remembered of a user from one session to the next",
    "user_settings": "what a user has chosen for all new sessions: a model, options",
}
"""What a session has beside its conversation, and what each of it is."""


class FaultCode(StrEnum):
    """What went wrong, in one word; `status` is the HTTP status it answers with unless a table says otherwise."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    BACKEND = "backend"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"

    @property
    def status(self) -> int:
        return _STATUS[self]

    @property
    def is_retryable(self) -> bool:
        """Whether what went wrong so may go well another time."""
        return self in _RETRYABLE


class FaultReason(StrEnum):
    """Why a request was refused, in one word for programs: the word of its code, or a more exact one."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    BACKEND = "backend"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    ALREADY_EXISTS = "already_exists"
    AGENT_NOT_FOUND = "agent_not_found"
    UNKNOWN_MODEL = "unknown_model"
    SKILL_NOT_FOUND = "skill_not_found"
    SKILL_EXISTS = "skill_exists"
    FILE_NOT_FOUND = "file_not_found"
    INVALID_PATH = "invalid_path"
    INVALID_FILE_TYPE = "invalid_file_type"
    INVALID_ZIP = "invalid_zip"
    INVALID_STRUCTURE = "invalid_structure"
    INVALID_SKILL = "invalid_skill"
    MCP_SERVER_NOT_FOUND = "mcp_server_not_found"
    MCP_SERVER_ENABLED = "mcp_server_enabled"
    TOOL_NOT_FOUND = "tool_not_found"
    TASK_NOT_FOUND = "task_not_found"
    DOCUMENT_NOT_FOUND = "document_not_found"


_RETRYABLE = (FaultCode.RATE_LIMITED, FaultCode.OVERLOADED, FaultCode.TIMEOUT, FaultCode.INTERRUPTED)
_STATUS = {
    FaultCode.INVALID: 400,
    FaultCode.UNAUTHENTICATED: 401,
    FaultCode.FORBIDDEN: 403,
    FaultCode.NOT_FOUND: 404,
    FaultCode.CONFLICT: 409,
    FaultCode.TOO_LARGE: 413,
    FaultCode.UNSUPPORTED: 422,
    FaultCode.RATE_LIMITED: 429,
    FaultCode.INTERNAL: 500,
    FaultCode.BACKEND: 502,
    FaultCode.OVERLOADED: 503,
    FaultCode.TIMEOUT: 504,
    FaultCode.INTERRUPTED: 503,
}
