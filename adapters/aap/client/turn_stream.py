"""The stream of one turn, read over as many connections as it takes."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import orjson

import gateway.model as m
from adapters.aap.bodies import MessageBody, TurnBody
from gateway.client import Http1Connection, HttpClient, Reconnector, SseDecoder, SseEvent, upstream_status
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited, ServerUnreachable
from gateway.json_values import JsonValue, read_exact_json
from gateway.ports import ParsedFrame
from mappings.language import DecodedFrame

from .decoder import Decoder, TurnFrame, frame_decoder
from .missing_frames import WAITS, ReceivedPieces, call_frame, result_frame
from .readers import AAP
from .requests import SentSettings

EVENT_ID = re.compile(r"[0-9]{1,15}\.([0-9]{1,9})", re.ASCII)
"""The id of an event: its turn, and its number in the turn."""
CONFLICT = 409
MAX_RETRY_DELAY = 5.0
"""A stream that wants a longer wait in seconds before it is resumed gets this one."""


class StreamInterrupted(Exception):
    """This client ended the stream itself."""


WasAccepted = Callable[[], Awaitable[bool | None]]
"""Whether a server has taken a message that it has not begun to answer; None if that is unknown."""


class TurnStream:
    """The stream of one POST that starts or continues a turn, read over as many connections as it takes.

    A stream that breaks is resumed with `GET …/turns/current?after=`: by the number of events there were, and once an
    event has had an id, by the last id. That route is no part of the protocol: if a server does not have it, the break
    is raised.

    If a stream breaks before the server has begun to answer, it is unknown whether the server has taken the message.
    `taken` finds out; if it cannot, the break is raised. Without `taken` the message may be sent again: an answer to a
    call is taken only once, and a server that refuses it the second time has taken it the first time.
    """

    def __init__(
        self, upstream: HttpClient, session_id: str, mode: str, body: Mapping[str, object], *,
        taken: WasAccepted | None = None, busy_delays: Sequence[float] = (),
    ) -> None:
        """`busy_delays` are waits before the message is sent again to a server that is busy with another turn."""
        self._upstream, self._mode, self._body = upstream, mode, body
        self._busy_delays = list(busy_delays)
        self._taken, self._is_repeated = taken, False
        self._path = f"/sessions/{session_id}/turns"
        self._open = AsyncExitStack()
        self._connection: Http1Connection | None = None
        self._reconnector = Reconnector(upstream.timeouts.attempts)
        self._decoder = SseDecoder(name=upstream.name)
        self._had = 0
        self._last_id = ""
        self._begun = self._is_whole = False
        self._cut: GatewayError | None = None
        """The last break of the stream, until it is resumed."""
        self._invalid: GatewayError | None = None
        """The error of the event after those that were returned last."""
        self._is_hung_up = False
        self._waiting: asyncio.Timeout | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer."""
        return self._begun

    async def __aenter__(self) -> "TurnStream":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    def hang_up(self) -> None:
        """End the stream; a task that waits for the next frames gets `StreamInterrupted`."""
        is_first, self._is_hung_up = not self._is_hung_up, True
        if self._waiting is not None and is_first:
            self._waiting.reschedule(asyncio.get_running_loop().time())
        elif self._connection is not None:
            self._connection.close()

    async def read(self) -> list[TurnFrame]:
        """All frames that have arrived, at least one. There is no end: the reader knows the last frame of a turn."""
        try:
            async with asyncio.timeout(None) as self._waiting:
                if self._is_hung_up:
                    raise StreamInterrupted
                return await (self._read_whole() if self._mode == "none" else self._reconnector.read(self))
        except TimeoutError:
            raise StreamInterrupted from None
        finally:
            self._waiting = None

    async def _read_whole(self) -> list[TurnFrame]:
        """The frames of a server that does not stream."""
        if self._is_whole:
            raise ConnectionLost(f"{self._upstream.name} sent no end of the turn")
        while True:
            try:
                frames = frames_of_body(await self._upstream.json("POST", self._path, self._body))
            except BackendFailed as error:
                if not await self._waited_while_busy(error):
                    raise
            else:
                self._is_whole = True
                return frames

    # -- over many connections ------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        return self._had

    async def connect(self) -> None:
        while True:
            try:
                return await self._connect()
            except GatewayError as error:
                if not await self._waited_while_busy(error):
                    raise

    async def receive(self) -> list[TurnFrame]:
        if self._invalid is not None:
            raise self._invalid
        assert self._connection is not None, "the stream is connected"
        while chunk := await self._connection.read_body():
            if frames := self._frames(self._decoder.feed(chunk)):
                return frames
        raise ConnectionLost(f"{self._upstream.name} ended its stream before the turn was over")

    async def disconnect(self) -> None:
        await self._open.aclose()
        self._connection = None

    async def _waited_while_busy(self, error: GatewayError) -> bool:
        """Wait if the server refused the message because it is busy, and there is to be another try."""
        is_busy = not self._begun and not self._is_repeated and upstream_status(error) == CONFLICT
        if not is_busy or not self._busy_delays:
            return False
        await asyncio.sleep(self._busy_delays.pop(0))
        return True

    async def check_resumable(self, error: GatewayError) -> None:
        """Raise the error, unless the stream can be resumed, or the request can be sent again without harm."""
        if self._begun:
            is_busy = isinstance(error, Overloaded | RateLimited) and self._cut is not None
            can_resume = is_busy or isinstance(error, ConnectionLost | ServerUnreachable)
        else:
            can_resume = isinstance(error, ServerUnreachable) or await self._find_out(error)
        if not can_resume:
            raise (self._cut or error) from None
        wanted, self._decoder.retry_ms = self._decoder.retry_ms, None
        if wanted is not None:
            error.retry_after = min(wanted / 1000, MAX_RETRY_DELAY)
        self._cut = error

    async def _find_out(self, error: GatewayError) -> bool:
        """Find out whether the server has taken the message; return whether the turn can be resumed or begun again."""
        is_refused = self._is_repeated and upstream_status(error) == CONFLICT
        if not is_refused and not isinstance(error, ConnectionLost):
            return False
        taken = is_refused if self._taken is None else await self._taken()
        self._begun, self._is_repeated = taken is True, True
        return taken is True or (taken is False and not is_refused)

    # -- one connection -------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        """Send the message, or ask for the rest of the turn."""
        if not self._begun:
            request = self._upstream.open("POST", self._path, self._body, headers=SSE_HEADERS)
        else:
            query = {"after": self._last_id or str(self._had), "stream": self._mode}
            request = self._upstream.open("GET", f"{self._path}/current", query=query, headers=SSE_HEADERS)
        connection = await self._open.enter_async_context(request)
        if connection.status == 204 and self._cut is not None:  # the server has no more, and the turn did not end
            raise BackendFailed(self._cut.message)
        if connection.content_type != "text/event-stream":
            raise BackendFailed(
                f"{self._upstream.name} answered with {connection.content_type}, not with a stream of events")
        self._connection, self._begun, self._cut = connection, True, None
        self._decoder = SseDecoder(name=self._upstream.name)

    def _frames(self, events: Sequence[SseEvent]) -> list[TurnFrame]:
        """The frames of new events; an invalid event is raised at once, or at the next read if others came before."""
        frames: list[TurnFrame] = []
        try:
            for event in events:
                frame = self._frame(event) if self._is_new(event) else None
                if frame is not None:
                    frames.append(frame)
        except BackendFailed as error:
            if not frames:
                raise
            self._invalid = error
        return frames

    def _is_new(self, event: SseEvent) -> bool:
        """Whether the event is new; it counts as received from now on."""
        found = EVENT_ID.fullmatch(event.id)
        if found is not None and int(found[1]) <= self._had:
            return False
        self._had += 1
        self._last_id = event.id if found is not None else self._last_id
        return True

    def _frame(self, event: SseEvent) -> ParsedFrame:
        try:
            return ParsedFrame(event.name, read_exact_json(self._upstream.redactor.body(event.data)), event.id)
        except orjson.JSONDecodeError:
            if event.name not in frame_decoder().names:
                return ParsedFrame(event.name, None, event.id)
            raise BackendFailed(f"{self._upstream.name} sent a {event.name} that is not JSON") from None


