"""Follows a chat at a server, over several connections if need be: every event once, and in order."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import gateway.model as m
from gateway.client import Acknowledgement, Reconnector, Redactor, SocketIOConnection, SocketIOConnector, read_count
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.json_values import JsonObject
from gateway.ports import ParsedFrame
from mappings.language import Bindings

from .readers import BLADE, already_accepted_codes, frame_name, outcomes, read, status_word
from .requests import subscription_body

ACKNOWLEDGED = "acknowledged"
"""The name of the frame for the server's acknowledgement; no event has it."""
END_AFTER_FAULT_SECONDS = 5.0
"""How many seconds the end of a chat may take after the server's error."""
REPLAY_SECONDS = 10.0
"""How many seconds a server that can repeat its events may take to begin."""
DELIVERY_SECONDS = 0.5
"""After so many seconds, a message that was sent on a broken connection has arrived, or never will."""
_ERRORS: dict[m.FaultCode, type[GatewayError]] = {
    m.FaultCode.RATE_LIMITED: RateLimited, m.FaultCode.OVERLOADED: Overloaded, m.FaultCode.TIMEOUT: TimedOut,
}


@dataclass(slots=True)
class ReadPosition:
    """How far a session was read: the number of its last event, and the place of its last turn; None if unknown."""

    number: int | None = None
    turn: int | None = None

    def advance(self, place: Bindings) -> None:
        """To an event at this place; the number of a patch is no place of a turn."""
        if place["number"] is not None:
            self.number = max(self.number or 0, place["number"])
        if place["turn"] is not None and place["patch"] is None:
            self.turn = max(-1 if self.turn is None else self.turn, place["turn"])


class RestQueries(Protocol):
    """The requests that a server answers beside the socket."""

    async def messages(self, session_id: str) -> Sequence[dict[str, Any]]: ...
    async def status(self, session_id: str) -> str: ...


