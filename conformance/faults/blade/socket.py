"""The Socket.IO side of the Blade reference server: connections, rooms, chats, and what is refused."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

from conformance.faults.blade.player import Player
from conformance.faults.blade.script import QUESTIONS, Ask, Move, Send, Use, script
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import (
    Body,
    BodyChange,
    Broken,
    Paused,
    Pending,
    Refusal,
    Session,
    block,
    copied,
    mint,
)


class Socket(Player):
    """Answers what comes over Socket.IO; every rule is a step that a fault can change."""

    body_changes: Mapping[str, BodyChange] = MappingProxyType({})

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.sessions: dict[str, Session] = {}
        self.tokens: dict[str, str] = {}
        self.io = self.engine()
        for name in ("session:subscribe", "session:unsubscribe", "chat:send", "chat:stop", "chat:compact"):
            self.io.on(name, self.handler(name))
        self.io.on("connect", self.connect)

    def engine(self) -> Any:
        return socket_server()

    def shown(self, kind: str, body: Any) -> Any:
        """The body as it leaves the server, by its kind; variations and faults change it here."""
        change = self.body_changes.get(kind)
        return change(body) if change else body

    def is_known(self, token: Any) -> bool:
        return self.key is None or token == self.key or token in self.tokens.values()

    async def connect(self, sid: str, environ: Any, auth: Any = None) -> None:
        if not self.is_known(auth.get("token") if isinstance(auth, dict) else None):
            raise Refused("unauthorized")

    def handler(self, name: str) -> Any:
        async def handle(sid: str, body: Any = None) -> Any:
            work = getattr(self, f"on_{name.replace(':', '_')}")
            try:
                return await work(sid, body if isinstance(body, dict) else {})
            except Refusal as refusal:
                return await self.refuse(sid, name, body, refusal)

        return handle

    async def refuse(self, sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        if name != "chat:compact":
            told = {"message": refusal.words, "code": refusal.status, "session_id": None}
            if refusal.status == 409:
                told["session_id"] = body["session_id"]
            await self.io.emit("system:error", self.shown("system:error", told), room=sid)
        return {"status": "error", "message": refusal.words, "code": str(refusal.status)}

    def session(self, name: Any) -> Session:
        try:
            return self.sessions[name]
        except (KeyError, TypeError):
            raise Refusal(404, "there is no such session") from None

    # -- telling -------------------------------------------------------------------------------------------------------

    async def tell(self, session: Session, name: str, body: Any) -> None:
        told = copied(body)
        if name in ("turn:start", "turn:end"):
            told = self.shown_turn(told)
        if name == "turn:patch":
            told["data"] = self.shown(f"patch.{told['patch_type']}", told["data"])
        await self.emit(session, self.events(session, name, self.shown(name, told)))
        await asyncio.sleep(0)  # only here can a chat be stopped: what the history has was told, and once

    async def emit(self, session: Session, events: list[tuple[str, Any]]) -> None:
        for name, body in events:
            session.told.append((name, self.numbered(session, body)))
            await self.io.emit(*session.told[-1], room=self.room(session, name))

    def numbered(self, session: Session, body: Any) -> Any:
        """Every event has a number in its session, after which a subscription can be resumed."""
        return {**body, "stream_sequence": len(session.told) + 1} if isinstance(body, dict) else body

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        """The events that are sent for one event; a fault may send none, or several."""
        return [(name, body)]

    def room(self, session: Session, name: str) -> str | None:
        return session.id

    def shown_turn(self, turn: Body) -> Body:
        turn["blocks"] = [self.shown("block", item) for item in turn["blocks"]]
        turn["tool_calls"] = [self.shown("call", item) for item in turn["tool_calls"]]
        told: Body = self.shown("turn", turn)
        return told

    # -- rooms ---------------------------------------------------------------------------------------------------------

    async def on_session_subscribe(self, sid: str, body: Body) -> Any:
        session = self.session(body.get("session_id"))
        place = self.begins_at(session, body)
        while place < len(session.told):
            await self.io.emit(*session.told[place], room=sid)
            place += 1
        await self.io.enter_room(sid, session.id)
        return {"status": "ok"}

    def begins_at(self, session: Session, body: Body) -> int:
        """The place of the first event that a subscription gets: after the cursor if it is resumed, else the next."""
        return int(body.get("after_sequence") or 0) if body.get("resume") is True else len(session.told)

    async def on_session_unsubscribe(self, sid: str, body: Body) -> Any:
        await self.io.leave_room(sid, self.session(body.get("session_id")).id)
        return {"status": "ok"}

    # -- chats ---------------------------------------------------------------------------------------------------------

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        answer, message = body.get("askuser_answer"), body.get("message")
        if not body.get("session_id") or not (message or answer):
            raise Refusal(400, "Missing session_id or message")
        session = self.session(body["session_id"])
        await self.join(sid, session)
        self.check_room(session)
        pending = self.answered(session, answer) if answer else None
        if not answer:
            self.pass_over(session)
        session.run = mint("run")
        session.becomes("running")
        self.begin(session, body, pending)
        return {"status": "ok", "chat_run_id": session.run}

    async def join(self, sid: str, session: Session) -> None:
        await self.io.enter_room(sid, session.id)

    def begin(self, session: Session, body: Body, pending: Pending | None) -> None:
        session.task = asyncio.create_task(self.chat(session, body, pending))

    def check_room(self, session: Session) -> None:
        if session.is_busy:
            raise Refusal(409, "Session already has an active chat")

    def pass_over(self, session: Session) -> None:
        """An ordinary message cancels an open question."""
        if session.pending is not None:
            session.passed_over, session.pending = session.pending, None

    def answered(self, session: Session, answer: Body) -> Pending:
        pending = session.pending
        if pending is None or answer.get("tool_call_id") != pending.call["id"]:
            raise Refusal(409, "no such question is open")
        for place, question in enumerate(QUESTIONS):
            self.check_answer(place, question, answer)
        session.pending = None
        return pending

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        chosen = (answer.get("selections") or {}).get(str(place)) or []
        if not chosen and not (answer.get("custom") or {}).get(str(place)):
            raise Refusal(409, f"question {place} is not answered")
        if any(index not in range(len(question["options"])) for index in chosen):
            raise Refusal(409, f"question {place} has no such option")
        if len(chosen) > 1 and not question["multiSelect"]:
            raise Refusal(409, f"question {place} takes one option")

    async def chat(self, session: Session, body: Body, pending: Pending | None) -> Body:
        """One loop, from chat:start to chat:end."""
        end: Body = {"session_id": session.id, "status": "completed", "finish_reason": "completed", "result": None}
        try:
            await self.tell(session, "chat:start", {"session_id": session.id, "chat_run_id": session.run})
            await self.loop(session, body, pending)
            end["result"] = self.result(session, body) if body.get("headless") else None
            session.becomes("completed")
        except Paused:
            session.becomes("waiting_for_input")
            end |= self.pause(session)
        except Broken as error:
            await self.fail(session, str(error))
            end |= {"status": "failed", "finish_reason": None}
        except asyncio.CancelledError:
            await self.close(session, "interrupted")
            session.becomes("interrupted")
            end |= {"status": "interrupted", "finish_reason": None}
        end["chat_run_id"], session.run = session.run, None
        await self.tell(session, "chat:end", end)
        return end

    async def loop(self, session: Session, body: Body, pending: Pending | None) -> None:
        message = self.text(body.get("message"))
        said = [block("text", message)] if message else []
        if pending is not None:
            answer = body["askuser_answer"]
            await self.user_turn(session, [block("ask_user_answer", answer), *said])
            await self.resume(session, pending, {"answers": answer})
        else:
            await self.user_turn(session, said)
            if session.passed_over is not None:
                await self.give_up(session, session.passed_over)
                session.passed_over = None
            await self.perform(session, self.moves(message, body.get("mode")))

    def moves(self, message: str, mode: str | None) -> list[Move]:
        moves = script(message)
        return [it for it in moves if not isinstance(it, Use | Send | Ask)] if mode == "planning" else moves

    def text(self, message: Any) -> str:
        if isinstance(message, list):
            return "".join(part.get("text", "") for part in message if part.get("type") == "text")
        return str(message or "")

    def pause(self, session: Session) -> Body:
        assert session.pending is not None
        data = {"tool_call_id": session.pending.call["id"], "arguments": {"questions": QUESTIONS, "source_loop": None}}
        return {"pause_tool": "builtin:AskUserQuestion", "pause_tool_data": data}

    def result(self, session: Session, body: Body) -> Body:
        text = "".join(it["content"] for it in session.turns[-1]["blocks"] if it["type"] == "text")
        if body.get("output_schema"):
            return {"output": {"countries": ["俄罗斯", "加拿大", "中国"]}, "schema": body["output_schema"]}
        return {"output": text, "result": text}

    async def fail(self, session: Session, words: str) -> None:
        await self.close(session, "failed")
        session.becomes("failed")
        await self.tell(session, "system:error", {"message": words, "code": "agent_error", "session_id": session.id})

    async def on_chat_stop(self, sid: str, body: Body) -> Any:
        session = self.session(body.get("session_id"))
        if session.pending is not None and not session.is_busy:
            return await self.stop_waiting(session)
        if session.task is None or not session.is_busy:
            return {"status": "idle"}
        if not session.task.cancelling():
            session.task.cancel()
        return {"status": "stopping"}

    async def stop_waiting(self, session: Session) -> Body:
        """A question that is stopped takes no answer any more."""
        pending, session.pending = session.pending, None
        assert pending is not None
        await self.give_up(session, pending)
        session.becomes("interrupted")
        end = {"session_id": session.id, "status": "interrupted", "finish_reason": None, "result": None}
        await self.tell(session, "chat:end", end)
        return {"status": "stopped"}

    async def on_chat_compact(self, sid: str, body: Body) -> Any:
        session = self.session(body.get("session_id"))
        self.check_room(session)
        self.compact(session, "manual")
        return self.shown("ack.compact", {"status": "ok"})
