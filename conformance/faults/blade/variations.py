"""Blade servers that differ from the reference in ways the specification allows: nothing must be found wrong.

The variations, one server each: unknown members everywhere; optional members absent; members in any order;
texts in one delta, in a block per delta, and with deltas that are empty; a thought before every reply; set_status,
set_tool_status and snapshots beside what they speak of; text after a tool in the turn of the call; several tools in one
turn; results as JSON in a string; no blocks for tools; no word of an answered question; user turns that are streamed;
other events, and heartbeats, between those of a chat; numbers with gaps; times in either spelling of UTC; compactions
sent as turns; bodies wrapped where clients accept both; runs that failed; and only what the seeds say (`minimal`).
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.blade.body_changes import all_of, by_kind, changing, setting, without
from conformance.faults.blade.minimal import SeedsOnly
from conformance.faults.blade.script import Move, Send, Use
from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import Body, Pending, Session, block, new_turn
from conformance.faults.script import Speak, words
from conformance.faults.steps import AsyncStep, Step, variants

Events = list[tuple[str, Any]]
OPTIONAL_OF_TURN = ("model", "usage", "started_at", "memory_refs")
OPTIONAL_OF_SESSION = ("solution_id", "biz_role_id", "model", "replay_state")
SAID = ("text", "thinking", "ask_user_answer")
OPTIONAL_OF_BLOCK = ("tool_call_id", "tool_name", "display_name")


class ExtraMembers:
    """Everything has members the specification does not know."""

    shown = by_kind(
        {
            name: setting(schema_version=3)
            for name in (
                "session",
                "turn",
                "call",
                "chat:start",
                "chat:end",
                "turn:patch",
                "patch.add_content",
                "patch.add_tool_call",
                "patch.tool_result",
                "memory",
                "key",
                "task",
                "run",
            )
        }
    )


class SparseMembers:
    """What is optional and null is left out."""

    shown = by_kind(
        {
            "session": without(*OPTIONAL_OF_SESSION),
            "turn": without(*OPTIONAL_OF_TURN),
            "block": without(*OPTIONAL_OF_BLOCK),
            "call": lambda call: {name: value for name, value in call.items() if value is not None},
            "memory": lambda memory: {name: value for name, value in memory.items() if value is not None},
        }
    )


class WholeTexts:
    """Every text comes in one delta."""

    def moves(self, step: Step[list[Move]], message: str, mode: str | None) -> list[Move]:
        slow = "/slow" in message
        moves = step(message, mode)
        return moves if slow else [_whole(move) for move in moves]


def _whole(move: Move) -> Move:
    return Speak(move.kind, ("".join(move.pieces),), move.pause) if isinstance(move, Speak) else move


@dataclass
class SmallBlocks:
    """Every delta opens a block of its own."""

    server: BladeServer

    async def speak(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, piece: str) -> None:
        turn["blocks"].append(block(kind, piece))
        data = {"type": kind, "content": piece, "text_delta": piece}
        await self.server.writer.patch(session, turn, "add_content", data)


@dataclass
class StatusPatches:
    """set_status and set_tool_status accompany what they speak of, and every patch has a snapshot."""

    server: BladeServer

    async def finish(self, step: AsyncStep[None], session: Session, turn: Body, status: str) -> None:
        await self.server.writer.patch(session, turn, "set_status", {"status": status})
        await step(session, turn, status)

    async def give(self, step: AsyncStep[None], session: Session, turn: Body, call: Body, result: Any) -> None:
        await step(session, turn, call, result)
        data = {"tool_call_id": call["id"], "status": "done"}
        await self.server.writer.patch(session, turn, "set_tool_status", data)

    async def patch(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, data: Body) -> None:
        await step(session, turn, kind, {**data, "turn": turn})


class OneTurnForATool:
    """The text after the last tool's result comes in the turn of the call."""

    async def after_tools(
        self, step: AsyncStep[Body | None], session: Session, turn: Body, rest: list[Move]
    ) -> Body | None:
        if any(isinstance(move, Use | Send) for move in rest):
            return await step(session, turn, rest)
        return turn


class NoBlocksOfTools:
    """Tools show no blocks, and sub-agents wait without a reference."""

    shown = by_kind(
        {
            "turn": changing("blocks", lambda blocks: [it for it in blocks if it["type"] in SAID]),
            "call": setting(pending_question_ref=None),
        }
    )

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        silent = name == "turn:patch" and body["patch_type"] == "add_content" and "text_delta" not in body["data"]
        return [] if silent else [(name, body)]


class Chatter:
    """Other events come between those of a chat."""

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        notice = {"session_id": session.id, "notification_type": "note", "title": "By the way", "status": "info"}
        return [("system:notification", notice), (name, body), ("bg:started", {"session_id": session.id})]


class NullsInChatEnd:
    """chat:end has every member it can have, and times have no fractions."""

    shown = by_kind(
        {
            "chat:end": lambda end: {"pause_tool": None, "pause_tool_data": None, "duration_ms": 3, **end},
            "session": changing("created_at", lambda time: f"{time[:19]}Z"),
        }
    )


