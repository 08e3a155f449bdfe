"""A Blade server that says what the type and chat-flow pages say, and nothing of what only companion pages ask for.

It fails SHOULDs by the dozen and must pass every MUST: no acknowledgements but the documented one, no session_id where
no example shows one, turns that begin with hardly more than their name, and refusals in words of its own.
"""

from typing import Any

import socketio  # type: ignore[import-untyped]
from aiohttp import web
from socketio.packet import ACK  # type: ignore[import-untyped]

from conformance.faults.blade.body_changes import by_kind, only, without
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import COMPACTION, Body, BodyChange, Session
from conformance.faults.steps import AsyncStep, Step

Events = list[tuple[str, Any]]
BEGUN = ("turn_id", "role", "status", "parent_fork_tool_call_id")
OF_A_SESSION = ("solution_id", "biz_role_id", "model", "replay_state", "solution", "primary_skill_snapshot")


def sparse(*names: str) -> BodyChange:
    """Bodies have neither these members nor any that is null."""
    return lambda body: {name: value for name, value in body.items() if name not in names and value is not None}


def _turn(turn: Body) -> Body:
    extra = () if turn["kind"] == "compaction" else COMPACTION
    return sparse("session_id", "usage", "started_at", *extra)(turn)  # type: ignore[no-any-return]


def _end(end: Body) -> Body:
    """Only a headless chat is shown to end with more than its status."""
    return {"status": end["status"]} if end["result"] is None else without("chat_run_id")(end)


class _Silent(socketio.AsyncServer):  # type: ignore[misc]
    """Acknowledges nothing, unless there is something to say."""

    async def _send_packet(self, eio_sid: str, packet: Any) -> None:
        if packet.packet_type != ACK or packet.data:
            await super()._send_packet(eio_sid, packet)


class SeedsOnly:
    """Does without whatever only a companion page asks for."""

    shown = by_kind(
        {
            "session": without(*OF_A_SESSION, "session_setup", "viewer_role"),
            "turn": _turn,
            "block": sparse(),
            "call": sparse("duration_ms", "pending_question_ref"),
            "chat:start": only(),
            "turn:start": only(*BEGUN),
            "chat:end": _end,
            "patch.add_content": sparse(),
            "memory": sparse(),
            "key": sparse(),
            "task": sparse(),
            "run": sparse(),
            "system:error": only("message"),
        }
    )

    def engine(self, step: Step[Any]) -> Any:
        return socket_server(_Silent)

    def handler(self, step: Step[Any], name: str) -> Any:
        handle = step(name)

        async def silent(sid: str, body: Any = None) -> Any:
            answer = await handle(sid, body)
            return answer if name == "chat:compact" else None

        return silent

    async def patch(self, step: AsyncStep[None], session: Session, turn: Body, kind: str, data: Body) -> None:
        """One number for all patches: no sentence says what they count."""
        session.patches[turn["turn_id"]] = 6
        await step(session, turn, kind, data)

    def numbered(self, step: Step[Any], session: Session, body: Any) -> Any:
        return body

    def refusal(self, step: Step[web.Response], status: int, words: str) -> web.Response:
        return web.Response(text=words, status=status)

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        return [] if name in ("session:updated", "workspace:files_changed", "system:error") else [(name, body)]
