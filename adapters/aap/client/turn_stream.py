"""Reads the stream of one turn to its end, over several connections if need be, and each event once."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any

import orjson

import gateway.model as m
from gateway.client import REDACTED, Http1Connection, HttpClient, SseDecoder, SseEvent, long_secrets
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited, ServerUnreachable
from gateway.json_values import read_exact_json
from gateway.ports import ParsedFrame

from .decoder import FRAME_HANDLERS, frame_name
from .readers import MessageBody, TurnBody, read_body, read_content

EVENT_ID = re.compile(r"[0-9]{1,15}\.([0-9]{1,9})", re.ASCII)
"""The id of an event: its turn, and its number in the turn."""
CONFLICT = 409
MAX_RETRY_DELAY = 5.0
"""The longest wait before the next attempt, whatever the server says."""


class StreamInterrupted(Exception):
    """We ended the conversation ourselves."""


WasAccepted = Callable[[], Awaitable[bool | None]]
"""Whether a server has taken a message that it has not begun to answer; None if that is unknown."""


class TurnStream:
    """One POST that starts or continues a turn, and its stream.

    A stream that breaks is resumed with `GET …/turns/current?after=`: by the number of events there were, and
    once an event has had an id, by the last id. That route is no part of the protocol: where a server does not have
    it, the break is raised.

    A break before the server has begun to answer leaves open whether it has taken the message. `taken` finds out; where
    it cannot, the break is raised. Without it the message may be sent again: an answer to a call is taken only once,
    and a server that refuses it the second time has taken it the first time.
    """

    def __init__(
        self, upstream: HttpClient, session_id: str, mode: str, *, taken: WasAccepted | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._upstream, self._mode = upstream, mode
        self._taken, self._is_repeated = taken, False
        self._secrets = long_secrets(secrets)
        self._path = f"/sessions/{session_id}/turns"
        self._wire: Http1Connection | None = None
        self._had = 0
        self._last_id = ""
        self._begun = False
        self._retry_ms: int | None = None
        self._is_hung_up = False
        self._waiting: asyncio.Timeout | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the server has begun to answer."""
        return self._begun

    def hang_up(self) -> None:
        """Close the connection; a caller that waits for the next frame gets `StreamInterrupted`."""
        is_first, self._is_hung_up = not self._is_hung_up, True
        if self._waiting is not None and is_first:
            self._waiting.reschedule(asyncio.get_running_loop().time())
        elif self._wire is not None:
            self._wire.close()

    async def next(self, frames: AsyncGenerator[ParsedFrame, None]) -> ParsedFrame:
        """The next of our frames."""
        try:
            async with asyncio.timeout(None) as self._waiting:
                if self._is_hung_up:
                    raise StreamInterrupted
                return await anext(frames)
        except TimeoutError:
            raise StreamInterrupted from None
        finally:
            self._waiting = None

    async def frames(self, body: dict[str, Any]) -> AsyncGenerator[ParsedFrame, None]:
        """All frames of the turn; the caller knows the last one and stops there."""
        if self._mode == "none":
            for frame in frames_of_body(await self._upstream.json("POST", self._path, body)):
                yield frame
        else:
            async with aclosing(self._streamed(body)) as events:
                async for event in events:
                    yield event
        raise ConnectionLost(f"{self._upstream.name} said nothing of how the turn ended")

    # -- over many connections ------------------------------------------------------------------------------------

    async def _streamed(self, body: dict[str, Any]) -> AsyncGenerator[ParsedFrame, None]:
        source, failures = self._posted(body), 0
        cut: GatewayError | None = None
        while True:
            before = self._had
            try:
                async with aclosing(source) as frames:
                    async for frame in frames:
                        yield frame
                cut = ConnectionLost(f"{self._upstream.name} ended its stream before the turn was over")
            except GatewayError as error:
                cut = await self._may_go_on(error, cut)
            failures = 1 if self._had > before else failures + 1
            if failures > self._upstream.timeouts.attempts:
                raise cut
            await asyncio.sleep(self._pause(failures))
            source = self._rest(cut) if self._begun else self._posted(body)

    async def _may_go_on(self, error: GatewayError, cut: GatewayError | None) -> GatewayError:
        """The error to raise if the stream cannot be resumed; raises it if that is certain.

        A server that was not reached has taken nothing: the request may be sent again.
        """
        if isinstance(error, ServerUnreachable):
            return error
        if self._begun:
            is_busy = isinstance(error, Overloaded | RateLimited) and cut is not None
            can_resume = is_busy or isinstance(error, ConnectionLost)
        else:
            can_resume = await self._find_out(error)
        if can_resume:
            return error
        raise (cut or error) from None

    async def _find_out(self, error: GatewayError) -> bool:
        """Whether it is now known if the message was taken; if it was not, it is sent again."""
        is_refused = self._is_repeated and (error.details or {}).get("upstream_status") == CONFLICT
        if not is_refused and not isinstance(error, ConnectionLost):
            return False
        taken = is_refused if self._taken is None else await self._taken()
        self._begun, self._is_repeated = taken is True, True
        return taken is True or (taken is False and not is_refused)

    def _pause(self, failures: int) -> float:
        """Wait as long as the server asks, or longer each time; if it asks nothing, the first attempt is at once."""
        if self._retry_ms is not None:
            wanted, self._retry_ms = self._retry_ms / 1000, None
            return min(wanted, MAX_RETRY_DELAY)
        backoff = random.uniform(0.2, 0.4) * 2.0 ** (failures - 1)  # noqa: S311  # no secret
        return 0.0 if failures == 1 else min(backoff, MAX_RETRY_DELAY)

    async def _posted(self, body: dict[str, Any]) -> AsyncGenerator[ParsedFrame, None]:
        async with (
            self._upstream.open("POST", self._path, body, headers=SSE_HEADERS) as wire,
            aclosing(self._read(wire)) as frames,
        ):
            async for frame in frames:
                yield frame

    async def _rest(self, cut: GatewayError) -> AsyncGenerator[ParsedFrame, None]:
        query = {"after": self._last_id or str(self._had), "stream": self._mode}
        path = f"{self._path}/current"
        async with self._upstream.open("GET", path, query=query, headers=SSE_HEADERS) as wire:
            if wire.status == 204:  # it has no more frames, and never sent the end of the turn
                raise BackendFailed(cut.message)
            async with aclosing(self._read(wire)) as frames:
                async for frame in frames:
                    yield frame

    # -- one connection -------------------------------------------------------------------------------------------

    async def _read(self, wire: Http1Connection) -> AsyncGenerator[ParsedFrame, None]:
        if wire.content_type != "text/event-stream":
            raise BackendFailed(f"{self._upstream.name} answered with {wire.content_type}, not with a stream of events")
        self._wire, self._begun = wire, True
        decoder = SseDecoder(name=self._upstream.name)
        try:
            while chunk := await wire.read_body():
                for event in decoder.feed(chunk):
                    if self._is_new(event):
                        yield self._frame(event)
        finally:
            self._wire, self._retry_ms = None, decoder.retry_ms

    def _is_new(self, event: SseEvent) -> bool:
        """Whether the event was not had before; it counts from now on."""
        found = EVENT_ID.fullmatch(event.id)
        if found is not None and int(found[1]) <= self._had:
            return False
        self._had += 1
        self._last_id = event.id if found is not None else self._last_id
        return True

    def _frame(self, event: SseEvent) -> ParsedFrame:
        data = event.data
        for secret in self._secrets:
            data = data.replace(secret, REDACTED)
        try:
            return ParsedFrame(event.name, read_exact_json(data), event.id)
        except orjson.JSONDecodeError:
            if event.name not in FRAME_HANDLERS:
                return ParsedFrame(event.name, None, event.id)
            raise BackendFailed(f"{self._upstream.name} sent a {event.name} that is not JSON") from None


