"""Plays the agent's moves as ZenFlux events, without envelope: what happens in a run, in its right order."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import uuid4

import orjson

from conformance.faults.script import Break, Speak
from conformance.faults.zenflux.script import PIXEL, Ask, Change, LongRun, Note, Rollback, Show, Use, moves
from conformance.faults.zenflux.state import Body, Request, Session, Stopped, event_time, object_time

IN_JSON = ("recommended", "confirmation_request")


@dataclass(frozen=True)
class RunEvent:
    """One event without its envelope."""

    type: str
    data: Body
    message: Body | None = None


class Broken(Exception):
    """The agent fails."""


RunEvents = AsyncIterator[RunEvent]


class Player:
    """Plays runs; every rule of their order and contents is a step that a fault can change."""

    async def play(self, session: Session) -> RunEvents:
        """A whole run."""
        talk = session.conversation
        start = {"session_id": session.id, "user_id": session.user_id, "conversation_id": talk.id}
        yield RunEvent("session_start", start | {"message_id": session.message_id, "timestamp": event_time()})
        about = {"conversation_id": talk.id, "title": talk.title, "metadata": talk.metadata}
        yield RunEvent("conversation_start", about | {"created_at": talk.created_at, "updated_at": talk.updated_at})
        status = "completed"
        try:
            async for event in self.perform(session):
                yield event
        except Stopped:
            status = "cancelled"
            for event in self.stopped(session):
                yield event
        except Broken:
            status = "failed"
            yield RunEvent("error", {"error": {"type": "internal_error", "message": "The agent broke."}})
        self.finish(session, status)
        yield self.end(session, status)

    def finish(self, session: Session, status: str) -> None:
        """The run is over before the client can know it."""
        session.is_over, session.request = True, None
        kept = "completed" if status == "completed" else "stopped" if status == "cancelled" else "failed"
        session.conversation.add("assistant", session.blocks, session.message_id, kept)

    def end(self, session: Session, status: str) -> RunEvent:
        duration = int((monotonic() - session.began) * 1000)
        return RunEvent("session_end", {"session_id": session.id, "status": status, "duration_ms": duration})

    def stopped(self, session: Session) -> Iterator[RunEvent]:
        if session.open_block is not None:
            yield RunEvent("content_stop", {"index": session.open_block})
        yield RunEvent("message_stop", {})
        about = {"session_id": session.id, "reason": "user_requested", "stopped_at": event_time()}
        yield RunEvent("session_stopped", about)

    async def perform(self, session: Session) -> RunEvents:
        yield self.opened(session)
        for move in moves(session.message):
            async for event in self.make(session, move):
                yield event
        for event in self.closed(session, "end_turn"):
            yield event

    def opened(self, session: Session) -> RunEvent:
        usage = {"input_tokens": 0, "output_tokens": 0}
        message: Body = {"id": session.message_id, "type": "message", "role": "assistant", "content": []}
        message |= {"usage": usage, "model": "reference", "stop_reason": None, "stop_sequence": None}
        data = {"message": message, "message_id": session.message_id, "session_id": session.id}
        return RunEvent("message_start", data | {"conversation_id": session.conversation.id}, message)

    def closed(self, session: Session, reason: str) -> Iterator[RunEvent]:
        yield self.note("usage", {"stop_reason": reason, "input_tokens": 3, "output_tokens": 5})
        yield RunEvent("message_stop", {})

    def note(self, topic: str, content: Any) -> RunEvent:
        """A message_delta, its content spelled as in the examples."""
        spelled = orjson.dumps(content).decode() if topic in IN_JSON else content
        delta = {"type": topic, "content": content}
        return RunEvent("message_delta", {"type": topic, "content": spelled, "delta": delta})

    async def make(self, session: Session, move: Any) -> RunEvents:
        match move:
            case Speak(kind, pieces, pause):
                block = {"type": kind, kind: "".join(pieces)} | ({"signature": ""} if kind == "thinking" else {})
                async for event in self.block(session, {"type": kind, kind: ""}, pieces, block, pause):
                    yield event
            case Break():
                raise Broken
            case Use():
                async for event in self.use(session, move):
                    yield event
            case Ask():
                async for event in self.ask(session, "ask_user", "What shall it be?", []):
                    yield event
            case LongRun():
                yield RunEvent("long_running_confirm", {"turn": 15, "message": "It takes long. Go on?"})
                await session.wait("continue")
            case Rollback():
                about = {"task_id": session.id, "options": ["all", "last"], "error": "It broke.", "reason": "Repair."}
                yield RunEvent("rollback_options", about)
                await session.wait("rollback")
                yield RunEvent("rollback_completed", {})
            case Note(topic, content):
                yield self.note(topic, content)
            case Change(fields):
                yield self.change(session, dict(fields))
            case Show():
                session.blocks.append({"type": "image", "source": PIXEL})

    def change(self, session: Session, fields: Body) -> RunEvent:
        session.conversation.title = fields.get("title", session.conversation.title)
        session.conversation.metadata |= fields.get("metadata", {})
        return RunEvent("conversation_delta", {"conversation_id": session.conversation.id, **fields})

    async def block(
        self, session: Session, start: Body, pieces: tuple[str, ...], kept: Body, pause: float = 0.0
    ) -> RunEvents:
        """A block from its start to its stop; without streaming its text comes in one piece."""
        index = session.open_block = session.index
        session.index += 1
        yield RunEvent("content_start", {"index": index, "content_block": start})
        for piece in pieces:
            if session.is_streamed:
                yield RunEvent("content_delta", {"index": index, "delta": piece})
            await session.pause(pause) if pause else await asyncio.sleep(0)
        if not session.is_streamed:
            yield RunEvent("content_delta", {"index": index, "delta": "".join(pieces)})
        session.blocks.append(kept)
        session.open_block = None
        yield RunEvent("content_stop", {"index": index})

    async def use(self, session: Session, move: Use) -> RunEvents:
        call = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": move.name, "input": {}}
        spelled = orjson.dumps(move.given).decode()
        pieces = (spelled[:7], spelled[7:])
        async for event in self.block(session, call, pieces, call | {"input": move.given}):
            yield event
        is_error = False
        if move.needs_permission:
            async for event in self.ask(session, move.name, f"May I use {move.name}?", ["approve", "reject"]):
                yield event
            is_error = self.is_denied(session)
        if session.has_rounds:
            for event in self.closed(session, "tool_use"):
                yield event
            session.message_id = f"msg-{uuid4().hex}"
            yield self.opened(session)
        words = "It was not allowed." if is_error else f"{move.name} says ok"
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "", "is_error": is_error}
        async for event in self.block(session, result, (words,), result | {"content": words}):
            yield event

    def is_denied(self, session: Session) -> bool:
        """What was answered is no approval."""
        assert session.request is not None
        return bool(session.request.answer.result() != "approve")

    async def ask(self, session: Session, tool: str, question: str, options: list[str]) -> RunEvents:
        about: Body = {"request_id": f"req-{uuid4().hex}", "session_id": session.id, "tool_name": tool}
        about |= {"options": options, "description": question, "question": question, "timeout": 300, "metadata": {}}
        about |= {"confirmation_type": "yes_no" if options else "form", "created_at": object_time()}
        session.request = Request(about, asyncio.get_running_loop().create_future())
        yield self.note("confirmation_request", about)
        await session.either(asyncio.shield(session.request.answer))
