"""Plays the agent's script as CAS events: speaks, calls tools, waits for answers, and always ends in idle."""

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.faults.cas.memory import Body, Item, Talk, mint, now
from conformance.faults.cas.sessions import Sessions
from conformance.faults.script import Break, Call, Fork, Move, Speak, Stop, words

USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
PACE = 0.02
EVALUATED = {"always_allow": "allow", "always_ask": "ask", "always_deny": "deny"}


class Broken(Exception):
    """The agent fails."""


class Player(Sessions):
    """One turn after the other, event by event."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        """A new event of the session."""
        at = now()
        about: Body = {"id": mint("evt"), "type": kind, "session_id": talk.view["id"]}
        if kind.startswith("user."):
            about["schema_version"] = "1.0"
        if talk.turn_id is not None:
            about["turn_id"] = talk.turn_id
        return about | {"created_at": at, "processed_at": at} | told

    def emit(self, talk: Talk, kind: str, **told: Any) -> Body:
        event = self.event(talk, kind, **told)
        self.store(talk, event)
        return event

    def store(self, talk: Talk, event: Body) -> None:
        talk.add(Item(event))

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def play(self, talk: Talk, moves: Sequence[Move]) -> None:
        """A whole turn."""
        try:
            self.go(talk)
            reason = await self.perform(talk, moves)
        except asyncio.CancelledError:
            self.finish(talk, {"type": "cancelled"})
        except Broken:
            self.emit(talk, "session.error", error=self.error())
            self.finish(talk, {"type": "error"})
        else:
            self.finish(talk, {"type": reason})

    def error(self) -> Body:
        return {"type": "model_error", "message": "The agent broke.", "retry_status": {"type": "exhausted"}}

    def go(self, talk: Talk) -> None:
        talk.is_waiting = False
        talk.show(status="running", turn_status="running")
        self.emit(talk, "session.status_running", status="running")

    def finish(self, talk: Talk, reason: Body) -> None:
        talk.pending.clear()
        talk.is_waiting = False
        self.close_span(talk)
        talk.show(status="idle", turn_status="idle")
        idle = self.idle(talk, reason)
        talk.turn_id = None
        self.store(talk, idle)

    def idle(self, talk: Talk, reason: Body) -> Body:
        return self.event(talk, "session.status_idle", status="idle", stop_reason=reason, usage=dict(USAGE))

    async def perform(self, talk: Talk, moves: Sequence[Move]) -> str:
        """Make the moves; the reason why they end."""
        for place, move in enumerate(moves):
            match move:
                case Speak():
                    await self.speak(talk, move, is_broken=isinstance(moves[place + 1], Break))
                case Call(tools):
                    await self.call(talk, tools)
                case Fork(asking):
                    await self.fork(talk, asking)
                case Break():
                    self.close_span(talk, is_error=True)
                    raise Broken
                case Stop(reason):
                    return reason
        return "end_turn"

    async def fork(self, talk: Talk, asking: bool) -> None:
        raise NotImplementedError

    def open_span(self, talk: Talk) -> None:
        if talk.span_id is None:
            talk.span_id = self.emit(talk, "span.model_request_start", model="reference")["id"]

    def close_span(self, talk: Talk, is_error: bool = False) -> None:
        if talk.span_id is not None:
            told = {"model_request_start_id": talk.span_id, "is_error": is_error}
            talk.span_id = None
            self.emit(talk, "span.model_request_end", **told, model_usage=dict(USAGE), usage=dict(USAGE))

    # -- speaking ------------------------------------------------------------------------------------------------------

    async def speak(self, talk: Talk, move: Speak, is_broken: bool = False, **about: Any) -> None:
        """Say or think something: pieces for those who asked for them, then the whole."""
        self.open_span(talk)
        final = self.spoken(talk, move.kind, "".join(move.pieces), **about)
        self.begin(talk, final)
        for piece in move.pieces:
            await asyncio.sleep(PACE if move.pause else 0)
            self.piece(talk, final, move.kind, piece)
        if not is_broken:
            self.end(talk, final)
            self.store(talk, final | {"created_at": now(), "processed_at": now()})

    def spoken(self, talk: Talk, kind: str, text: str, **about: Any) -> Body:
        if kind == "thinking":
            return self.event(talk, "agent.thinking", thinking=text, **about)
        return self.event(talk, "agent.message", content=[{"type": "text", "text": text}], **about)

    def begin(self, talk: Talk, final: Body) -> None:
        self.offer(talk, "deltas", final, {"type": "event_start", "event": {"id": final["id"], "type": final["type"]}})
        if final["type"] == "agent.message":
            self.raw(talk, final, "agent.message_start", message={"role": "assistant", "content": []})
            self.raw(talk, final, "agent.content_block_start", index=0, content_block={"type": "text", "text": ""})

    def piece(self, talk: Talk, final: Body, kind: str, text: str) -> None:
        delta = {"type": "content_delta", "index": 0, "content": {"type": "text", "text": text}}
        self.offer(talk, "deltas", final, {"type": "event_delta", "event_id": final["id"], "delta": delta})
        if kind == "text":
            self.raw(talk, final, "agent.content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def end(self, talk: Talk, final: Body) -> None:
        if final["type"] == "agent.message":
            self.raw(talk, final, "agent.content_block_stop", index=0)
            self.raw(talk, final, "agent.message_delta", delta={"stop_reason": "end_turn"}, usage=dict(USAGE))
            self.raw(talk, final, "agent.message_stop")

    def raw(self, talk: Talk, final: Body, kind: str, **told: Any) -> None:
        if talk.is_incremental:
            self.offer(talk, "raw", final, {"type": kind, **told})

    def offer(self, talk: Talk, form: str, final: Body, body: Body) -> None:
        talk.add(Item(body, form, final["id"]))

    # -- tools ---------------------------------------------------------------------------------------------------------

    async def call(self, talk: Talk, tools: Sequence[tuple[str | None, Body]], **about: Any) -> None:
        """Call the tools there are, all at once, and wait for the client where it must answer."""
        self.open_span(talk)
        calls = [event for name, given in tools if (event := self.called(talk, name, given, **about))]
        if not calls:
            await self.speak(talk, Speak("text", words("I have no such tool.")), **about)
        self.close_span(talk)
        for event in calls:
            if event.get("evaluated_permission") in ("allow", "deny"):
                self.settle(talk, event, is_allowed=event["evaluated_permission"] == "allow")
        if talk.pending:
            await self.wait(talk)

    def called(self, talk: Talk, name: str | None, given: Body, **about: Any) -> Body | None:
        policies, custom = self.policies(talk.view["agent"]), self.custom_tools(talk.view["agent"])
        if name in policies:
            permission = EVALUATED[policies[name]]
            event = self.emit(talk, "agent.tool_use", name=name, input=given, evaluated_permission=permission, **about)
        elif name is None and custom:
            event = self.emit(talk, "agent.custom_tool_use", name=custom[0], input=given, **about)
        else:
            return None
        if event.get("evaluated_permission", "ask") == "ask":
            talk.pending[event["id"]] = event
        return event

    def settle(self, talk: Talk, call: Body, is_allowed: bool, words: str = "") -> None:
        """The result of a server tool, or the news that it was not run."""
        text = f"{call['name']} says {sorted(map(str, call['input'].values()))}" if is_allowed else f"Denied. {words}"
        about = {"session_thread_id": call["session_thread_id"]} if "session_thread_id" in call else {}
        content = [{"type": "text", "text": text}]
        self.emit(talk, "agent.tool_result", tool_use_id=call["id"], content=content, is_error=not is_allowed, **about)

    async def wait(self, talk: Talk) -> None:
        """Idle until every pending call is answered; then go on in the same turn."""
        talk.answers.clear()
        talk.answered.clear()
        talk.is_waiting = True
        talk.show(status="idle", turn_status="idle")
        self.store(talk, self.idle(talk, {"type": "requires_action", "event_ids": list(talk.pending)}))
        await talk.answered.wait()
        pending = dict(talk.pending)
        talk.pending.clear()
        self.go(talk)
        for name, call in pending.items():
            answer = talk.answers[name]
            if answer["type"] == "user.tool_confirmation":
                self.settle(talk, call, answer["result"] == "allow", answer.get("deny_message") or "")
