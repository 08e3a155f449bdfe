"""Plays the agent's script as CAS events: speaks, calls tools, waits for answers, and always ends in idle."""

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.faults.cas.agents import Agents
from conformance.faults.cas.journal import Journal
from conformance.faults.cas.state import Body, Session, now
from conformance.faults.cas.threads import Threads
from conformance.faults.script import Break, Call, Fork, Move, Speak, Stop, words

PACE = 0.02
EVALUATED = {"always_allow": "allow", "always_ask": "ask", "always_deny": "deny"}


class Broken(Exception):
    """The agent fails."""


class Player:
    """Plays turns, event by event."""

    child_name = "researcher"

    def __init__(self, agents: Agents, journal: Journal, threads: Threads) -> None:
        self.agents = agents
        self.journal = journal
        self.threads = threads

    async def play(self, session: Session, moves: Sequence[Move]) -> None:
        """A whole turn."""
        try:
            self.go(session)
            reason = await self.perform(session, moves)
        except asyncio.CancelledError:
            self.finish(session, {"type": "cancelled"})
        except Broken:
            self.journal.emit(session, "session.error", error=self.error())
            self.finish(session, {"type": "error"})
        else:
            self.finish(session, {"type": reason})

    def error(self) -> Body:
        return {"type": "model_error", "message": "The agent broke.", "retry_status": {"type": "exhausted"}}

    def go(self, session: Session) -> None:
        session.is_waiting = False
        session.show(status="running", turn_status="running")
        self.journal.emit(session, "session.status_running", status="running")

    def finish(self, session: Session, reason: Body) -> None:
        """The turn ends, and with it the threads that were still at work."""
        for thread in session.threads.values():
            if thread["role"] == "child" and thread["stop_reason"].get("type") in (None, "requires_action"):
                self.threads.move(session, thread, "idle", reason)
        self.threads.coordinator(session)["stop_reason"] = reason
        session.pending.clear()
        session.is_waiting = False
        self.journal.close_span(session)
        session.show(status="idle", turn_status="idle")
        idle = self.journal.idle(session, reason)
        session.turn_id = None
        self.journal.store(session, idle)

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
                    self.journal.close_span(session, is_error=True)
                    raise Broken
                case Stop(reason):
                    return reason
        return "end_turn"

    async def speak(self, session: Session, move: Speak, is_broken: bool = False, **about: Any) -> None:
        """Say or think something: pieces for those who asked for them, then the whole."""
        self.journal.open_span(session)
        final = self.journal.spoken(session, move.kind, "".join(move.pieces), **about)
        self.journal.begin(session, final)
        for piece in move.pieces:
            await asyncio.sleep(PACE if move.pause else 0)
            self.journal.piece(session, final, move.kind, piece)
        if not is_broken:
            self.journal.end(session, final)
            self.journal.store(session, final | {"created_at": now(), "processed_at": now()})

    async def call(self, session: Session, tools: Sequence[tuple[str | None, Body]], **about: Any) -> None:
        """Call the tools there are, all at once, and wait for the client where it must answer."""
        self.journal.open_span(session)
        calls = [event for name, given in tools if (event := self.called(session, name, given, **about))]
        if not calls:
            await self.speak(session, Speak("text", words("I have no such tool.")), **about)
        self.journal.close_span(session)
        for event in calls:
            if event.get("evaluated_permission") in ("allow", "deny"):
                self.settle(session, event, is_allowed=event["evaluated_permission"] == "allow")
        if session.pending:
            await self.wait(session)

    def called(self, session: Session, name: str | None, given: Body, **about: Any) -> Body | None:
        policies, custom = self.agents.policies(session.view["agent"]), self.agents.custom_tools(session.view["agent"])
        if name in policies:
            about["evaluated_permission"] = EVALUATED[policies[name]]
            event = self.journal.emit(session, "agent.tool_use", name=name, input=given, **about)
        elif name is None and custom:
            event = self.journal.emit(session, "agent.custom_tool_use", name=custom[0], input=given, **about)
        else:
            return None
        if event.get("evaluated_permission", "ask") == "ask":
            session.pending[event["id"]] = event
        return event

    def settle(self, session: Session, call: Body, is_allowed: bool, words: str = "") -> None:
        """The result of a server tool, or that it was not run."""
        text = f"{call['name']} says {sorted(map(str, call['input'].values()))}" if is_allowed else f"Denied. {words}"
        about = {"session_thread_id": call["session_thread_id"]} if "session_thread_id" in call else {}
        about |= {"content": [{"type": "text", "text": text}], "is_error": not is_allowed}
        self.journal.emit(session, "agent.tool_result", tool_use_id=call["id"], **about)

    async def wait(self, session: Session) -> None:
        """Idle until every pending call is answered; then go on in the same turn."""
        session.answers.clear()
        session.answered.clear()
        session.is_waiting = True
        session.show(status="idle", turn_status="idle")
        reason = {"type": "requires_action", "event_ids": list(session.pending)}
        self.journal.store(session, self.journal.idle(session, reason))
        await session.answered.wait()
        pending = dict(session.pending)
        session.pending.clear()
        self.go(session)
        for name, call in pending.items():
            answer = session.answers.get(name, {})
            if answer.get("type") == "user.tool_confirmation":
                self.settle(session, call, answer.get("result") == "allow", answer.get("deny_message") or "")

    async def fork(self, session: Session, asking: bool) -> None:
        self.journal.open_span(session)
        given = {"agent_name": self.child_name, "message": "Look it up."}
        use = {"name": "create_agent", "input": given, "evaluated_permission": "allow"}
        call = self.journal.emit(session, "agent.tool_use", **use)
        self.journal.close_span(session)
        parent = self.threads.coordinator(session)["id"]
        child = self.threads.open_thread(session, self.child_name, parent, call["id"])
        self.threads.announce(session, child)
        ends = {"from_session_thread_id": parent, "to_session_thread_id": child["id"]}
        sent = {"direction": "coordinator_to_child", "content": [{"type": "text", "text": "Look it up."}]}
        self.threads.emit_of(session, child, "agent.thread_message_sent", **sent, **ends)
        self.threads.move(session, child, "running", {})
        if asking:
            await self.ask_from(session, child)
        await self.speak(session, Speak("text", words("It is found.")), session_thread_id=child["id"])
        self.journal.close_span(session)
        self.threads.move(session, child, "idle", {"type": "end_turn"})
        ends = {"from_session_thread_id": child["id"], "to_session_thread_id": parent}
        received = {"direction": "child_to_parent", "content": [{"type": "text", "text": "It is found."}]}
        self.threads.emit_of(session, child, "agent.thread_message_received", **received, is_error=False, **ends)
        self.settle(session, call, is_allowed=True)

    async def ask_from(self, session: Session, child: Body) -> None:
        """The child must ask before it goes on."""
        members = {"name": "calc", "input": {"expression": "1 + 1"}, "evaluated_permission": "ask"}
        call = self.threads.emit_of(session, child, "agent.tool_use", **members)
        session.pending[call["id"]] = call
        self.threads.move(session, child, "idle", {"type": "requires_action", "event_ids": [call["id"]]})
        await self.wait(session)
        self.threads.move(session, child, "running", {})