SSE_HEADERS = {"Accept": "text/event-stream"}


# -- a turn that is told when it is done ------------------------------------------------------------------------------
def frames_of_body(body: Any) -> list[ParsedFrame]:
    """The frames that a turn would have had, had it been streamed."""
    exchange = read_body(TurnBody, body, "the answer")
    said = [frame for message in exchange.messages for frame in _message_frames(message)]
    return [ParsedFrame("turn_start", {}), *said, ParsedFrame("turn_stop", {"stopReason": exchange.stop_reason})]


def _message_frames(message: MessageBody) -> list[ParsedFrame]:
    if message.role == "tool":
        return [ParsedFrame("tool_result", {"toolCallId": message.tool_call_id, "content": message.content})]
    if message.role != "assistant" or message.content is None:
        return []
    if isinstance(message.content, str):
        return [ParsedFrame("text", {"text": message.content})]
    return [
        ParsedFrame(name, block)
        for block in message.content
        if (name := _FRAME_OF_BLOCK.get(str(block.get("type")))) is not None
    ]


_FRAME_OF_BLOCK = {"text": "text", "thinking": "thinking", "tool_use": "tool_call"}
"""The block of a message, and the frame of that block."""


TEXT, CALL, RESULT = "text_delta", "tool_call", "tool_result"
Piece = tuple[str, str, ParsedFrame | None]
"""The kind of a piece, its text or the id of its call, and its frame; text has none."""


