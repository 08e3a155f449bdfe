"""Plays the moves of the Blade reference agent: moves become turns, patches and the history."""

import asyncio
from typing import Any
from uuid import uuid4

import orjson

from conformance.faults.blade.script import QUESTIONS, Ask, Compact, Move, Recall, Send, Show, Use
from conformance.faults.blade.state import Body, Broken, Paused, Pending, Session, block, mint, new_turn
from conformance.faults.blade.writer import Writer
from conformance.faults.script import Break, Speak, words


class Player:
    """Performs moves; every rule is a step that a fault can change."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def start(self, session: Session, loop: str, parent: str | None) -> Body:
        turn = new_turn(session, "assistant", loop, parent)
        session.open.append(turn)
        await self.writer.send_turn(session, "turn:start", turn)
        return turn

    async def finish(self, session: Session, turn: Body, status: str) -> None:
        turn["status"] = status
        session.open.remove(turn)
        await self.writer.send_turn(session, "turn:end", turn)

    async def user_turn(self, session: Session, blocks: list[Body]) -> None:
        turn = new_turn(session, "user", "root", None, blocks=blocks)
        await self.writer.send_turn(session, "turn:start", turn)
        await self.writer.send_turn(session, "turn:end", turn)

    async def close(self, session: Session, status: str) -> None:
        """End what is open, the innermost first."""
        for turn in reversed(list(session.open)):
            for call in turn["tool_calls"]:
                if call["status"] == "pending":
                    await self.change(session, turn, call, "cancelled")
            await self.finish(session, turn, status)

    async def perform(self, session: Session, moves: list[Move], loop: str = "root", parent: str | None = None) -> None:
        """Perform the moves; each call of the model is one turn, so a turn ends with its tools."""
        turn: Body | None = None
        while moves:
            move = moves.pop(0)
            turn = turn or await self.start(session, loop, parent)
            match move:
                case Speak(kind, pieces, pause):
                    for piece in pieces:
                        await asyncio.sleep(pause)
                        await self.speak(session, turn, kind, piece)
                case Show(kind, content):
                    await self.show(session, turn, block(kind, content))
                case Recall():
                    turn["memory_refs"] = [{"id": 1, "content_preview": "Short answers…", "skill_name": None}]
                case Compact():
                    self.compact(session, "auto")
                case Break():
                    raise Broken("the agent broke")
                case Ask():
                    await self.ask(session, turn, moves)
                case Use():
                    await self.use(session, turn, move)
                    turn = await self.after_tools(session, turn, moves)
                case Send():
                    await self.send(session, turn, move, moves)
                    turn = await self.after_tools(session, turn, moves)
        if turn is not None:
            await self.finish(session, turn, "completed")

    async def after_tools(self, session: Session, turn: Body, rest: list[Move]) -> Body | None:
        """The model is called anew: what follows is another turn."""
        await self.finish(session, turn, "completed")
        return None

    async def speak(self, session: Session, turn: Body, kind: str, piece: str) -> None:
        if not turn["blocks"] or turn["blocks"][-1]["type"] != kind:
            turn["blocks"].append(block(kind, ""))
        turn["blocks"][-1]["content"] += piece
        whole = turn["blocks"][-1]["content"]
        await self.writer.patch(session, turn, "add_content", {"type": kind, "content": whole, "text_delta": piece})

    async def show(self, session: Session, turn: Body, shown: Body) -> None:
        turn["blocks"].append(shown)
        await self.writer.patch(session, turn, "add_content", dict(shown))

    async def call(self, session: Session, turn: Body, name: str, given: Any, status: str = "pending") -> Body:
        named = {"id": mint("tc"), "tool_name": name, "display_name": f"Use {name}"}
        call = named | {"arguments": orjson.dumps(given).decode(), "status": status}
        turn["tool_calls"].append(call | {"result": None, "duration_ms": None, "pending_question_ref": None})
        await self.writer.patch(session, turn, "add_tool_call", call)
        made: Body = turn["tool_calls"][-1]
        return made

    async def give(self, session: Session, turn: Body, call: Body, result: Any) -> None:
        call |= {"status": "done", "result": result, "duration_ms": 3, "pending_question_ref": None}
        members = {"tool_call_id": call["id"], "result": result, "status": "done", "duration_ms": 3}
        await self.writer.patch(session, turn, "tool_result", members)

    async def change(self, session: Session, turn: Body, call: Body, status: str) -> None:
        call["status"] = status
        await self.writer.patch(session, turn, "set_tool_status", {"tool_call_id": call["id"], "status": status})

    async def use(self, session: Session, turn: Body, move: Use) -> None:
        call = await self.call(session, turn, move.name, move.given)
        await self.give(session, turn, call, move.result)
        turn["blocks"] += [block("tool_use", {"name": move.name}, call), block("tool_result", move.result, call)]
        meta = move.result.get("_meta", {}) if isinstance(move.result, dict) else {}
        for name, content in meta.items():
            await self.show(session, turn, block(f"tool_{name}", content, call))

    async def ask(self, session: Session, turn: Body, rest: list[Move]) -> None:
        source = {"loop_name": turn["loop_id"], "description": "a task"} if turn["loop_id"] != "root" else None
        given = {"questions": QUESTIONS, "source_loop": source}
        call = await self.call(session, turn, "AskUserQuestion", given, "awaiting_answer")
        session.pending = Pending(call, turn, list(rest))
        await self.finish(session, turn, "paused")
        raise Paused

    async def send(self, session: Session, turn: Body, move: Send, rest: list[Move]) -> None:
        call = await self.call(session, turn, "Agent", {"description": "a task"})
        child: list[Move] = [Speak("text", words("On my way. ")), *([Ask()] if move.asking else []), Use("search")]
        child.append(Speak("text", words("The task is done.")))
        try:
            await self.perform(session, child, f"agent:{uuid4().hex[:8]}", call["id"])
        except Paused:
            await self.wait_for_child(session, turn, call, rest)
            raise
        await self.give(session, turn, call, "The task is done.")

    async def wait_for_child(self, session: Session, turn: Body, call: Body, rest: list[Move]) -> None:
        pending = session.pending
        assert pending is not None
        loop, question = pending.turn["loop_id"], pending.call["id"]
        call["pending_question_ref"] = {"child_loop_name": loop, "child_tool_call_id": question, "description": None}
        await self.change(session, turn, call, "awaiting_answer")
        pending.forks.append((turn, call, list(rest)))
        rest.clear()
        await self.finish(session, turn, "paused")

    async def resume(self, session: Session, pending: Pending, result: Any) -> None:
        """Go on after the answer, in the sub-agent that asked and then in those that wait for it."""
        turn = pending.turn
        turn["status"] = "completed"
        await self.give(session, turn, pending.call, result)
        await self.end_again(session, turn)
        await self.perform(session, pending.rest, turn["loop_id"], turn["parent_fork_tool_call_id"])
        for waiting, call, rest in pending.forks:
            waiting["status"] = "completed"
            await self.give(session, waiting, call, "The task is done.")
            await self.end_again(session, waiting)
            await self.perform(session, rest, waiting["loop_id"], waiting["parent_fork_tool_call_id"])

    async def end_again(self, session: Session, turn: Body) -> None:
        """A turn that was paused has changed: clients that refresh at turn:end only must see it."""
        await self.writer.send_turn(session, "turn:end", turn)

    async def give_up(self, session: Session, pending: Pending) -> None:
        """Cancel a question, and the calls that wait for its answer."""
        for turn, call in pending.calls:
            turn["status"], call["pending_question_ref"] = "interrupted", None
            await self.change(session, turn, call, "cancelled")
            await self.end_again(session, turn)

    def compact(self, session: Session, trigger: str) -> None:
        summary = {"summary_preview": "In short", "summary_full": "In short: all is well."}
        tokens = {"tokens_before": 100, "tokens_after": 25, "saved_ratio": 0.75, "trigger": trigger}
        members = {"kind": "compaction", "status": "completed", "compaction_id": mint("cmp"), **summary, **tokens}
        new_turn(session, "system", "root", None, archived_count=len(session.turns), **members)
