"""Other manners of telling the same: Blade servers that order, cut, number and time what they say as they please."""

from typing import Any

import orjson

from conformance.faults.blade.bending import bending, changing
from conformance.faults.blade.engine import socket_server
from conformance.faults.blade.ledger import Body, Pending, Session, new_turn
from conformance.faults.blade.script import Move, Use
from conformance.faults.blade.server import BladeServer
from conformance.faults.script import Speak, words


def _reversed(body: Body) -> Body:
    return dict(reversed(body.items()))


class ReorderedMembers(BladeServer):
    """Members come in another order."""

    bends = bending(dict.fromkeys(("session", "turn", "call", "turn:patch", "memory", "key", "task"), _reversed))


class EmptyDeltas(BladeServer):
    """Between the deltas come some that add nothing."""

    async def speak(self, session: Session, turn: Body, kind: str, piece: str) -> None:
        await super().speak(session, turn, kind, "")
        await super().speak(session, turn, kind, piece)


class ThinksFirst(BladeServer):
    """Every reply begins with a thought."""

    def moves(self, message: str, mode: str | None) -> list[Move]:
        return [Speak("thinking", words("Well, well. ")), *super().moves(message, mode)]


class SeveralToolsInATurn(BladeServer):
    """One call of the model may use several tools."""

    async def after_tools(self, session: Session, turn: Body, rest: list[Move]) -> Body | None:
        return turn if rest and isinstance(rest[0], Use) else await super().after_tools(session, turn, rest)

    def moves(self, message: str, mode: str | None) -> list[Move]:
        moves = super().moves(message, mode)
        uses = [move for move in moves if isinstance(move, Use)]
        return [*uses, *(move for move in moves if not isinstance(move, Use))] if len(uses) > 1 else moves


class ResultsAsText(BladeServer):
    """Results are the JSON of what the tool returned."""

    async def use(self, session: Session, turn: Body, move: Use) -> None:
        await super().use(session, turn, Use(move.name, move.given, orjson.dumps(move.result).decode()))


class QuietAnswers(BladeServer):
    """Nothing is said of a question that was answered; the loop goes on."""

    async def resume(self, session: Session, pending: Pending, result: Any) -> None:
        self.answering = pending.call["id"]
        await super().resume(session, pending, result)

    async def patch(self, session: Session, turn: Body, kind: str, data: Body) -> None:
        if kind != "tool_result" or data["tool_call_id"] != getattr(self, "answering", None):
            await super().patch(session, turn, kind, data)


class StreamedUsers(BladeServer):
    """The user's turn is told as the assistant's are: it starts empty and ends completed."""

    async def user_turn(self, session: Session, blocks: list[Body]) -> None:
        turn = new_turn(session, "user", "root", None, status="streaming")
        session.open.append(turn)
        await self.tell_turn(session, "turn:start", turn)
        for item in blocks:
            turn["blocks"].append(item)
            delta = {"text_delta": item["content"]} if item["type"] == "text" else {}
            await self.patch(session, turn, "add_content", dict(item) | delta)
        await self.finish(session, turn, "completed")


class OtherNumbers(BladeServer):
    """Turns are numbered with gaps, patches over the whole session, and UTC is spelt +00:00."""

    bends = bending(
        {
            "turn": lambda turn: {**turn, "sequence": turn["sequence"] * 3, "started_at": _zoned(turn["started_at"])},
            "session": changing("updated_at", lambda time: _zoned(time)),
        }
    )

    async def patch(self, session: Session, turn: Body, kind: str, data: Body) -> None:
        session.patches = dict.fromkeys([turn["turn_id"]], max(session.patches.values(), default=100))
        await super().patch(session, turn, kind, data)


def _zoned(time: str) -> str:
    return time.replace("Z", "+00:00")


class Heartbeats(BladeServer):
    """The transport asks all the time whether the client is still there."""

    def engine(self) -> Any:
        return socket_server(ping_interval=0.2, ping_timeout=5)