class ReceivedPieces:
    """What the stream of one POST gave, as far as histories have it: texts, calls and results, in order."""

    def __init__(self) -> None:
        self._heard: list[Piece] = []

    def add(self, frame: ParsedFrame) -> None:
        name, body = frame_name(frame), frame.body if isinstance(frame.body, dict) else {}
        if name in ("text", TEXT):
            self._heard.append((TEXT, str(body.get("delta", body.get("text", ""))), None))
        elif name in (CALL, RESULT):
            self._heard.append((name, str(body.get("toolCallId")), frame))

    @property
    def pieces(self) -> list[Piece]:
        return _joined_texts(self._heard)


def missing_frames(
    messages: Sequence[MessageBody], heard: ReceivedPieces, answered: Sequence[str]
) -> list[ParsedFrame] | None:
    """The frames that a stream did not send, up to its `turn_stop`; None if the history has no finished turn.

    The turn began with the last message of a person or, if it was continued, with the results of the `answered` calls.
    It is over if the last message is the agent's. What the stream gave must be the beginning of what the history has.
    """
    said = _messages_of_turn(messages, answered)
    if not said or said[-1].role != "assistant":
        return None
    known = _joined_texts(piece for message in said for piece in _pieces_of_message(message))
    told = [piece for piece in heard.pieces if piece[0] != RESULT or piece[1] not in answered]
    if (missing := _missing_pieces(known, told)) is None:
        return None
    back = {piece[1] for piece in known if piece[0] == RESULT}
    is_waiting = any(piece[0] == CALL and piece[1] not in back for piece in known)
    frames = [ParsedFrame(TEXT, {"delta": text}) if frame is None else frame for _, text, frame in missing]
    return [*frames, ParsedFrame("turn_stop", {"stopReason": "tool_use" if is_waiting else "end_turn"})]


def _messages_of_turn(messages: Sequence[MessageBody], answered: Sequence[str]) -> Sequence[MessageBody]:
    """The messages after those that started or continued the turn; none if one of those is missing."""
    results = [place for place, message in enumerate(messages) if message.tool_call_id in answered]
    if answered:
        return messages[results[-1] + 1:] if len(results) == len(answered) else ()
    people = [place for place, message in enumerate(messages) if message.role == "user"]
    return messages[people[-1] + 1:] if people else ()


def _missing_pieces(known: Sequence[Piece], heard: Sequence[Piece]) -> list[Piece] | None:
    """What the history has beyond what the stream gave; None if the stream gave something else."""
    if len(heard) > len(known) or any(mine[:2] != theirs[:2] for mine, theirs in zip(heard[:-1], known, strict=False)):
        return None
    if not heard:
        return list(known)
    (kind, value, _), (known_kind, known_value, _) = heard[-1], known[len(heard) - 1]
    rest = list(known[len(heard):])
    if (kind, value) == (known_kind, known_value):
        return rest
    is_begun = kind == known_kind == TEXT and known_value.startswith(value)
    return [(TEXT, known_value[len(value):], None), *rest] if is_begun else None


def _pieces_of_message(message: MessageBody) -> Iterator[Piece]:
    if message.role == "tool":
        body = {"toolCallId": message.tool_call_id, "content": message.content}
        yield RESULT, message.tool_call_id or "", ParsedFrame(RESULT, body)
    elif message.role == "assistant":
        content = read_content(message.content)
        for part in (content,) if isinstance(content, str) else content:
            if isinstance(part, m.ToolUsePart):
                call = part.call
                given = {"toolCallId": call.call_id, "name": call.name, "input": call.input}
                yield CALL, call.call_id, ParsedFrame(CALL, given)
            else:
                yield TEXT, part if isinstance(part, str) else m.text_of((part,)), None


def _joined_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Texts that follow each other are one text: a stream does not mark where a message ends."""
    joined: list[Piece] = []
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        if kind != TEXT:
            joined += group
        elif text := "".join(piece[1] for piece in group):
            joined.append((TEXT, text, None))
    return joined
