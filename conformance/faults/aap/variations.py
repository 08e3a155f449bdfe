"""Servers that differ from the reference in ways the protocol allows: the examiners must find nothing wrong."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.faults.aap.modes import Called, Entered, Piece, Returned, TurnEvent
from conformance.faults.aap.player import Player
from conformance.faults.aap.requests import ToolPermission
from conformance.faults.aap.server import AapServer
from conformance.faults.aap.state import Session
from conformance.faults.content import text_of
from conformance.faults.refusal import Refusal
from conformance.faults.script import Speak, words

Events = AsyncIterator[tuple[str, Any]]


class CommentsAndCarriageReturns(AapServer):
    """Streams have comments, ids, retry hints, CRLF line ends and data over several lines."""

    def frame(self, name: str, body: Any) -> bytes:
        plain = super().frame(name, body).replace(b"data: {", b"data: {\ndata:")
        return (b": still here\nid: 7\nretry: 100\n" + plain).replace(b"\n", b"\r\n")


class ExtraMembers(AapServer):
    """Every body and every event has members the protocol does not know."""

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"server": "another"}

    def info(self, session: Session) -> dict[str, Any]:
        return super().info(session) | {"createdAt": 1}

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        told = super().history(session, kind)
        return {kind: [message | {"at": place} for place, message in enumerate(told[kind])]}

    def frame(self, name: str, body: Any) -> bytes:
        return super().frame(name, body | {"event": name, "at": 12.5})

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"error": words, "code": "refused"}, status=status)


class SparseInfo(AapServer):
    """A session shows only what was given: no empty lists, no defaults, no secrets, no trust that is false."""

    def info(self, session: Session) -> dict[str, Any]:
        defaults, hidden = self.defaults(session.agent), self.secrets(session)
        given = {name: value for name, value in session.options.items() if value != defaults[name]}
        options = {name: value for name, value in given.items() if name not in hidden}
        tools = [{"name": name} | ({"trust": True} if trust else {}) for name, trust in session.tools.items()]
        agent = {"name": session.agent} | _present(tools=tools, options=options)
        return {"sessionId": session.id, "agent": agent} | _present(tools=session.client_tools)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


class _Plain(Player):
    """Says what can be said in a string as a string."""

    def enter(self, session: Session, said: list[dict[str, Any]]) -> Entered:
        if any(block["type"] != "text" for block in said):
            return super().enter(session, said)
        message = {"role": "assistant", "content": text_of(said)}
        session.history.append(message)
        return Entered(message)

    def result(self, call: dict[str, Any]) -> Any:
        return [{"type": "text", "text": str(super().result(call))}]


class StringsAndBlocks(AapServer):
    """Replies are strings and results are blocks."""

    player_type = _Plain


class LetterByLetter(AapServer):
    """Deltas are single characters, and some are empty."""

    async def in_deltas(self, happened: AsyncIterator[TurnEvent]) -> Events:
        async for name, body in super().in_deltas(_letters(happened)):
            yield name, body


async def _letters(happened: AsyncIterator[TurnEvent]) -> AsyncIterator[TurnEvent]:
    async for item in happened:
        if isinstance(item, Piece):
            for letter in ("", *item.text):
                yield Piece(item.kind, letter)
        else:
            yield item


class _Chatty(Player):
    """Makes a message of its own of every block, and says denials aloud."""

    def enter(self, session: Session, said: list[dict[str, Any]]) -> Entered:
        for block in said[:-1]:
            super().enter(session, [block])
        super().enter(session, said[-1:])
        return Entered({"role": "assistant", "content": said})

    async def decide(self, session: Session, message: ToolPermission) -> AsyncIterator[TurnEvent]:
        async for item in super().decide(session, message):
            yield item
        if not message.granted:
            denial = session.history[-1]
            yield Returned({"toolCallId": denial["toolCallId"], "content": denial["content"]})
            yield Entered(denial)


class ManyMessages(AapServer):
    """A turn has several assistant messages in a row, and a denial is sent as a result."""

    player_type = _Chatty


class OtherRefusals(AapServer):
    """Where any 4xx will do, it is 422."""

    def check_configuration(self, session: Session) -> None:
        _instead(422, super().check_configuration, session)

    def check_messages(self, session: Session, turn: Any) -> None:
        _instead(422, super().check_messages, session, turn)

    def check_mode(self, session: Session, turn: Any) -> None:
        _instead(422, super().check_mode, session, turn)


def _instead(status: int, check: Any, *given: Any) -> None:
    try:
        check(*given)
    except Refusal as refusal:
        raise Refusal(status, refusal.words) from None


class NewestFirst(AapServer):
    """The list has two sessions to a page, the newest first."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        rest = [item for item in reversed(self.sessions.values()) if after is None or item.place < int(after)]
        return rest[:2], str(rest[1].place) if len(rest) > 2 else None


class _Eager(Player):
    """Runs a trusted tool as soon as it is called, before the other calls are sent."""

    async def call(self, session: Session, said: list[dict[str, Any]], tools: Any) -> AsyncIterator[TurnEvent]:
        told = [item async for item in super().call(session, said, tools)]
        results = [item for item in told if isinstance(item, Returned)]
        for item in told:
            if item not in results:
                yield item
            if isinstance(item, Called):
                for found in results:
                    if found.result["toolCallId"] == item.call["toolCallId"]:
                        yield found


class ResultsAtOnce(AapServer):
    """A trusted result is sent right after its call, before the other calls."""

    player_type = _Eager


class _Moving(Player):
    """Has a clock that never says the same twice, and quotes it."""

    def result(self, call: dict[str, Any]) -> Any:
        return uuid4().hex if call["name"] == "clock" else super().result(call)

    async def run(self, session: Session, call: dict[str, Any]) -> AsyncIterator[TurnEvent]:
        async for item in super().run(session, call):
            yield item
        quoted = f"{call['name']} returned {session.history[-1]['content']}. "
        session.script.moves.insert(0, Speak("text", words(quoted)))


class ClockMovesOn(AapServer):
    """What one of the tools returns, and what the agent then says, differs from run to run."""

    player_type = _Moving


class NameIgnored(AapServer):
    """Another agent's name in a turn is ignored instead of refused."""

    def reconfigure(self, session: Session, turn: Any) -> None:
        turn.agent.name = None
        super().reconfigure(session, turn)


VARIATIONS: tuple[type[AapServer], ...] = (
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