SSE_HEADERS = {"Accept": "text/event-stream"}


# -- a turn that is not streamed --------------------------------------------------------------------------------------
def frames_of_body(body: JsonValue) -> list[TurnFrame]:
    """The frames that a turn would have had, had it been streamed."""
    exchange = AAP.read_as(TurnBody, body, "the answer")
    frames = [frame for message in exchange.messages for frame in _message_frames(message)]
    is_waiting = exchange.stop_reason is m.StopReason.TOOL_USE
    return [START, *frames, WAITS if is_waiting else DecodedFrame("turn.ended", {"stop_reason": exchange.stop_reason})]


def _message_frames(message: MessageBody) -> list[TurnFrame]:
    if message.role == m.Role.TOOL:
        return [result_frame(message)]
    if message.role != m.Role.ASSISTANT or message.content is None:
        return []
    return [frame for part in m.parts_of(message.content) if (frame := _part_frame(part)) is not None]


def _part_frame(part: m.AnyPart) -> TurnFrame | None:
    match part:
        case m.TextPart(text=text):
            return DecodedFrame("whole.text", {"text": text})
        case m.ThinkingPart(text=text):
            return DecodedFrame("whole.thinking", {"text": text})
        case m.ToolUsePart(call=call):
            return call_frame(call)
    return None


START = DecodedFrame("turn.started", {})


@dataclass(kw_only=True, repr=False)
class TurnPost:
    """One POST that starts or continues a turn, and what is known of its session once the server has accepted it."""

    stream: TurnStream
    messages: Sequence[Any]
    decoder: Decoder
    sent_settings: SentSettings | None
    user_messages: int | None
    before: int | None = None
    """How many messages of people the history had before; None if that is not known."""
    secrets: tuple[str, ...] = ()
    received: ReceivedPieces = field(default_factory=ReceivedPieces)