class TurnStream:
    """One chat. After a break the server is asked for what follows the last event that was read.

    Numbered events are repeated by `after_sequence`; if a server has no numbers, the turns are fetched, and the decoder
    knows what it had. A message that was being sent when the connection broke is sent again only if the server has no
    turn of it; if that cannot be known, the failure is raised.
    """

    def __init__(
        self, sockets: SocketIOConnector, redactor: Redactor, queries: RestQueries, session_id: str,
        position: ReadPosition, since: int | None = None,
    ) -> None:
        """`since` is the last turn before all that the decoder has read; turns after it may have changed."""
        self.is_broken = False
        """Set by the caller when the server has reported an error: the end of the chat should follow."""
        self._sockets, self._redactor, self._queries = sockets, redactor, queries
        self._name, self._patience = sockets.upstream.name, sockets.upstream.timeouts
        self._event, self._body = "", dict[str, Any]()
        self._open = AsyncExitStack()
        self._connection: SocketIOConnection | None = None
        self._acknowledged_as = 0
        """The number of the acknowledgement of our event on this connection; 0 if it was not sent on it."""
        self._missed_frames: list[ParsedFrame] = []
        self.cursor = 0
        """The number of frames that were received."""
        self._session_id, self._position, self._before = session_id, position, position.turn
        self._since = position.turn if since is None else since
        self._end_of_patience = _now() + self._patience.total
        self._sends, self._sent_at = 0, _now()
        self._run_id = ""
        self._is_taken = self._has_begun = self._has_numbers = self._is_in_doubt = False

    async def frames(self, event: str, body: JsonObject) -> AsyncGenerator[ParsedFrame, None]:
        """Send an event, and give the frames that follow, until the caller stops."""
        self._event, self._body = event, body
        reconnector = Reconnector(self._patience.attempts)
        try:
            while True:
                for frame in await reconnector.read(self):
                    yield frame
        finally:
            await self.disconnect()

    # -- over many connections ------------------------------------------------------------------------------------

    async def connect(self) -> None:
        self._connection = await self._open.enter_async_context(self._sockets.connect())
        self._missed_frames = await self._take_up(self._connection)
        self._acknowledged_as = 0
        if not self._is_taken:
            self._sends, self._sent_at = self._sends + 1, _now()
            self._acknowledged_as = await self._connection.emit(self._event, self._body)

    async def receive(self) -> list[ParsedFrame]:
        assert self._connection is not None, "the stream is connected"
        frames, self._missed_frames = self._missed_frames, []
        if frames:
            return frames
        while not (frames := await self._next(self._connection, self._acknowledged_as)):
            pass
        self.cursor += len(frames)
        return frames

    async def disconnect(self) -> None:
        await self._open.aclose()
        self._connection = None

    async def check_resumable(self, error: GatewayError) -> None:
        """A chat cannot be resumed if its events cannot be distinguished from those of earlier chats."""
        can_resume = not self._sends or self._before is not None or (self._is_taken and self._has_numbers)
        is_passing = isinstance(error, ConnectionLost | ServerUnreachable | Overloaded)
        if not is_passing or not can_resume or self._seconds <= 0:
            raise error from None

    async def _take_up(self, connection: SocketIOConnection) -> list[ParsedFrame]:
        """Follow the session: from now on, or from where it was left."""
        after = self._position.number if self._sends else None
        await connection.emit("session:subscribe", subscription_body(self._session_id, after))
        if not self._sends:
            return []
        self._is_taken = self._is_taken or await self._was_taken()
        if not self._is_taken:
            return []
        self._is_in_doubt = not self._has_begun
        return await self._missed() if self._has_begun and not self._has_numbers else []

    async def _was_taken(self) -> bool:
        """Whether the server has a turn of our message; it may still have been on its way when the connection broke."""
        if await self._turns(self._before):
            return True
        await asyncio.sleep(DELIVERY_SECONDS)
        return bool(await self._turns(self._before))

    async def _turns(self, last: int | None) -> list[dict[str, Any]]:
        """The turns after that one."""
        last, turns = -1 if last is None else last, await self._queries.messages(self._session_id)
        return [turn for turn in turns if read_count(turn.get("sequence")) > last]

    async def _missed(self) -> list[ParsedFrame]:
        """Read from the list of messages what the server does not repeat: the turns, and the end if there is one."""
        status = await self._queries.status(self._session_id)
        running = status_word(m.SessionStatus.RUNNING, "session_status@turn")
        frames = [ParsedFrame(frame_name("turn.opened" if turn.get("status") == running else "turn.closed"), turn)
                  for turn in await self._turns(self._since)]
        if status != status_word(m.SessionStatus.RUNNING):
            outcome = status if status in outcomes() else None
            frames.append(ParsedFrame(frame_name("chat.ended"), {"status": outcome}))
        return frames

    # -- one packet -----------------------------------------------------------------------------------------------

    async def _next(self, connection: SocketIOConnection, sent: int) -> list[ParsedFrame]:
        """The next frames of this chat; there may be none."""
        try:
            packet = await connection.receive(self._seconds)
        except TimedOut:
            if self.is_broken:
                failed = BLADE.table.word("outcome", m.Outcome.FAILED)
                return [ParsedFrame(frame_name("chat.ended"), {"status": failed})]
            if not self._is_in_doubt:
                raise
            self._is_in_doubt = False
            return await self._missed()
        if isinstance(packet, Acknowledgement):
            return self._acknowledged(packet, sent)
        body = packet.body if isinstance(packet.body, dict) else {}
        place = read("position", body)
        if place["session_id"] not in (None, self._session_id) or self._is_stale(packet.name, place):
            return []
        if packet.name == frame_name("fault.fatal") and not self._is_taken:
            self._refused(body)
            return []
        self._note(packet.name, place)
        return [packet]

    def _note(self, name: str, place: Bindings) -> None:
        if self._before is None and name == frame_name("turn.opened") and place["turn"] is not None:
            self._before = place["turn"] - 1
            self._since = self._before if self._since is None else self._since
        self._position.advance(place)
        self._has_numbers = self._has_numbers or place["number"] is not None
        self._is_taken = self._is_taken or name == frame_name("chat.started")
        self._has_begun, self._is_in_doubt = self._has_begun or self._is_taken, False

    def _is_stale(self, name: str, place: Bindings) -> bool:
        """Whether a frame was read before, or belongs to a chat that had ended when ours began."""
        numbered, last = place["number"], self._position.number
        if numbered is not None and last is not None and numbered <= last:
            return True
        if not self._is_in_doubt or not self._run_id:
            return False
        return name != frame_name("chat.started") or place["run_id"] not in (None, self._run_id)

    def _acknowledged(self, ack: Acknowledgement, sent: int) -> list[ParsedFrame]:
        """A server may acknowledge nothing; an acknowledgement says whether it accepts our event."""
        body = ack.body if isinstance(ack.body, dict) else {}
        if body.get("status") == "error" or body.get("ok") is False:
            if not self._is_taken:
                self._refused(body)
        elif ack.number == sent:
            self._is_taken = True
            self._run_id = read("ack.chat", body)["run_id"] or ""
            return [ParsedFrame(ACKNOWLEDGED, body)]
        return []

    def _refused(self, body: JsonObject) -> None:
        code, reason = str(body.get("code")), self._redactor.quote(body.get("message") or "no reason given")
        if code in already_accepted_codes() and self._sends > 1:
            self._is_taken = True
            return
        kind = _ERRORS.get(BLADE.table.meanings("fault", m.FaultCode).get(code, m.FaultCode.BACKEND), BackendFailed)
        raise kind(f"{self._name} refused: {reason}")

    @property
    def _seconds(self) -> float:
        """How long the next packet is waited for."""
        patience, now = self._patience, _now()
        left = [self._end_of_patience - now]
        if not self._is_taken:
            left.append(self._sent_at + patience.first_byte - now)
        if self.is_broken:
            left.append(END_AFTER_FAULT_SECONDS)
        if self._is_in_doubt:
            left.append(REPLAY_SECONDS)
        return min(left)


def _now() -> float:
    return asyncio.get_running_loop().time()
