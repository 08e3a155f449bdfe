"""The writer of the Blade reference server: bodies as clients see them, and events for the subscribers of a session."""

import asyncio
from functools import cached_property
from typing import Any

from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import Body, Session, copied


class Writer:
    """Writes bodies and events as clients see them, and sends events to the subscribers of their session."""

    def engine(self) -> Any:
        return socket_server()

    @cached_property
    def io(self) -> Any:
        """The Socket.IO server, made when it is first needed."""
        return self.engine()

    def shown(self, kind: str, body: Any) -> Any:
        """The body as it leaves the server, by its kind; variations and faults change it here."""
        return body

    def shown_turn(self, turn: Body) -> Body:
        turn["blocks"] = [self.shown("block", item) for item in turn["blocks"]]
        turn["tool_calls"] = [self.shown("call", item) for item in turn["tool_calls"]]
        shown: Body = self.shown("turn", turn)
        return shown

    async def send_event(self, session: Session, name: str, body: Any) -> None:
        sent = copied(body)
        if name in ("turn:start", "turn:end"):
            sent = self.shown_turn(sent)
        if name == "turn:patch":
            sent["data"] = self.shown(f"patch.{sent['patch_type']}", sent["data"])
        await self.emit(session, self.events(session, name, self.shown(name, sent)))
        await asyncio.sleep(0)  # only here can a chat be stopped: what the history has was sent, and once

    async def send_turn(self, session: Session, name: str, turn: Body) -> None:
        await self.send_event(session, name, turn | {"session_id": session.id})

    async def patch(self, session: Session, turn: Body, kind: str, data: Body) -> None:
        number = session.patches[turn["turn_id"]] = session.patches.get(turn["turn_id"], 0) + 1
        envelope = {"session_id": session.id, "sequence": number, "patch_type": kind, "data": data}
        await self.send_event(session, "turn:patch", envelope | {name: turn[name] for name in ("turn_id", "loop_id")})

    async def emit(self, session: Session, events: list[tuple[str, Any]]) -> None:
        for name, body in events:
            session.sent.append((name, self.numbered(session, body)))
            await self.io.emit(*session.sent[-1], room=self.room(session, name))

    def numbered(self, session: Session, body: Any) -> Any:
        """Every event has a number in its session, after which a subscription can be resumed."""
        return {**body, "stream_sequence": len(session.sent) + 1} if isinstance(body, dict) else body

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        """The events that are sent for one event; a fault may send none, or several."""
        return [(name, body)]

    def room(self, session: Session, name: str) -> str | None:
        return session.id
