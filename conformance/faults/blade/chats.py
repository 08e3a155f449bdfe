"""Chats of the Blade reference server: one loop of the agent each, from chat:start to chat:end."""

import asyncio
from typing import Any

from conformance.faults.blade.player import Player
from conformance.faults.blade.script import QUESTIONS, Ask, Move, Send, Use, script
from conformance.faults.blade.state import Body, Broken, Paused, Pending, Refusal, Session, block
from conformance.faults.blade.writer import Writer


class Chats:
    """Runs chats, from chat:start to chat:end."""

    def __init__(self, writer: Writer, player: Player) -> None:
        self.writer = writer
        self.player = player

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
            await self.writer.send_event(session, "chat:start", {"session_id": session.id, "chat_run_id": session.run})
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
            await self.player.close(session, "interrupted")
            session.becomes("interrupted")
            end |= {"status": "interrupted", "finish_reason": None}
        end["chat_run_id"], session.run = session.run, None
        await self.writer.send_event(session, "chat:end", end)
        return end

    async def loop(self, session: Session, body: Body, pending: Pending | None) -> None:
        message = self.text(body.get("message"))
        said = [block("text", message)] if message else []
        if pending is not None:
            answer = body["askuser_answer"]
            await self.player.user_turn(session, [block("ask_user_answer", answer), *said])
            await self.player.resume(session, pending, {"answers": answer})
        else:
            await self.player.user_turn(session, said)
            if session.passed_over is not None:
                await self.player.give_up(session, session.passed_over)
                session.passed_over = None
            await self.player.perform(session, self.moves(message, body.get("mode")))

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
        await self.player.close(session, "failed")
        session.becomes("failed")
        error = {"message": words, "code": "agent_error", "session_id": session.id}
        await self.writer.send_event(session, "system:error", error)

    async def stop_waiting(self, session: Session) -> Body:
        """A question that is stopped takes no answer any more."""
        pending, session.pending = session.pending, None
        assert pending is not None
        await self.player.give_up(session, pending)
        session.becomes("interrupted")
        end = {"session_id": session.id, "status": "interrupted", "finish_reason": None, "result": None}
        await self.writer.send_event(session, "chat:end", end)
        return {"status": "stopped"}
