"""A session to talk in: turns, answers, history and what the server says of it."""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.aap.agent import Agent
from conformance.aap.exchange import holds_blocks, of_messages
from conformance.aap.turn import BLOCKS, ENDS, RUNS, STREAMED, Turn, TurnReader, fitting
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


def due(messages: list[Any], more: Iterable[str] = ()) -> str:
    """The requirement by which a turn with these messages, and these overrides, is taken and answered."""
    if {"agent", "tools"}.intersection(more):
        return "AAP-TURN-03"
    if any(message.get("role") == "user" and isinstance(message.get("content"), list) for message in messages):
        return "AAP-TURN-02"
    roles = {message.get("role") for message in messages}
    answers = {"tool": "AAP-TOOL-01", "tool_permission": "AAP-TOOL-02"}
    named = [answers[role] for role in answers if role in roles]
    return "AAP-TOOL-04" if len(named) > 1 else [*named, RUNS][0]


class Conversation:
    """One session of the server, talked to as a client would."""

    def __init__(self, exam: "AapExamination", agent: Agent, session: str) -> None:
        self._exam = exam
        self.agent = agent
        self.session = session
        self.path = f"/sessions/{quote(session, safe='')}"
        self.reader: TurnReader = exam.reader

    async def say(self, text: Any, mode: str | None = None, **more: Any) -> Turn:
        """One user message, and the turn that comes of it."""
        return await self.post([user(text)], mode, **more)

    async def post(self, messages: list[Any], mode: str | None = None, *, ends: str = ENDS, **more: Any) -> Turn:
        """One POST to /turns, read to its end; it must be accepted."""
        mode, owner = mode or self.agent.usual_mode, due(messages, more)
        async with self.stream(messages, mode, **more) as stream:
            if mode in STREAMED:
                return await self.reader.streamed(stream, mode, owner, ends)
            with expect.owned(ends if ends != ENDS else "AAP-NONE-01"):
                reply = await stream.whole()
            return self.reader.whole(reply, owner)

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
        with expect.owned("AAP-HIST-01"):
            reply = expect.status(await self._exam.http.ask("GET", f"{self.path}/history", query={"type": kind}), 200)
            body = reply.json()
        parts = [(re.compile(rf"/history/{kind}/\d+{BLOCKS[0].pattern}"), BLOCKS[1])]
        parts.append((re.compile(r"/history/full/\d+"), "AAP-HIST-03"))
        fitting(self._exam.schemas, "history", body, f"the answer to {reply.asked}", "AAP-HIST-01", parts)
        expect.that(kind in body["history"], f"{reply.asked} to hold the history `{kind}`", body, "AAP-HIST-01")
        found: list[Any] = body["history"][kind]
        if any(holds_blocks(item.get("content")) for item in found):
            words = "a content that is a string which holds a JSON list of blocks is read as these blocks"
            self._exam.http.departures.read_as("AAP-HIST-03", words)
        return found

    async def called(self, turn: Turn, tool: str, owner: str) -> dict[str, Any]:
        """The call of this tool: the owner must bring it about, and the mode must tell it."""
        if any(call["name"] == tool for call in turn.calls) or "full" not in self.agent.history_types:
            return turn.call(tool, owner)
        kept = await self.history()
        last = max((place for place, item in enumerate(kept) if item["role"] == "user"), default=0)
        made = [item[2] for item in of_messages(kept[last:]).said if item[0] == "call"]
        tells = "AAP-SSE-04" if turn.mode in STREAMED else "AAP-NONE-01"
        return turn.call(tool, tells if tool in made else owner)

    async def info(self) -> dict[str, Any]:
        """What the server says of the session."""
        with expect.owned("AAP-SESS-07"):
            reply = expect.status(await self._exam.http.ask("GET", self.path), 200)
            body: dict[str, Any] = reply.json()
            self._exam.schemas.fit("session", body, f"the answer to {reply.asked}")
        return body
