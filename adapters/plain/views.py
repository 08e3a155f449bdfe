"""What the bodies of a plain dialect can show: sessions, messages and agents, by the names that tables use."""

from collections.abc import Iterable
from typing import Any

import gateway.model as m

Shown = dict[str, Any]


def session_names(view: m.SessionView, agents: Iterable[m.AgentCard]) -> Shown:
    """A session: `answers`, `text` and `stop_reason` are those of its last turn."""
    messages = [message_names(entry) for entry in view.entries if entry.scope_id == m.ROOT]
    answers = _last_answers(messages)
    return {
        "session_id": view.session_id, "agent": view.agent, "title": view.title, "status": view.status,
        "created_at": view.created_at, "updated_at": view.updated_at, "metadata": view.shown_metadata,
        "options": dict(view.settings.options), "client_tools": list(map(tool_names, view.settings.client_tools)),
        "permissions": permission_names(view.settings),
        "turn_id": view.turn_id, "messages": messages, "answers": answers,
        "text": "".join(answer["text"] for answer in answers if answer["role"] is m.Role.ASSISTANT),
        "stop_reason": _stop_reason(view), "agents": [agent_names(card) for card in agents],
    }


def message_names(entry: m.HistoryEntry) -> Shown:
    return {
        "role": entry.role, "content": entry.content, "text": m.text_of(entry.content), "at": entry.at,
        "message_id": entry.message_id, "turn_id": entry.turn_id, "call_id": entry.call_id,
        "is_error": entry.is_error, "model": entry.model,
    }


def agent_names(card: m.AgentCard) -> Shown:
    return {
        "name": card.name, "title": card.title, "description": card.description, "version": card.version,
        "model": card.model, "tools": [tool_names(tool.spec) for tool in card.tools],
    }


def permission_names(settings: m.Settings) -> list[Shown]:
    """The agent's tools that the session may use, and whether each needs to be permitted."""
    return [{"name": name, "permission": permission, "trust": permission is m.Permission.ALLOW}
            for name, permission in (settings.tools or {}).items() if permission is not m.Permission.DENY]


def tool_names(spec: m.ToolSpec) -> Shown:
    return {"name": spec.name, "title": spec.title, "description": spec.description,
            "parameters": spec.parameters or {"type": "object"}}


def _last_answers(messages: list[Shown]) -> list[Shown]:
    """What the agent and its tools have said since the last message of a person."""
    asked = max((place for place, message in enumerate(messages) if message["role"] is m.Role.USER), default=-1)
    return messages[asked + 1:]


def _stop_reason(view: m.SessionView) -> m.StopReason | None:
    if view.status is m.SessionStatus.SUSPENDED:
        return m.StopReason.NEEDS_INPUT
    return view.ended.stop_reason if view.ended is not None else None

