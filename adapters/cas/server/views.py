"""The bodies of CAS's sessions and threads, as the table spells them."""

from collections.abc import Mapping, Sequence
from typing import Any

import gateway.model as m
from adapters.cas.asks import ask_event_id
from adapters.cas.bodies import ArchiveStop, AskStop, SessionBody, ThreadBody, TurnStop
from adapters.cas.wire import DEFAULT_ENVIRONMENT, NOTES_STORE
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable

from .stream_options import thread_id_of

DIALECT_NAME = "cas"


# -- sessions ---------------------------------------------------------------------------------------------------------

def session_body(
    table: DialectTable, view: m.SessionView, agent: Mapping[str, Any], resources: Sequence[JsonValue],
) -> JsonObject:
    own = view.private(DIALECT_NAME)
    return table.object(SessionBody.row, SessionBody(
        session_id=view.session_id,
        agent=agent,
        agent_id=agent.get("id", ""),
        environment_id=own.get("environment_id") or DEFAULT_ENVIRONMENT,
        status=session_status(table, view),
        turn_status=turn_status(view),
        title=view.title or "",
        metadata=view.shown_metadata,
        resources=list(resources),
        vault_ids=own.get("vault_ids", []),
        memory_store_ids=_memory_stores(own.get("memory_store_ids", []), view.settings),
        environment_variables=own.get(m.SECRETS, {}),
        usage=view.usage,
        created_at=view.created_at,
        updated_at=view.updated_at,
        archived_at=archived_at(view),
        active_seconds=active_seconds(view),
        duration_seconds=round(view.at - view.created_at, 3),
    ))


def _memory_stores(named: Sequence[str], settings: m.Settings) -> list[str]:
    """The stores of a session; one that uses the memories of its user has their store, whoever switched that on."""
    return [*(one for one in named if one != NOTES_STORE), *([NOTES_STORE] if settings.memory else [])]


def session_status(table: DialectTable, view: m.SessionView) -> str:
    """The status of a session; an archived session is idle, and one that the server ended is `terminated`."""
    if view.closed is m.CloseReason.ARCHIVED:
        return table.word("session_status", m.SessionStatus.IDLE)
    return table.word("session_status", view.status)


def turn_status(view: m.SessionView) -> str:
    """The status of a session's turn; a turn that waits for people is not running."""
    return "running" if view.status is m.SessionStatus.RUNNING else "idle"


def archived_at(view: m.SessionView) -> float | None:
    return view.closed_at if view.closed is m.CloseReason.ARCHIVED else None


def active_seconds(view: m.SessionView) -> float:
    since = view.running_since
    return round(view.active_seconds + (view.at - since if since is not None else 0.0), 3)


# -- threads ----------------------------------------------------------------------------------------------------------

def thread_body(
    table: DialectTable, view: m.SessionView, agent: Mapping[str, JsonValue], scope_id: str = m.ROOT,
) -> JsonObject:
    scope = view.scopes.get(scope_id)
    names: JsonObject = {
        "id": thread_id_of(view.session_id, scope_id), "session_id": view.session_id,
        "agent_id": agent.get("id", ""), "agent_name": agent.get("name", view.agent), "model": agent.get("model"),
        "agent_version": agent.get("version", 1),
    }
    own = _coordinator(table, view) if scope is None else _child(table, view, scope)
    return table.object(ThreadBody.row, ThreadBody(**names | own))


def _coordinator(table: DialectTable, view: m.SessionView) -> JsonObject:
    closed = {m.CloseReason.ARCHIVED: "archived", m.CloseReason.TERMINATED: "terminated"}
    return {
        "parent_id": None, "name": "", "role": "coordinator", "caused_by": None, "created_at": view.created_at,
        "updated_at": view.updated_at, "archived_at": archived_at(view),
        "status": closed.get(view.closed) if view.closed else turn_status(view),
        "stop_reason": _stop_of_session(table, view),
    }


def _stop_of_session(table: DialectTable, view: m.SessionView) -> JsonValue:
    if view.closed is m.CloseReason.ARCHIVED:
        return table.object(ArchiveStop.row, ArchiveStop())
    if view.status is m.SessionStatus.SUSPENDED:
        asked = [ask_event_id(view, ask) for ask in view.asks.values()]
        return table.object(AskStop.row, AskStop(event_ids=asked))
    return (
        {} if view.status is m.SessionStatus.RUNNING else _stop(table, view.ended.stop_reason if view.ended else None)
    )


def _stop(table: DialectTable, why: m.StopReason | None) -> JsonValue:
    return table.object(TurnStop.row, TurnStop(why=why or m.StopReason.END_TURN))


def _child(table: DialectTable, view: m.SessionView, scope: m.ScopeView) -> dict[str, object]:
    own = {} if scope.agent in (None, view.agent) else {
        "agent_id": f"agent_{scope.agent}", "agent_name": scope.agent, "agent_version": 1,
    }
    return own | {
        "parent_id": thread_id_of(view.session_id, scope.parent), "name": scope.title or scope.agent or "",
        "role": scope.role, "status": table.word("scope_status", scope.status),
        "stop_reason": _stop_of_scope(table, view, scope), "created_at": scope.created_at,
        "updated_at": scope.updated_at, "archived_at": scope.archived_at,
        "caused_by": None if scope.cause is None else m.event_id_of(view.session_id, scope.cause),
    }


def _stop_of_scope(table: DialectTable, view: m.SessionView, scope: m.ScopeView) -> JsonValue:
    if scope.status is m.ScopeStatus.BLOCKED:
        asked = [ask_event_id(view, ask) for ask in view.asks.values() if ask.scope_id == scope.scope_id]
        return table.object(AskStop.row, AskStop(event_ids=asked))
    if scope.status is m.ScopeStatus.ARCHIVED:
        return table.object(ArchiveStop.row, ArchiveStop())
    return {} if scope.status is m.ScopeStatus.RUNNING else _stop(table, scope.stop_reason)
