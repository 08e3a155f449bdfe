"""Servers that differ from the reference in ways the protocol allows: the examiners must find nothing wrong."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.faults.aap.modes import Called, Entered, Piece, Returned, TurnEvent
from conformance.faults.aap.requests import ToolPermission
from conformance.faults.aap.server import AapServer
from conformance.faults.aap.state import Session
from conformance.faults.content import text_of
from conformance.faults.refusal import Refusal
from conformance.faults.script import Speak, words
from conformance.faults.steps import Step, variants

Body = dict[str, Any]
Events = AsyncIterator[tuple[str, Any]]
Page = tuple[list[Session], str | None]
Telling = AsyncIterator[TurnEvent]


class CommentsAndCarriageReturns:
    """Streams have comments, ids, retry hints, CRLF line ends and data over several lines."""

    def frame(self, step: Step[bytes], name: str, body: Any) -> bytes:
        plain = step(name, body).replace(b"data: {", b"data: {\ndata:")
        return (b": still here\nid: 7\nretry: 100\n" + plain).replace(b"\n", b"\r\n")


class ExtraMembers:
    """Every body and every event has members the protocol does not know."""

    def meta(self, step: Step[Body]) -> Body:
        return step() | {"server": "another"}

    def info(self, step: Step[Body], session: Session) -> Body:
        return step(session) | {"createdAt": 1}

    def history(self, step: Step[Body], session: Session, kind: str) -> Body:
        messages = step(session, kind)[kind]
        return {kind: [message | {"at": place} for place, message in enumerate(messages)]}

    def frame(self, step: Step[bytes], name: str, body: Any) -> bytes:
        return step(name, body | {"event": name, "at": 12.5})

    def refusal(self, step: Step[web.Response], status: int, words: str) -> web.Response:
        return web.json_response({"error": words, "code": "refused"}, status=status)


@dataclass
class SparseInfo:
    """A session shows only what was given: no empty lists, no defaults, no secrets, no trust that is false."""

    server: AapServer

    def info(self, step: Step[Body], session: Session) -> Body:
        defaults, hidden = self.server.agents.defaults(session.agent), self.server.agents.secrets(session)
        given = {name: value for name, value in session.options.items() if value != defaults[name]}
        options = {name: value for name, value in given.items() if name not in hidden}
        tools = [{"name": name} | ({"trust": True} if trust else {}) for name, trust in session.tools.items()]
        agent = {"name": session.agent} | _present(tools=tools, options=options)
        return {"sessionId": session.id, "agent": agent} | _present(tools=session.client_tools)


def _present(**members: Any) -> Body:
    return {name: value for name, value in members.items() if value}


class StringsAndBlocks:
    """Replies are strings and results are blocks."""

    def enter(self, step: Step[Entered], session: Session, said: list[Body]) -> Entered:
        if any(block["type"] != "text" for block in said):
            return step(session, said)
        message = {"role": "assistant", "content": text_of(said)}
        session.history.append(message)
        return Entered(message)

    def result(self, step: Step[Any], call: Body) -> Any:
        return [{"type": "text", "text": str(step(call))}]


class LetterByLetter:
    """Deltas are single characters, and some are empty."""

    async def in_deltas(self, step: Step[Events], happened: Telling) -> Events:
        async for name, body in step(_letters(happened)):
            yield name, body


async def _letters(happened: Telling) -> Telling:
    async for item in happened:
        if isinstance(item, Piece):
            for letter in ("", *item.text):
                yield Piece(item.kind, letter)
        else:
            yield item


class ManyMessages:
    """A turn has several assistant messages in a row, and a denial is sent as a result."""

    def enter(self, step: Step[Entered], session: Session, said: list[Body]) -> Entered:
        for block in said[:-1]:
            step(session, [block])
        step(session, said[-1:])
        return Entered({"role": "assistant", "content": said})

    async def decide(self, step: Step[Telling], session: Session, message: ToolPermission) -> Telling:
        async for item in step(session, message):
            yield item
        if not message.granted:
            denial = session.history[-1]
            yield Returned({"toolCallId": denial["toolCallId"], "content": denial["content"]})
            yield Entered(denial)


class OtherRefusals:
    """Where any 4xx will do, it is 422."""

    def check_configuration(self, step: Step[None], session: Session) -> None:
        _instead(422, step, session)

    def check_messages(self, step: Step[None], session: Session, turn: Any) -> None:
        _instead(422, step, session, turn)

    def check_mode(self, step: Step[None], session: Session, turn: Any) -> None:
        _instead(422, step, session, turn)


def _instead(status: int, check: Any, *given: Any) -> None:
    try:
        check(*given)
    except Refusal as refusal:
        raise Refusal(status, refusal.words) from None


@dataclass
class NewestFirst:
    """The list has two sessions to a page, the newest first."""

    server: AapServer

    def page(self, step: Step[Page], after: str | None) -> Page:
        newest_first = reversed(self.server.state.sessions.values())
        rest = [item for item in newest_first if after is None or item.place < int(after)]
        return rest[:2], str(rest[1].place) if len(rest) > 2 else None


class ResultsAtOnce:
    """A trusted result is sent right after its call, before the other calls."""

    async def call(self, step: Step[Telling], session: Session, said: list[Body], tools: Any) -> Telling:
        events = [item async for item in step(session, said, tools)]
        results = [item for item in events if isinstance(item, Returned)]
        for item in events:
            if item not in results:
                yield item
            if isinstance(item, Called):
                for found in results:
                    if found.result["toolCallId"] == item.call["toolCallId"]:
                        yield found


class ClockMovesOn:
    """What one of the tools returns, and what the agent then says, differs from run to run."""

    def result(self, step: Step[Any], call: Body) -> Any:
        return uuid4().hex if call["name"] == "clock" else step(call)

    async def run(self, step: Step[Telling], session: Session, call: Body) -> Telling:
        async for item in step(session, call):
            yield item
        quoted = f"{call['name']} returned {session.history[-1]['content']}. "
        session.script.moves.insert(0, Speak("text", words(quoted)))


class NameIgnored:
    """Another agent's name in a turn is ignored instead of refused."""

    def reconfigure(self, step: Step[None], session: Session, turn: Any) -> None:
        turn.agent.name = None
        step(session, turn)


VARIATIONS = variants(
    AapServer,
    CommentsAndCarriageReturns,
    ExtraMembers,
    SparseInfo,
    StringsAndBlocks,
    LetterByLetter,
    ManyMessages,
    OtherRefusals,
    NewestFirst,
    ResultsAtOnce,
    ClockMovesOn,
    NameIgnored,
)
