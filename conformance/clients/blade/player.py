"""Plays actions as Blade chats: turns, patches and their end, to whoever has subscribed to the session."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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
from conformance.faults.blade.script import Send, Use
from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.state import Body, Paused, Pending, Session, block, mint
from conformance.faults.script import words

HEARTBEATS = 1.5
"""Seconds in which a heartbeat comes."""
QUESTIONS: list[Body] = [
    {
        "question": "Where to?",
        "header": "Deployment",
        "options": [{"label": "staging", "description": "to try"}, {"label": "production"}],
        "multiSelect": False,
    },
    {"question": "With what?", "options": [{"label": "logs"}, {"label": "metrics"}], "multiSelect": True},
]
SHOWN: tuple[tuple[str, Any], ...] = (
    ("system_notification", "a notification"),
    ("mode_change", {"mode": "planning"}),
    ("planning_enter", None),
    ("plan_status", {"steps": []}),
    ("planning_exit", None),
)
CHILD = "agent:child"


class Player:
    """Plays the replies of a situation; `cut` breaks the connections of the clients."""

    def __init__(self, reply_queue: ReplyQueue, server: BladeServer, cut: Callable[..., Awaitable[None]]) -> None:
        self._reply_queue, self._server, self._cut = reply_queue, server, cut

    async def play(
        self, session: Session, actions: Sequence[Action], said: list[Body], pending: Pending | None
    ) -> None:
        """A whole chat, from chat:start to chat:end; with a pending question it goes on after its answer."""
        writer, player = self._server.writer, self._server.player
        end: Body = {"session_id": session.id, "status": "completed", "finish_reason": "completed", "result": None}
        with self._reply_queue.playing() as traffic:
            try:
                await writer.send_event(session, "chat:start", {"session_id": session.id, "chat_run_id": session.run})
                await player.user_turn(session, said)
                if pending is not None:
                    await player.give(session, pending.turn, pending.call, {"answers": "given"})
                    pending.turn["status"] = "completed"
                    await player.end_again(session, pending.turn)
                end |= await self._perform(session, actions)
                await player.close(session, "failed" if end["status"] == "failed" else "completed")
            except Paused:
                session.becomes("waiting_for_input")
                session.run = None
                await writer.send_event(session, "chat:end", end | self._pause(session))
                return
            except asyncio.CancelledError:
                traffic.mark("stopped")
                await player.close(session, "interrupted")
                end |= {"status": "interrupted", "finish_reason": None}
            traffic.mark("ended")
            session.becomes(end["status"])
            session.run = None
            if end["status"] == "failed":
                error = {"message": "The agent broke.", "code": "agent_error", "session_id": session.id}
                await writer.send_event(session, "system:error", error)
            await writer.send_event(session, "chat:end", end)

    def _pause(self, session: Session) -> Body:
        assert session.pending is not None, "a paused chat has a question"
        data = {"tool_call_id": session.pending.call["id"], "arguments": {"questions": self._questions}}
        return {"pause_tool": "builtin:AskUserQuestion", "pause_tool_data": data}

    @property
    def _questions(self) -> list[Body]:
        return QUESTIONS[: self._reply_queue.option("questions") or 1]

    async def _perform(self, session: Session, actions: Sequence[Action]) -> Body:
        """Play the actions; return what chat:end says of their end."""
        turn = await self._server.player.start(session, "root", None)
        if self._reply_queue.option("child"):
            await self._child(session, turn)
        for place, action in enumerate(actions):
            if isinstance(action, Call) and action.asked == (Asked.QUESTION,):
                await self._ask(session, turn, actions[place + 1 :])
            if isinstance(action, End):
                return _end(action)
            await self._make(session, turn, action)
        return {}

    async def _make(self, session: Session, turn: Body, action: Action) -> None:
        player, writer = self._server.player, self._server.writer
        match action:
            case Say(pieces) | Think(pieces):
                kind = "text" if isinstance(action, Say) else "thinking"
                for piece in pieces:
                    await player.speak(session, turn, kind, piece)
            case Unknown():
                await writer.send_event(session, "x:examiners", {"session_id": session.id, "what": "an event"})
                await writer.patch(session, turn, "x_examiners", {"what": "a patch"})
            case Heartbeat():
                await asyncio.sleep(HEARTBEATS)
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Cut(is_within):
                await asyncio.sleep(0.1)  # until what was queued is sent
                self._reply_queue.traffic.note_cut(str(len(session.sent)))
                await self._cut(is_within=is_within)
            case Everything():
                await self._everything(session, turn)

    async def _everything(self, session: Session, turn: Body) -> None:
        player, writer = self._server.player, self._server.writer
        bridge = {"action": "map.highlight", "payload": {"cityIds": ["hangzhou"]}}
        card = {"resourceHTML": "<p>x</p>", "resourceUri": None, "target": "inline", "height": 320, "title": "Card"}
        await player.use(session, turn, Use("Bash", {"command": "ls"}, {"ok": True, "_meta": {"bridge": bridge}}))
        await player.use(session, turn, Use("Chart", {}, {"ok": True, "_meta": {"ui": card}}))
        for kind, content in SHOWN:
            await player.show(session, turn, block(kind, content))
        await player.send(session, turn, Send(asking=False), [])
        for name in ("session:updated", "workspace:files_changed", "memory:inject:done", "task:updated"):
            await writer.send_event(session, name, {"session_id": session.id})
        about = {"notification_type": "x", "title": "A notice", "detail": None, "status": "info"}
        await writer.send_event(session, "system:notification", {"session_id": session.id, **about})

    async def _child(self, session: Session, turn: Body) -> None:
        """A sub-agent at work while its parent waits."""
        player = self._server.player
        call = await player.call(session, turn, "Agent", {"description": "a task"})
        child = await player.start(session, CHILD, call["id"])
        for piece in words("Words of a sub-agent. "):
            await player.speak(session, child, "text", piece)
        await player.finish(session, child, "completed")
        await player.give(session, turn, call, "done")

    async def _ask(self, session: Session, turn: Body, rest: Sequence[Action]) -> None:
        """Ask, as the agent itself or as a sub-agent of it; the chat pauses."""
        player, parent = self._server.player, None
        if self._reply_queue.option("from_child"):
            parent = turn
            fork = await player.call(session, turn, "Agent", {"description": "a task"})
            turn = await player.start(session, CHILD, fork["id"])
        source = {"loop_name": CHILD, "description": "a task"} if parent else None
        given = {"questions": self._questions, "source_loop": source}
        call = await player.call(session, turn, "AskUserQuestion", given, "awaiting_answer")
        self._reply_queue.traffic.note_ask(call["id"], Asked.QUESTION, session.id)
        session.pending = Pending(call, turn, list(rest))  # type: ignore[arg-type]
        await player.finish(session, turn, "paused")
        if parent is not None:
            reference = {"child_loop_name": CHILD, "child_tool_call_id": call["id"], "description": None}
            fork["pending_question_ref"] = reference
            await player.change(session, parent, fork, "awaiting_answer")
            await player.finish(session, parent, "paused")
        raise Paused


def _end(action: End) -> Body:
    match action.reason:
        case "max_turns":
            return {"finish_reason": "max_turns"}
        case "failed" | "interrupted":
            return {"status": action.reason, "finish_reason": None}
    return {}


def run_id() -> str:
    return mint("run")


