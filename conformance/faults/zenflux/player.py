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
class Told:
    """One event without its envelope."""

    type: str
    data: Body
    message: Body | None = None


class Broken(Exception):
    """The agent fails."""


Telling = AsyncIterator[Told]


class Player:
    """Plays runs; every rule of their order and contents is a step that a fault can change."""

    async def play(self, session: Session) -> Telling:
        """A whole run."""
        talk = session.conversation
        start = {"session_id": session.id, "user_id": session.user_id, "conversation_id": talk.id}
        yield Told("session_start", start | {"message_id": session.message_id, "timestamp": event_time()})
        about = {"conversation_id": talk.id, "title": talk.title, "metadata": talk.metadata}
        yield Told("conversation_start", about | {"created_at": talk.created_at, "updated_at": talk.updated_at})
        status = "completed"
        try:
            async for told in self.perform(session):
                yield told
        except Stopped:
            status = "cancelled"
            for told in self.stopped(session):
                yield told
        except Broken:
            status = "failed"
            yield Told("error", {"error": {"type": "internal_error", "message": "The agent broke."}})
        self.finish(session, status)
        yield self.end(session, status)

    def finish(self, session: Session, status: str) -> None:
        """The run is over before the client can know it."""
        session.is_over, session.request = True, None
        kept = "completed" if status == "completed" else "stopped" if status == "cancelled" else "failed"
        session.conversation.add("assistant", session.blocks, session.message_id, kept)

    def end(self, session: Session, status: str) -> Told:
        duration = int((monotonic() - session.began) * 1000)
        return Told("session_end", {"session_id": session.id, "status": status, "duration_ms": duration})

    def stopped(self, session: Session) -> Iterator[Told]:
        if session.open_block is not None:
            yield Told("content_stop", {"index": session.open_block})
        yield Told("message_stop", {})
        about = {"session_id": session.id, "reason": "user_requested", "stopped_at": event_time()}
        yield Told("session_stopped", about)

    async def perform(self, session: Session) -> Telling:
        yield self.opened(session)
        for move in moves(session.message):
            async for told in self.make(session, move):
                yield told
        for told in self.closed(session, "end_turn"):
            yield told

    def opened(self, session: Session) -> Told:
        usage = {"input_tokens": 0, "output_tokens": 0}
        message: Body = {"id": session.message_id, "type": "message", "role": "assistant", "content": []}
        message |= {"usage": usage, "model": "reference", "stop_reason": None, "stop_sequence": None}
        data = {"message": message, "message_id": session.message_id, "session_id": session.id}
        return Told("message_start", data | {"conversation_id": session.conversation.id}, message)

    def closed(self, session: Session, reason: str) -> Iterator[Told]:
        yield self.note("usage", {"stop_reason": reason, "input_tokens": 3, "output_tokens": 5})
        yield Told("message_stop", {})

    def note(self, topic: str, content: Any) -> Told:
        """A message_delta, its content spelled as in the examples."""
        spelled = orjson.dumps(content).decode() if topic in IN_JSON else content
        return Told("message_delta", {"type": topic, "content": spelled, "delta": {"type": topic, "content": content}})

    async def make(self, session: Session, move: Any) -> Telling:
        match move:
            case Speak(kind, pieces, pause):
                block = {"type": kind, kind: "".join(pieces)} | ({"signature": ""} if kind == "thinking" else {})
                async for told in self.block(session, {"type": kind, kind: ""}, pieces, block, pause):
                    yield told
            case Break():
                raise Broken
            case Use():
                async for told in self.use(session, move):
                    yield told
            case Ask():
                async for told in self.ask(session, "ask_user", "What shall it be?", []):
                    yield told
            case LongRun():
                yield Told("long_running_confirm", {"turn": 15, "message": "It takes long. Go on?"})
                await session.wait("continue")
            case Rollback():
                about = {"task_id": session.id, "options": ["all", "last"], "error": "It broke.", "reason": "Repair."}
                yield Told("rollback_options", about)
                await session.wait("rollback")
                yield Told("rollback_completed", {})
            case Note(topic, content):
                yield self.note(topic, content)
            case Change(fields):
                yield self.change(session, dict(fields))
            case Show():
                session.blocks.append({"type": "image", "source": PIXEL})

    def change(self, session: Session, fields: Body) -> Told:
        session.conversation.title = fields.get("title", session.conversation.title)
        session.conversation.metadata |= fields.get("metadata", {})
        return Told("conversation_delta", {"conversation_id": session.conversation.id, **fields})

    async def block(
        self, session: Session, start: Body, pieces: tuple[str, ...], kept: Body, pause: float = 0.0
    ) -> Telling:
        """A block from its start to its stop; without streaming its text comes in one piece."""
        index = session.open_block = session.index
        session.index += 1
        yield Told("content_start", {"index": index, "content_block": start})
        for piece in pieces:
            if session.is_streamed:
                yield Told("content_delta", {"index": index, "delta": piece})
            await session.pause(pause) if pause else await asyncio.sleep(0)
        if not session.is_streamed:
            yield Told("content_delta", {"index": index, "delta": "".join(pieces)})
        session.blocks.append(kept)
        session.open_block = None
        yield Told("content_stop", {"index": index})

    # -- tools and questions -------------------------------------------------------------------------------------------

    async def use(self, session: Session, move: Use) -> Telling:
        call = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": move.name, "input": {}}
        spelled = orjson.dumps(move.given).decode()
        pieces = (spelled[:7], spelled[7:])
        async for told in self.block(session, call, pieces, call | {"input": move.given}):
            yield told
        is_error = False
        if move.needs_permission:
            async for told in self.ask(session, move.name, f"May I use {move.name}?", ["approve", "reject"]):
                yield told
            is_error = self.is_denied(session)
        if session.has_rounds:
            for told in self.closed(session, "tool_use"):
                yield told
            session.message_id = f"msg-{uuid4().hex}"
            yield self.opened(session)
        words = "It was not allowed." if is_error else f"{move.name} says ok"
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "", "is_error": is_error}
        async for told in self.block(session, result, (words,), result | {"content": words}):
            yield told

    def is_denied(self, session: Session) -> bool:
        """What was answered is no approval."""
        assert session.request is not None
        return bool(session.request.answer.result() != "approve")

    async def ask(self, session: Session, tool: str, question: str, options: list[str]) -> Telling:
        about: Body = {"request_id": f"req-{uuid4().hex}", "session_id": session.id, "tool_name": tool}
        about |= {"options": options, "description": question, "question": question, "timeout": 300, "metadata": {}}
        about |= {"confirmation_type": "yes_no" if options else "form", "created_at": object_time()}
        session.request = Request(about, asyncio.get_running_loop().create_future())
        yield self.note("confirmation_request", about)
        await session.either(asyncio.shield(session.request.answer))
