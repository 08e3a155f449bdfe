"""ZenFlux's bodies: the wrapper, conversations, runs and models as the table spells them."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import NotFound
from gateway.model import (
    ROOT,
    AgentCard,
    Checkpoint,
    DataPart,
    Entry,
    Outcome,
    Role,
    SessionView,
    Usage,
    parts_of,
    text_of,
)
from gateway.ports import Resource
from mappings.language import Table

from .asks import confirmation
from .blocks import bill, code_of
from .manner import user_of

OBJECTS = {
    "reply": ("data", "flat"),
    "refusal": ("code", "message"),
    "accepted": ("id", "run_id", "session_id", "message_id"),
    "resumed": ("id", "run_id", "session_id", "message_id", "after_seq"),
    "stopped": ("id", "payload"),
    "refused": ("id", "code", "message"),
    "pong": ("at",),
    "tick": ("at",),
    "ping": (),
    "opening": ("reply_id", "model"),
    "spent": ("stop_reason", "usage"),
    "usage": ("usage", "total", "latency", "llm_calls", "model"),
    "image": ("source", "media_type", "data"),
    "blocks": ("content",),
    "result": ("call_id", "text", "is_error"),
    "confirmation": (
        "request_id", "run_id", "session_id", "type", "tool_name", "question", "description", "options", "questions",
        "timeout", "metadata", "at",
    ),
    "question": ("id", "question", "header", "type", "options", "descriptions"),
    "conversation": ("session_id", "title", "user_id", "created_at", "updated_at", "status", "agent", "metadata"),
    "message": ("id", "session_id", "role", "content", "status", "at", "metadata"),
    "session": (
        "run_id", "active", "turns", "message_count", "has_plan", "at", "user_id", "session_id", "message_id",
        "preview", "status",
    ),
    "run": ("run_id", "session_id", "message_id", "message", "content", "status", "error", "usage", "pending"),
    "trouble": ("fault", "code"),
    "stop": ("run_id", "outcome", "at"),
    "end": ("run_id", "outcome", "at"),
    "preview": ("run_id", "ask", "options", "option_ids"),
    "preload": ("session_id", "count", "oldest", "updated_at", "limit"),
    "summary": ("session_id", "title", "count", "created_at", "updated_at", "summary", "last"),
    "found": ("conversation", "where", "snippet"),
    "file": ("file_id", "name", "size", "media_type", "url", "path", "created_at"),
    "model": ("name", "title", "provider", "agents"),
    "scheduled_task": (
        "id", "user_id", "title", "prompt", "cron", "status", "since", "count", "next_at", "last_at", "session_id",
    ),
    "embedding_status": (),
    "health": ("status", "version", "at"),
    "metrics": ("metrics", "at"),
}
PREVIEW = 50
RUNNING = "running"


def wrapped(table: Table, data: Any) -> Any:
    """The wrapper; the keys of an object stand beside it as well, for readers that expect no wrapper."""
    return table.object("reply", data=data, flat=data if isinstance(data, dict) else None)


# -- conversations ----------------------------------------------------------------------------------------------------

def conversation(table: Table, view: SessionView, untitled: str) -> Any:
    return table.object(
        "conversation", session_id=view.session_id, title=view.title or untitled,
        user_id=user_of(view.owner, view.metadata), created_at=view.created_at, updated_at=view.updated_at,
        status=view.closed or "active", agent=view.agent, metadata=view.shown_metadata,
    )


# -- runs -------------------------------------------------------------------------------------------------------------

def run_entries(view: SessionView, run_id: str) -> list[Entry]:
    """What was said in a run, from the message that began it."""
    entries = [entry for entry in view.entries if entry.turn_id == run_id and entry.scope_id == ROOT]
    if not entries and view.turn_id != run_id:
        raise NotFound(f"there is no session '{run_id}'")
    return entries


def session_info(table: Table, view: SessionView, run_id: str) -> Any:
    entries = run_entries(view, run_id)
    said = [entry for entry in entries if entry.role is Role.ASSISTANT]
    first = entries[0] if entries else None
    return table.object(
        "session", run_id=run_id, active=view.turn_id == run_id, turns=len(said),
        status=run_status(table, view, run_id),
        message_count=sum(entry.role in (Role.USER, Role.ASSISTANT) for entry in view.entries),
        has_plan=any(_is_plan(part) for entry in said for part in parts_of(entry.content)),
        at=first.at if first else view.updated_at, user_id=user_of(view.owner, view.metadata),
        session_id=view.session_id, message_id=first.message_id if first else "",
        preview=text_of(first.content)[:PREVIEW] if first else "",
    )


def _is_plan(part: Any) -> bool:
    return isinstance(part, DataPart) and part.type.startswith("plan")


def run_outcome(view: SessionView, run_id: str) -> Outcome | None:
    """How a run ended; None if it has not."""
    if view.turn_id == run_id:
        return None
    end = run_end(view, run_id)
    return end.ended.outcome if end and end.ended else Outcome.COMPLETED


def run_end(view: SessionView, run_id: str) -> Checkpoint | None:
    return next((mark for mark in view.checkpoints if mark.turn_id == run_id), None)


def run_status(table: Table, view: SessionView, run_id: str) -> str:
    outcome = run_outcome(view, run_id)
    return RUNNING if outcome is None else table.word("outcome", outcome)


def run_result(table: Table, view: SessionView, run_id: str) -> Any:
    """What a client gets that does not listen while the run goes on."""
    entries = run_entries(view, run_id)
    said = [entry for entry in entries if entry.role is Role.ASSISTANT]
    usage = sum((entry.usage or Usage() for entry in said), Usage())
    latency = (view.at if view.turn_id == run_id else view.updated_at) - entries[0].at if entries else 0.0
    fault = view.ended.fault if view.ended and entries and view.entries[-1].turn_id == run_id else None
    return table.object(
        "run", run_id=run_id, session_id=view.session_id, message_id=said[0].message_id if said else None,
        message=text_of(entries[0].content) if entries else "", status=run_status(table, view, run_id),
        content="".join(text_of(entry.content) for entry in said),
        error=table.object("trouble", fault=fault, code=code_of(fault)) if fault else None,
        usage=bill(
            table, usage, llm_calls=len(said), model=(said[-1].model or "") if said else "", latency=latency,
        ),
        pending=[confirmation(table, ask, view.session_id) for ask in view.asks.values() if ask.turn_id == run_id],
    )


# -- the rest ---------------------------------------------------------------------------------------------------------

def models(table: Table, cards: Mapping[str, AgentCard], kind: str, provider: str) -> list[Any]:
    """The models that the agents say they use; an agent that names none stands for its own."""
    by_name: dict[str, list[AgentCard]] = {}
    for card in cards.values():
        by_name.setdefault(card.model or card.name, []).append(card)
    told = [
        table.object("model", name=name, title=using[0].title or name, provider="dragoman",
                     agents=[card.name for card in using])
        for name, using in by_name.items()
    ]
    return [one for one in told if kind in ("", one["type"]) and provider in ("", one["provider"])]


def file(table: Table, found: Resource, url: str) -> Any:
    return table.object(
        "file", file_id=found.resource_id, name=found.body["name"], size=found.body["size"], path=url,
        media_type=found.body["media_type"], url=url, created_at=found.created_at,
    )

