"""Plays actions as CAS events, written into the journal of a session."""

import asyncio
from collections.abc import Sequence
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
from conformance.clients.cas.streams import Streams
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.situation import SERVER_TOOL
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Session, mint
from conformance.faults.script import Speak


class Player:
    """Plays the replies of a situation."""

    def __init__(self, reply_queue: ReplyQueue, server: CasServer, streams: Streams) -> None:
        self._reply_queue, self._server, self._streams = reply_queue, server, streams

    async def play(self, session: Session, actions: Sequence[Action]) -> None:
        """A whole turn; one that is stopped ends as cancelled."""
        player, reason = self._server.player, "end_turn"
        with self._reply_queue.playing():
            try:
                player.go(session)
                for action in actions:
                    reason = await self._make(session, action) or reason
            except asyncio.CancelledError:
                reason = "cancelled"
            if reason == "error":
                self._server.journal.emit(session, "session.error", error=player.error())
            self._reply_queue.traffic.mark("ended")
            player.finish(session, {"type": reason})

    async def _make(self, session: Session, action: Action) -> str | None:
        """One action; the reason, if the turn ends with it."""
        journal = self._server.journal
        match action:
            case Say(pieces):
                await self._server.player.speak(session, Speak("text", pieces))
            case Think(pieces):
                await self._server.player.speak(session, Speak("thinking", pieces))
            case Unknown():
                journal.emit(session, "examiners.unknown", what=["an event", {"that": "CAS does not have"}])
            case Heartbeat():
                await asyncio.sleep(0.1)
                await self._streams.beat(session)
            case Wait(seconds):
                await asyncio.sleep(seconds)
            case Cut(is_within):
                await self._streams.cut(session, is_within=is_within)
            case Everything():
                await self._everything(session)
            case Call(asked):
                await self._call(session, asked)
            case End(reason):
                return reason or "end_turn"
        return None

    async def _call(self, session: Session, asked: Sequence[Asked]) -> None:
        journal, agents, agent = self._server.journal, self._server.agents, session.view["agent"]
        own = next(iter(agents.custom_tools(agent)), None)
        policy = agents.policies(agent).get(SERVER_TOOL)
        journal.open_span(session)
        for kind in asked:
            use: dict[str, Any] = {"name": SERVER_TOOL, "input": {"expression": "19 + 23"}}
            if kind is Asked.CLIENT and own is not None:
                event = journal.emit(session, "agent.custom_tool_use", name=own, input={"word": "dragoman"})
            elif kind is Asked.PERMISSION and policy in (None, "always_ask"):
                event = journal.emit(session, "agent.tool_use", **use, evaluated_permission="ask")
            elif kind is Asked.NOTHING:
                event = journal.emit(session, "agent.tool_use", **use, evaluated_permission="allow")
                self._server.player.settle(session, event, is_allowed=True)
            else:
                continue
            self._reply_queue.traffic.note_ask(event["id"], kind, session.view["id"])
            if kind is not Asked.NOTHING:
                session.pending[event["id"]] = event
        journal.close_span(session)
        if session.pending:
            await self._server.player.wait(session)

    async def _everything(self, session: Session) -> None:
        """The events of threads, of MCP tools, of artifacts and of the session itself."""
        await self._server.player.fork(session, asking=False)
        child = list(session.threads.values())[-1]
        self._server.threads.move(session, child, "terminated", {"type": "archive"})
        journal = self._server.journal
        journal.open_span(session)
        about = {"name": "look", "input": {}, "mcp_server_name": "library"}
        call = journal.emit(session, "agent.mcp_tool_use", **about, evaluated_permission="allow")
        result = {"content": [{"type": "text", "text": "found"}], "is_error": False}
        journal.emit(session, "agent.mcp_tool_result", mcp_tool_use_id=call["id"], **result)
        journal.close_span(session)
        file = {"file_id": mint("file"), "original_filename": "a.txt", "content_type": "text/plain", "size": 1}
        journal.emit(session, "agent.artifact_delivered", **file)
        journal.emit(session, "session.updated", title="Another title")
