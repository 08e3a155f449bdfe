"""A session to talk in: turns, answers, history and what the server says of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.aap.agent import Agent
from conformance.aap.turn import STREAMED, Turn, streamed_turn, whole_turn
from conformance.kit import expect
from conformance.kit.http import Reply, Stream

if TYPE_CHECKING:
    from conformance.aap.examination import AapExamination


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def result(call: dict[str, Any], content: Any) -> dict[str, Any]:
    """A client tool's result."""
    return {"role": "tool", "toolCallId": call["toolCallId"], "content": content}


def permission(call: dict[str, Any], granted: bool, reason: str | None = None) -> dict[str, Any]:
    """A decision on a server tool."""
    message = {"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": granted}
    return message | ({"reason": reason} if reason is not None else {})


class Conversation:
    """One session of the server, talked to as a client would."""

    def __init__(self, exam: "AapExamination", agent: Agent, session: str) -> None:
        self._exam = exam
        self.agent = agent
        self.session = session
        self.path = f"/sessions/{quote(session, safe='')}"

    async def say(self, text: Any, mode: str | None = None, **more: Any) -> Turn:
        """One user message, and the turn that comes of it."""
        return await self.post([user(text)], mode, **more)

    async def post(self, messages: list[Any], mode: str | None = None, **more: Any) -> Turn:
        """One POST to /turns, read to its end; it must be accepted."""
        mode = mode or self.agent.usual_mode
        async with self.stream(messages, mode, **more) as stream:
            if mode in STREAMED:
                return await streamed_turn(stream, mode, self._exam.schemas)
            return whole_turn(await stream.whole(), self._exam.schemas)

    @asynccontextmanager
    async def stream(self, messages: list[Any], mode: str, **more: Any) -> AsyncIterator[Stream]:
        body = {"messages": messages, "stream": mode, **more}
        async with self._exam.http.stream("POST", f"{self.path}/turns", body) as stream:
            yield stream

    async def attempt(self, body: Any) -> Reply:
        """One POST to /turns with any body, whatever comes of it."""
        return await self._exam.http.ask("POST", f"{self.path}/turns", body)

    async def history(self, kind: str = "full") -> list[Any]:
        """The history of this type; NotTestable if the agent declares none."""
        if kind == "full":
            self.agent.needs_full_history()
        reply = expect.status(await self._exam.http.ask("GET", f"{self.path}/history", query={"type": kind}), 200)
        body = reply.json()
        self._exam.schemas.fit("history", body, f"the answer to {reply.asked}")
        expect.that(kind in body["history"], f"{reply.asked} to hold the history `{kind}`", body)
        found: list[Any] = body["history"][kind]
        return found

    async def info(self) -> dict[str, Any]:
        """What the server says of the session."""
        reply = expect.status(await self._exam.http.ask("GET", self.path), 200)
        body: dict[str, Any] = reply.json()
        self._exam.schemas.fit("session", body, f"the answer to {reply.asked}")
        return body
