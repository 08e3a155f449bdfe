"""Plays the agent's script as CAS events: speaks, calls tools, waits for answers, and always ends in idle."""

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.faults.cas.sessions import Sessions
from conformance.faults.cas.state import Body, Item, Session, mint, now
from conformance.faults.script import Break, Call, Fork, Move, Speak, Stop, words

USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
PACE = 0.02
EVALUATED = {"always_allow": "allow", "always_ask": "ask", "always_deny": "deny"}


class Broken(Exception):
    """The agent fails."""


class Player(Sessions):
    """One turn after the other, event by event."""

    def event(self, session: Session, kind: str, **told: Any) -> Body:
        """A new event of the session."""
        at = now()
        about: Body = {"id": mint("evt"), "type": kind, "session_id": session.view["id"]}
        if kind.startswith("user."):
            about["schema_version"] = "1.0"
        if session.turn_id is not None:
            about["turn_id"] = session.turn_id
        return about | {"created_at": at, "processed_at": at} | told

    def emit(self, session: Session, kind: str, **told: Any) -> Body:
        event = self.event(session, kind, **told)
        self.store(session, event)
        return event

    def store(self, session: Session, event: Body) -> None:
        session.add(Item(event))

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def play(self, session: Session, moves: Sequence[Move]) -> None:
        """A whole turn."""
        try:
            self.go(session)
            reason = await self.perform(session, moves)
        except asyncio.CancelledError:
            self.finish(session, {"type": "cancelled"})
        except Broken:
            self.emit(session, "session.error", error=self.error())
            self.finish(session, {"type": "error"})
        else:
            self.finish(session, {"type": reason})

    def error(self) -> Body:
        return {"type": "model_error", "message": "The agent broke.", "retry_status": {"type": "exhausted"}}

    def go(self, session: Session) -> None:
        session.is_waiting = False
        session.show(status="running", turn_status="running")
        self.emit(session, "session.status_running", status="running")

    def finish(self, session: Session, reason: Body) -> None:
        session.pending.clear()
        session.is_waiting = False
        self.close_span(session)
        session.show(status="idle", turn_status="idle")
        idle = self.idle(session, reason)
        session.turn_id = None
        self.store(session, idle)

    def idle(self, session: Session, reason: Body) -> Body:
        return self.event(session, "session.status_idle", status="idle", stop_reason=reason, usage=dict(USAGE))

    async def perform(self, session: Session, moves: Sequence[Move]) -> str:
        """Make the moves; the reason why they end."""
        for place, move in enumerate(moves):
            match move:
                case Speak():
                    await self.speak(session, move, is_broken=isinstance(moves[place + 1], Break))
                case Call(tools):
                    await self.call(session, tools)
                case Fork(asking):
                    await self.fork(session, asking)
                case Break():
                    self.close_span(session, is_error=True)
                    raise Broken
                case Stop(reason):
                    return reason
        return "end_turn"

    async def fork(self, session: Session, asking: bool) -> None:
        raise NotImplementedError

    def open_span(self, session: Session) -> None:
        if session.span_id is None:
            session.span_id = self.emit(session, "span.model_request_start", model="reference")["id"]

    def close_span(self, session: Session, is_error: bool = False) -> None:
        if session.span_id is not None:
            told = {"model_request_start_id": session.span_id, "is_error": is_error}
            session.span_id = None
            self.emit(session, "span.model_request_end", **told, model_usage=dict(USAGE), usage=dict(USAGE))

    # -- speaking ------------------------------------------------------------------------------------------------------

    async def speak(self, session: Session, move: Speak, is_broken: bool = False, **about: Any) -> None:
        """Say or think something: pieces for those who asked for them, then the whole."""
        self.open_span(session)
        final = self.spoken(session, move.kind, "".join(move.pieces), **about)
        self.begin(session, final)
        for piece in move.pieces:
            await asyncio.sleep(PACE if move.pause else 0)
            self.piece(session, final, move.kind, piece)
        if not is_broken:
            self.end(session, final)
            self.store(session, final | {"created_at": now(), "processed_at": now()})

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

    def raw(self, session: Session, final: Body, kind: str, **told: Any) -> None:
        if session.is_incremental:
            self.offer(session, "raw", final, {"type": kind, **told})

    def offer(self, session: Session, form: str, final: Body, body: Body) -> None:
        session.add(Item(body, form, final["id"]))

    # -- tools ---------------------------------------------------------------------------------------------------------

    async def call(self, session: Session, tools: Sequence[tuple[str | None, Body]], **about: Any) -> None:
        """Call the tools there are, all at once, and wait for the client where it must answer."""
        self.open_span(session)
        calls = [event for name, given in tools if (event := self.called(session, name, given, **about))]
        if not calls:
            await self.speak(session, Speak("text", words("I have no such tool.")), **about)
        self.close_span(session)
        for event in calls:
            if event.get("evaluated_permission") in ("allow", "deny"):
                self.settle(session, event, is_allowed=event["evaluated_permission"] == "allow")
        if session.pending:
            await self.wait(session)

    def called(self, session: Session, name: str | None, given: Body, **about: Any) -> Body | None:
        policies, custom = self.policies(session.view["agent"]), self.custom_tools(session.view["agent"])
        if name in policies:
            about["evaluated_permission"] = EVALUATED[policies[name]]
            event = self.emit(session, "agent.tool_use", name=name, input=given, **about)
        elif name is None and custom:
            event = self.emit(session, "agent.custom_tool_use", name=custom[0], input=given, **about)
        else:
            return None
        if event.get("evaluated_permission", "ask") == "ask":
            session.pending[event["id"]] = event
        return event

    def settle(self, session: Session, call: Body, is_allowed: bool, words: str = "") -> None:
        """The result of a server tool, or the news that it was not run."""
        text = f"{call['name']} says {sorted(map(str, call['input'].values()))}" if is_allowed else f"Denied. {words}"
        about = {"session_thread_id": call["session_thread_id"]} if "session_thread_id" in call else {}
        about |= {"content": [{"type": "text", "text": text}], "is_error": not is_allowed}
        self.emit(session, "agent.tool_result", tool_use_id=call["id"], **about)

    async def wait(self, session: Session) -> None:
        """Idle until every pending call is answered; then go on in the same turn."""
        session.answers.clear()
        session.answered.clear()
        session.is_waiting = True
        session.show(status="idle", turn_status="idle")
        self.store(session, self.idle(session, {"type": "requires_action", "event_ids": list(session.pending)}))
        await session.answered.wait()
        pending = dict(session.pending)
        session.pending.clear()
        self.go(session)
        for name, call in pending.items():
            answer = session.answers.get(name, {})
            if answer.get("type") == "user.tool_confirmation":
                self.settle(session, call, answer.get("result") == "allow", answer.get("deny_message") or "")
