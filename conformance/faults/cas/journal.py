"""The journal of a session on the CAS reference server: events are written here, and streams read them."""

from typing import Any

from conformance.faults.cas.state import Body, Item, Session, mint, now

USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


class Journal:
    """Writes stored events, and pieces of the events that are still to come."""

    def event(self, session: Session, kind: str, **members: Any) -> Body:
        """A new event of the session."""
        at = now()
        about: Body = {"id": mint("evt"), "type": kind, "session_id": session.view["id"]}
        if kind.startswith("user."):
            about["schema_version"] = "1.0"
        if session.turn_id is not None:
            about["turn_id"] = session.turn_id
        return about | {"created_at": at, "processed_at": at} | members

    def emit(self, session: Session, kind: str, **members: Any) -> Body:
        event = self.event(session, kind, **members)
        self.store(session, event)
        return event

    def store(self, session: Session, event: Body) -> None:
        session.add(Item(event))

    def idle(self, session: Session, reason: Body) -> Body:
        return self.event(session, "session.status_idle", status="idle", stop_reason=reason, usage=dict(USAGE))

    def open_span(self, session: Session) -> None:
        if session.span_id is None:
            session.span_id = self.emit(session, "span.model_request_start", model="reference")["id"]

    def close_span(self, session: Session, is_error: bool = False) -> None:
        if session.span_id is not None:
            members = {"model_request_start_id": session.span_id, "is_error": is_error}
            session.span_id = None
            self.emit(session, "span.model_request_end", **members, model_usage=dict(USAGE), usage=dict(USAGE))

    def spoken(self, session: Session, kind: str, text: str, **about: Any) -> Body:
        if kind == "thinking":
            return self.event(session, "agent.thinking", thinking=text, **about)
        return self.event(session, "agent.message", content=[{"type": "text", "text": text}], **about)

    def begin(self, session: Session, final: Body) -> None:
        about = {"id": final["id"], "type": final["type"]}
        self.offer(session, "deltas", final, {"type": "event_start", "event": about})
        if final["type"] == "agent.message":
            self.raw(session, final, "agent.message_start", message={"role": "assistant", "content": []})
            self.raw(session, final, "agent.content_block_start", index=0, content_block={"type": "text", "text": ""})

    def piece(self, session: Session, final: Body, kind: str, text: str) -> None:
        delta = {"type": "content_delta", "index": 0, "content": {"type": "text", "text": text}}
        self.offer(session, "deltas", final, {"type": "event_delta", "event_id": final["id"], "delta": delta})
        if kind == "text":
            self.raw(session, final, "agent.content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def end(self, session: Session, final: Body) -> None:
        if final["type"] == "agent.message":
            self.raw(session, final, "agent.content_block_stop", index=0)
            self.raw(session, final, "agent.message_delta", delta={"stop_reason": "end_turn"}, usage=dict(USAGE))
            self.raw(session, final, "agent.message_stop")

    def raw(self, session: Session, final: Body, kind: str, **members: Any) -> None:
        if session.is_incremental:
            self.offer(session, "raw", final, {"type": kind, **members})

    def offer(self, session: Session, form: str, final: Body, body: Body) -> None:
        session.add(Item(body, form, final["id"]))
