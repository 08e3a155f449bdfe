"""Plays actions as a ZenFlux run: its events in their order, each in its envelope, to wherever the client listens."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import uuid4

from conformance.clients.agent_actions import (
    Action,
    Asked,
    Call,
    Cut,
    End,
    Everything,
    Heartbeat,
    Say,
    Think,
    Unknown,
    Wait,
)
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.situation import SERVER_TOOL
from conformance.clients.zenflux.sinks import WRITER, Sink
from conformance.faults.zenflux.player import Player as RunPlayer
from conformance.faults.zenflux.player import RunEvent
from conformance.faults.zenflux.state import Body, Request, Session, Stopped, event_time, object_time

OPTIONS = ["red", "green"]
STATES = [{"id": "state-1", "label": "before the last step"}, {"id": "state-2", "label": "before the task"}]
NOTES: tuple[tuple[str, Any], ...] = (
    ("preface", "Let us see."),
    ("intent", {"intent": "greeting"}),
    ("billing", {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    ("search", "a result"),
    ("knowledge", "a fact"),
    ("recommended", {"questions": ["What else?"]}),
)


class Player:
    """Plays the replies of a situation."""

    def __init__(self, reply_queue: ReplyQueue) -> None:
        self._reply_queue, self._events = reply_queue, RunPlayer()

    async def play(self, session: Session, actions: Sequence[Action], sink: Sink) -> None:
        """A whole run, from session_start to session_end."""
        with self._reply_queue.playing() as traffic:
            end = End()
            try:
                for event in self._opened(session):
                    await self._send(session, event, sink)
                for action in actions:
                    end = action if isinstance(action, End) else end
                    async for event in self._make(session, action, sink):
                        await self._send(session, event, sink)
            except Stopped:
                traffic.mark("stopped")
                end = End("cancelled")
            traffic.mark("ended")
            for event in self._closed(session, end.reason or "completed"):
                await self._send(session, event, sink)

    async def _send(self, session: Session, event: RunEvent, sink: Sink) -> None:
        await sink.send(WRITER.envelope(session, event))

    def _opened(self, session: Session) -> Iterator[RunEvent]:
        talk = session.conversation
        start = {"session_id": session.id, "user_id": session.user_id, "conversation_id": talk.id}
        yield RunEvent("session_start", start | {"message_id": session.message_id, "timestamp": event_time()})
        about = {"conversation_id": talk.id, "title": talk.title, "metadata": talk.metadata}
        yield RunEvent("conversation_start", about | {"created_at": talk.created_at, "updated_at": talk.updated_at})
        yield self._events.opened(session)

    def _closed(self, session: Session, reason: str) -> Iterator[RunEvent]:
        status = {"completed": "completed", "cancelled": "cancelled"}.get(reason, "failed")
        self._events.finish(session, status)
        if reason in ("completed", "failed"):
            yield from self._events.closed(session, "end_turn")
        if reason == "error":
            error = {"type": "overloaded_error", "message": "The service is overloaded."}
            yield RunEvent("error", {"error": error})
        if reason in ("timeout", "cancelled"):
            why = "user_requested" if reason == "cancelled" else reason
            yield RunEvent("session_stopped", {"session_id": session.id, "reason": why, "stopped_at": event_time()})
        yield self._events.end(session, status)

    async def _make(self, session: Session, action: Action, sink: Sink) -> AsyncIterator[RunEvent]:
        match action:
            case Say(pieces) | Think(pieces):
                kind = "text" if isinstance(action, Say) else "thinking"
                kept = {"type": kind, kind: action.text}
                async for event in self._events.block(session, {"type": kind, kind: ""}, pieces, kept):
                    yield event
            case Unknown():
                yield RunEvent("x_examiners", {"what": ["an event", {"that": "ZenFlux does not have"}]})
            case Heartbeat():
                await sink.beat()
            case Wait(seconds):
                await session.pause(seconds)
            case Cut(is_within):
                part = WRITER.envelope(session, self._part(session)) if is_within else None
                await sink.cut(part)
                self._reply_queue.traffic.note_cut(str(session.seq))
            case Everything():
                async for event in self._everything(session):
                    yield event
            case Call(asked):
                async for event in self._ask(session, asked[0]):
                    yield event
            case End():
                return

    def _part(self, session: Session) -> RunEvent:
        return RunEvent("content_delta", {"index": session.index, "delta": "words that get lost in the middle"})

    async def _everything(self, session: Session) -> AsyncIterator[RunEvent]:
        """Every kind of note, of change, of block, and the events that ask for nothing."""
        for topic, content in NOTES:
            yield self._events.note(topic, content)
        compressed = {"summary": "a summary", "trimmed_count": 5}
        for fields in ({"title": "Title"}, {"metadata": {"tags": ["x"]}}, {"compressed": compressed}):
            yield self._events.change(session, dict(fields))
        for kind in ("tool_use", "server_tool_use"):
            async for event in self._tool(session, kind):
                yield event
        yield RunEvent("rollback_completed", {})
        about = {"conversation_id": session.conversation.id, "final_status": "completed", "summary": {}}
        yield RunEvent("conversation_stop", about)

    async def _tool(self, session: Session, kind: str) -> AsyncIterator[RunEvent]:
        call: Body = {"type": kind, "id": f"toolu_{uuid4().hex}", "name": SERVER_TOOL, "input": {}}
        given = {"expression": "19 + 23"}
        pieces = ('{"expression": ', '"19 + 23"}')
        async for event in self._events.block(session, call, pieces, call | {"input": given}):
            yield event
        result: Body = {"type": "tool_result", "tool_use_id": call["id"], "content": "", "is_error": False}
        async for event in self._events.block(session, result, ("42",), result | {"content": "42"}):
            yield event

    # -- asks ----------------------------------------------------------------------------------------------------------

    async def _ask(self, session: Session, asked: Asked) -> AsyncIterator[RunEvent]:
        traffic = self._reply_queue.traffic
        if asked is Asked.CONTINUATION:
            traffic.note_ask(session.id, asked, session.id)
            yield RunEvent("long_running_confirm", {"turn": 15, "message": "It takes long. Go on?"})
            await session.wait("continue")
        elif asked is Asked.ROLLBACK:
            traffic.note_ask(session.id, asked, session.id)
            about = {"task_id": session.id, "options": STATES, "error": "It broke.", "reason": "Repair."}
            yield RunEvent("rollback_options", about)
            await session.wait("rollback")
            yield RunEvent("rollback_completed", {})
        else:
            async for event in self._confirmation(session, asked):
                yield event

    async def _confirmation(self, session: Session, asked: Asked) -> AsyncIterator[RunEvent]:
        is_question = asked is Asked.QUESTION
        call: Body = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": SERVER_TOOL, "input": {}}
        if not is_question:
            async for event in self._events.block(session, call, ("{}",), call):
                yield event
        words = "Which colour?" if is_question else f"May I use {SERVER_TOOL}?"
        about: Body = {
            "request_id": f"req-{uuid4().hex}", "session_id": session.id, "description": words, "question": words,
            "tool_name": "ask_user" if is_question else SERVER_TOOL, "timeout": 300, "metadata": {},
            "options": OPTIONS if is_question else ["approve", "reject"], "created_at": object_time(),
            "confirmation_type": "single_choice" if is_question else "yes_no",
        }  # fmt: skip
        session.request = Request(about, asyncio.get_running_loop().create_future())
        self._reply_queue.traffic.note_ask(about["request_id"], asked, session.id)
        yield self._events.note("confirmation_request", about)
        await session.either(asyncio.shield(session.request.answer))
