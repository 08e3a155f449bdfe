"""Threads of the CAS reference server: other agents at work in a session."""

from typing import Any

from conformance.faults.cas.journal import Journal
from conformance.faults.cas.state import Body, Session, mint, now


class Threads:
    """Opens threads, and changes their status."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def thread_of(self, event: Body, session: Session) -> str:
        return str(event.get("session_thread_id") or self.coordinator(session)["id"])

    def is_of(self, event: Body, session: Session, thread: str | None) -> bool:
        return thread is None or self.thread_of(event, session) == thread

    def coordinator(self, session: Session) -> Body:
        if not session.threads:
            self.open_thread(session, "", None, None)
        return next(iter(session.threads.values()))

    def open_thread(self, session: Session, name: str, parent: str | None, cause: str | None) -> Body:
        agent, at = session.view["agent"], now()
        thread = {
            "id": mint("sthr"),
            "type": "session_thread",
            "session_id": session.view["id"],
            "parent_thread_id": parent,
            "agent": {name: agent[name] for name in ("id", "type", "name", "model", "version")},
            "agent_id": agent["id"],
            "agent_version": agent["version"],
            "name": name,
            "role": "child" if parent else "coordinator",
            "status": "idle",
            "stop_reason": {"type": "end_turn"},
            "created_by_tool_use_id": cause,
            "archived_at": None,
            "created_at": at,
            "updated_at": at,
        }
        session.threads[str(thread["id"])] = thread
        return thread

    def shown_thread(self, session: Session, thread: Body) -> Body:
        if thread["role"] == "child" or (session.view["status"] == "idle" and not session.is_waiting):
            return thread
        waiting = {"status": "idle", "stop_reason": {"type": "requires_action", "event_ids": list(session.pending)}}
        return thread | (waiting if session.is_waiting else {"status": "running", "stop_reason": {}})

    def move(self, session: Session, thread: Body, status: str, reason: Body, shown: str | None = None) -> None:
        """Change the status of a thread, and send an event about it."""
        thread |= {"status": shown or status, "stop_reason": reason, "updated_at": now()}
        members: dict[str, Any] = {"agent_name": thread["name"]} if status == "running" else {"stop_reason": reason}
        self.emit_of(session, thread, f"session.thread_status_{status}", status=thread["status"], **members)

    def emit_of(self, session: Session, thread: Body, kind: str, **members: Any) -> Body:
        return self.journal.emit(session, kind, session_thread_id=thread["id"], **members)

    def announce(self, session: Session, child: Body) -> None:
        members = {name: child[name] for name in ("parent_thread_id", "agent_id", "agent_version", "role")}
        members |= {"agent_name": child["name"], "created_by_tool_use_id": child["created_by_tool_use_id"]}
        self.emit_of(session, child, "session.thread_created", **members)
