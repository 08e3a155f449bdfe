"""Plays the agent's script: speaks, calls tools, waits for the client, and always stops."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from conformance.faults.aap.modes import Called, Entered, Part, Piece, Returned, Stopped, TurnEvent
from conformance.faults.aap.requests import ToolPermission
from conformance.faults.aap.state import Session
from conformance.faults.content import text_of
from conformance.faults.script import SERVER_TOOLS, Break, Call, Show, Speak, Stop, script, words


class Player:
    """Plays one session's script from where it stands."""

    def begin(self, session: Session, message: dict[str, Any]) -> None:
        """A user message begins a new script."""
        session.history.append(message)
        session.script = script(text_of(message["content"]))
        session.pending.clear()

    def receive(self, session: Session, message: dict[str, Any]) -> None:
        """A client tool's result settles its call."""
        session.pending.pop(message["toolCallId"], None)
        self.keep_client_result(session, message)

    def keep_client_result(self, session: Session, message: dict[str, Any]) -> None:
        session.history.append(message)

    async def decide(self, session: Session, message: ToolPermission) -> AsyncIterator[TurnEvent]:
        """A permission settles its call: the tool is run, or said to be denied."""
        call = session.pending.pop(message.toolCallId)
        if message.granted:
            async for item in self.run(session, call):
                yield item
        else:
            self.deny(session, call, message.reason)

    def deny(self, session: Session, call: dict[str, Any], reason: str | None) -> None:
        content = f"Tool call denied: {reason}" if reason else "Tool call denied"
        session.history.append({"role": "tool", "toolCallId": call["toolCallId"], "content": content})

    async def run(self, session: Session, call: dict[str, Any]) -> AsyncIterator[TurnEvent]:
        """Run a server tool; its result is sent and kept."""
        result = {"toolCallId": call["toolCallId"], "content": self.result(call)}
        yield Returned(result)
        message = {"role": "tool", **result}
        self.keep_result(session, message)
        yield Entered(message)

    def keep_result(self, session: Session, message: dict[str, Any]) -> None:
        session.history.append(message)

    def result(self, call: dict[str, Any]) -> Any:
        return f"{call['name']} says {sorted(call['input'].values())}"

    async def go_on(self, session: Session) -> AsyncIterator[TurnEvent]:
        """The script from where it stands to the next stop."""
        if session.pending:
            yield Stopped("tool_use")
            return
        said: list[dict[str, Any]] = []
        while session.script.moves:
            move = session.script.moves.pop(0)
            match move:
                case Speak(kind, pieces, pause):
                    broken = any(isinstance(later, Break) for later in session.script.moves[:1])
                    async for item in self.speak(kind, pieces, pause, broken):
                        yield item
                    said.append({"type": kind, kind: "".join(pieces)})
                case Show(url):
                    said.append({"type": "image", "url": url})
                case Call(tools):
                    async for item in self.call(session, said, tools):
                        yield item
                    said = []
                    if session.pending:
                        yield Stopped(self.stop_reason(session, "tool_use"))
                        return
                case Break() | Stop():
                    yield self.enter(session, said)
                    session.script.moves.clear()
                    yield Stopped(self.stop_reason(session, move.reason if isinstance(move, Stop) else "error"))

    def stop_reason(self, session: Session, reason: str) -> str:
        return reason

    async def speak(self, kind: str, pieces: tuple[str, ...], pause: float, broken: bool) -> AsyncIterator[TurnEvent]:
        for piece in pieces:
            await asyncio.sleep(pause)
            yield Piece(kind, piece)
        if not broken:
            yield Part(kind, "".join(pieces))

    def enter(self, session: Session, said: list[dict[str, Any]]) -> Entered:
        message = {"role": "assistant", "content": list(said)}
        session.history.append(message)
        return Entered(message)

    async def call(self, session: Session, said: list[dict[str, Any]], tools: Any) -> AsyncIterator[TurnEvent]:
        """Make the calls there are tools for; run the trusted ones, leave the others pending."""
        calls = self.calls(session, tools)
        if not calls:
            text = "I have no such tool. "
            async for item in self.speak("text", words(text), 0.0, False):
                yield item
            said.append({"type": "text", "text": text})
        said += [{"type": "tool_use", **call} for call in calls]
        yield self.enter(session, said)
        for call in calls:
            yield Called(call)
        for call in calls:
            if self.needs_client(session, call):
                session.pending[call["toolCallId"]] = call
            else:
                async for item in self.run(session, call):
                    yield item

    def calls(self, session: Session, tools: Any) -> list[dict[str, Any]]:
        first = next((tool["name"] for tool in session.client_tools), None)
        named = [(name or first, given) for name, given in tools]
        known = [(name, given) for name, given in named if self.has(session, name)]
        return [{"toolCallId": f"call-{uuid4().hex}", "name": name, "input": given} for name, given in known]

    def has(self, session: Session, name: str | None) -> bool:
        return name in session.tools or name in {tool["name"] for tool in session.client_tools}

    def needs_client(self, session: Session, call: dict[str, Any]) -> bool:
        return call["name"] not in SERVER_TOOLS or not session.tools.get(call["name"])