@dataclass
class CompactionsAreTold:
    """Compactions are sent as turns, too."""

    server: BladeServer
    sending: "asyncio.Future[Any] | None" = None

    def compact(self, step: Step[None], session: Session, trigger: str) -> None:
        step(session, trigger)
        turn = session.turns[-1]
        send = self.server.writer.send_turn
        self.sending = asyncio.gather(*(send(session, name, turn) for name in ("turn:start", "turn:end")))


class OtherWrappings:
    """Bodies are wrapped where clients accept both: keys as {items}, checkpoints as {nodes}, 200 for a new session."""

    shown = by_kind(
        {"keys": lambda keys: {"items": keys}, "checkpoints": lambda points: {"nodes": points, "leaf_id": None}}
    )

    async def post_session(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        reply = await step(request)
        reply.set_status(200)
        return reply


class RunsOfThePast:
    """A task that was started has runs that ended, one of them badly."""

    shown = by_kind(
        {"runs": all_of(setting(status="failed", error="no luck", finished_at="2026-01-01T09:05:00Z"))}
    )


def _reversed(body: Body) -> Body:
    return dict(reversed(body.items()))


class ReorderedMembers:
    """Members come in another order."""

    shown = by_kind(dict.fromkeys(("session", "turn", "call", "turn:patch", "memory", "key", "task"), _reversed))


class EmptyDeltas:
    """Between the deltas come some that add nothing."""

    async def speak(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, piece: str) -> None:
        await step(session, turn, kind, "")
        await step(session, turn, kind, piece)


class ThinksFirst:
    """Every reply begins with a thought."""

    def moves(self, step: Step[list[Move]], message: str, mode: str | None) -> list[Move]:
        return [Speak("thinking", words("Well, well. ")), *step(message, mode)]


class SeveralToolsInATurn:
    """One call of the model may use several tools."""

    async def after_tools(
        self, step: AsyncStep[Body | None], session: Session, turn: Body, rest: list[Move]
    ) -> Body | None:
        return turn if rest and isinstance(rest[0], Use) else await step(session, turn, rest)

    def moves(self, step: Step[list[Move]], message: str, mode: str | None) -> list[Move]:
        moves = step(message, mode)
        uses = [move for move in moves if isinstance(move, Use)]
        return [*uses, *(move for move in moves if not isinstance(move, Use))] if len(uses) > 1 else moves


class ResultsAsText:
    """Results are the JSON of what the tool returned."""

    async def use(self, step: AsyncStep[None], session: Session, turn: Body, move: Use) -> None:
        await step(session, turn, Use(move.name, move.given, orjson.dumps(move.result).decode()))


@dataclass
class QuietAnswers:
    """Nothing is said of a question that was answered; the loop goes on."""

    answering: str | None = None

    async def resume(self, step: AsyncStep[None], session: Session, pending: Pending, result: Any) -> None:
        self.answering = pending.call["id"]
        await step(session, pending, result)

    async def patch(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, data: Body) -> None:
        if kind != "tool_result" or data["tool_call_id"] != self.answering:
            await step(session, turn, kind, data)


@dataclass
class StreamedUsers:
    """The user's turn is sent as the assistant's are: it starts empty and ends completed."""

    server: BladeServer

    async def user_turn(self, step: AsyncStep[None], session: Session, blocks: list[Body]) -> None:
        turn = new_turn(session, "user", "root", None, status="streaming")
        session.open.append(turn)
        await self.server.writer.send_turn(session, "turn:start", turn)
        for item in blocks:
            turn["blocks"].append(item)
            delta = {"text_delta": item["content"]} if item["type"] == "text" else {}
            await self.server.writer.patch(session, turn, "add_content", dict(item) | delta)
        await self.server.player.finish(session, turn, "completed")


class OtherNumbers:
    """Turns are numbered with gaps, patches over the whole session, and UTC is spelt +00:00."""

    shown = by_kind(
        {
            "turn": lambda turn: {**turn, "sequence": turn["sequence"] * 3, "started_at": _zoned(turn["started_at"])},
            "session": changing("updated_at", lambda time: _zoned(time)),
        }
    )

    async def patch(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, data: Body) -> None:
        session.patches = dict.fromkeys([turn["turn_id"]], max(session.patches.values(), default=100))
        await step(session, turn, kind, data)


def _zoned(time: str) -> str:
    return time.replace("Z", "+00:00")


class Heartbeats:
    """The transport asks all the time whether the client is still there."""

    def engine(self, step: Step[Any]) -> Any:
        return socket_server(ping_interval=0.2, ping_timeout=5)


VARIATIONS = variants(
    BladeServer,
    ExtraMembers,
    SparseMembers,
    WholeTexts,
    SmallBlocks,
    StatusPatches,
    OneTurnForATool,
    NoBlocksOfTools,
    Chatter,
    NullsInChatEnd,
    CompactionsAreTold,
    OtherWrappings,
    RunsOfThePast,
    ReorderedMembers,
    EmptyDeltas,
    ThinksFirst,
    SeveralToolsInATurn,
    ResultsAsText,
    QuietAnswers,
    StreamedUsers,
    OtherNumbers,
    Heartbeats,
    SeedsOnly,
)
