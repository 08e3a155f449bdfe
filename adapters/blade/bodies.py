"""Blade's bodies by the names that its table spells: a server writes them, a client reads them and sends some."""

from collections.abc import Mapping
from typing import Literal

import gateway.model as m

_TURN = (
    "id", "sequence", "turn_id", "loop_id", "role", "status", "blocks", "tool_calls", "model", "usage", "duration_ms",
    "started_at", "context_window", "memory_refs", "fork",
)
_COMPACTION = (
    "compaction_id", "preview", "summary", "archived", "tokens_before", "tokens_after", "saved_ratio", "trigger",
)
_SESSION = (
    "id", "intent", "status", "created_at", "updated_at", "user_id", "solution_id", "biz_role_id", "model", "shared",
    "is_pinned", "memory_enabled", "is_persistent", "replay_state",
)
_REFUSAL = ("message", "code", "detail")
_KEY = ("id", "name", "masked", "plaintext", "created_at", "last_used_at", "last_used_from")
_SKILL = ("name", "description", "version", "is_offered", "enabled", "created_at", "updated_at")
_TOKENS = ("count", "window", "model")
_ITEM = ("name", "size", "path", "changed_at")

NAME_TYPES: Mapping[str, object] = {
    **dict.fromkeys((
        "agent", "call_id", "checkpoint_id", "content_preview", "description", "file_path", "folder", "id",
        "intent", "leaf_id", "masked", "memory.content", "message", "min_sdk", "name", "output", "path",
        "preview", "prompt", "role", "session_id", "state.status", "status", "task_id", "text",
        "timezone", "title", "token", "type", "url", "user_id", "version",
    ), str),
    **dict.fromkeys((
        "biz_role_id", "cron", "error", "external_id", "failure", "last_used_from", "loop_name", "model",
        "parent", "plaintext", "reason", "run_id", "skill", "skill_name", "solution_id", "state.source",
        "topic",
    ), str | None),
    **dict.fromkeys((
        "context_window", "count", "cut", "duration_ms", "hits", "index", "limit", "messages", "offset",
        "patch_sequence", "records", "sequence", "size", "state.turn", "state.turns",
        "statistics.compactions", "statistics.free", "statistics.input_tokens", "statistics.output_tokens",
        "statistics.turns", "statistics.used", "statistics.window", "stream_sequence", "tools", "total", "window",
    ), int),
    **dict.fromkeys((
        "disabled", "enabled", "is_offered", "is_persistent", "is_pinned", "memory_enabled", "overwritten",
        "shared", "statistics.is_estimated", "supported", "unattended",
    ), bool),
    **dict.fromkeys(("saved_ratio", "state.speed", "statistics.ratio"), float | None),
    **dict.fromkeys(("paths", "uploaded", "import.preview.files"), list[str]),
    **dict.fromkeys(("memory.owner", "memory.record", "memory.scope"), str | None),
    **dict.fromkeys(("skill.version", "skill.full.version", "skill.session.version", "skill.uploaded.files"), int),
    "memory.id": int, "memory_ref.id": int | str, "superseded_by": int | None,
    "position": Literal["before", "turn_end"],
}
"""The types of the names that stand alone below: by name, by path, or by row and name."""
OBJECTS: Mapping[str, tuple[str, ...] | type[object]] = {
    # -- chats and sessions
    "turn": _TURN,
    "turn.compaction": (*_TURN, *_COMPACTION),
    "turn.listed": ("turn", "failure"),
    "turn.compaction.listed": ("turn", "failure"),
    "usage": ("input_tokens", "output_tokens"),
    "block": ("type", "content", "call"),
    "declaration": ("call", "input"),
    "tool_call": ("call", "name", "title", "arguments", "result", "reference"),
    "reference": ("loop_name", "call_id", "description"),
    "parts": ("content",),
    "file.sent": ("name", "data"),
    "result.meta": ("result", "meta"),
    "result.content": ("content",),
    "memory_ref": ("id", "content_preview", "skill_name"),
    "question": m.Question,
    "choice": m.Choice,
    "arguments.asked": ("questions", "source"),
    "arguments.given": ("input", "source"),
    "source": ("loop_id", "title"),
    "pause": ("call", "arguments"),
    "answer.text": ("text",),
    "answer.schema": ("value", "schema", "fields"),
    "answer.failed": ("message",),
    "health": (),
    "session": _SESSION,
    "session.full": ("session", "solution", "primary_skill", "setup"),
    "session.new": ("intent", "model", "agent", "disabled"),
    "session.created": ("session_id",),
    "session.deleted": (),
    "session.shared": ("shared",),
    "session.memory": ("memory_enabled",),
    "sessions": ("items", "total", "limit", "offset"),
    "history": ("nodes", "model"),
    "history.node": ("turn", "parent"),
    "subscription": ("session_id", "number", "resume"),
    "position": ("number", "session_id", "turn", "run_id", "patch"),
    "ack": ("session_id",),
    "ack.chat": ("session_id", "run_id"),
    "ack.stopped": ("session_id",),
    "ack.idle": ("session_id",),
    "ack.refused": ("refusal",),
    **dict.fromkeys(("refusal", "refusal.missing", "refusal.access", "refusal.busy", "refusal.answer"), _REFUSAL),
    # -- resources
    "ok": (),
    "ok.count": ("count",),
    "memory": (
        "id", "type", "content", "skill", "record", "scope", "owner", "topic", "external_id", "superseded_by",
        "reason", "created_at", "updated_at", "hits", "last_hit_at", "disabled", "session_id",
    ),
    "memories": ("items", "total"),
    "key": _KEY,
    "key.created": (*_KEY, "key"),
    "folder": _ITEM,
    "file": _ITEM,
    "file.written": ("path",),
    "file.path": ("path",),
    "deleted": ("path",),
    "files.uploaded": ("uploaded", "failed"),
    "file.refused": ("path", "error"),
    "share": ("token", "url", "expires_at"),
    "share.revoked": (),
    "checkpoint": ("checkpoint_id", "leaf_id", "turn_id", "sequence", "created_at", "preview"),
    "rewound": ("session_id", "checkpoint_id"),
    "checked_out": ("checkpoint_id", "position", "messages"),
    "import.preview": ("session_id", "intent", "agent", "exported_at", "records", "messages", "files"),
    "imported": ("session_id",),
    "replay": ("state",),
    "replay.started": ("session_id",),
    "replay.preview": ("session_id", "intent", "supported", "reason"),
    "replay.state": ("state",),
    "version": ("version", "min_sdk"),
    "config": ("version", "model"),
    "models": ("default", "models"),
    "model": ("id", "name"),
    "me": ("id", "name", "created_at"),
    "extra": ("session_id", "extra", "created_at", "updated_at"),
    "task": ("id", "title", "prompt", "cron", "timezone", "enabled", "expires_at", "unattended", "model"),
    "task.run": ("id", "task_id", "session_id", "status", "error", "triggered_at", "finished_at"),
    "task.due": ("task_id", "title", "times"),
    "task.time": ("at",),
    "skill": _SKILL,
    "skill.full": (*_SKILL, "text", "paths"),
    "skill.session": ("name", "description", "version"),
    "skill.uploaded": ("name", "folder", "files", "overwritten"),
    "skills.found": ("items",),
    "skills.synced": ("message", "items"),
    "tokens": _TOKENS,
    "tokens.message": ("role", "count"),
    "tokens.messages": (*_TOKENS, "messages", "tools"),
    "context.statistics": ("session_id", "statistics", "model"),
    "plan.step": ("step",),
    "background.task": ("id", "name", "status", "created_at", "updated_at"),
    "background.output": ("task", "output", "cut"),
}
