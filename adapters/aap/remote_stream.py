"""One turn's stream, read to its end over as many connections as it takes, each event once."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import orjson

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited
from gateway.model import exact_json
from gateway.upstream import BLOT, Cut, Decoder, Frame, SseEvent, Unreachable, Upstream, Wire, unmistakable

from .hearing import HEARD
from .hearing_wire import ExchangeBody, MessageBody, read_as

NUMBER = re.compile(r"[0-9]{1,15}\.([0-9]{1,9})", re.ASCII)
"""The id of an event: its turn, and its number in the turn."""
CONFLICT = 409
LONGEST_PAUSE = 5.0
"""Nobody waits longer than this before coming again, whatever the server says."""


class HungUp(Exception):
    """We ended the conversation ourselves."""


Taken = Callable[[], Awaitable[bool | None]]
"""Whether a server has taken a message that it has not begun to answer; None where nobody can tell."""


class TurnStream:
    """One POST that starts or continues a turn, and what is heard of it.

    A stream that breaks is taken up again with `GET …/turns/current?after=`: by the number of events there were, and
    once an event has had an id, by the last id. That route is no part of the protocol: where a server does not have
    it, the break is raised.

    A break before the server has begun to answer leaves open whether it has taken the message. `taken` finds out; where
    it cannot, the break is raised. Without it the message may be sent again: an answer to a call is taken only once,
    and a server that refuses it the second time has taken it the first time.
    """

    def __init__(
        self, upstream: Upstream, session_id: str, mode: str, *, taken: Taken | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._upstream, self._mode = upstream, mode
        self._taken, self._is_repeated = taken, False
        self._secrets = unmistakable(secrets)
        self._path = f"/sessions/{session_id}/turns"
        self._wire: Wire | None = None
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
        """End the conversation; whoever waits for the next frame gets `HungUp`."""
        is_first, self._is_hung_up = not self._is_hung_up, True
        if self._waiting is not None and is_first:
            self._waiting.reschedule(asyncio.get_running_loop().time())
        elif self._wire is not None:
            self._wire.close()

    async def next(self, frames: AsyncGenerator[Frame, None]) -> Frame:
        """The next of our frames."""
        try:
            async with asyncio.timeout(None) as self._waiting:
                if self._is_hung_up:
                    raise HungUp
                return await anext(frames)
        except TimeoutError:
            raise HungUp from None
        finally:
            self._waiting = None

    async def frames(self, body: dict[str, Any]) -> AsyncGenerator[Frame, None]:
        """All frames of the turn, without end: the reader knows the last one."""
        if self._mode == "none":
            for frame in frames_of(await self._upstream.json("POST", self._path, body)):
                yield frame
        else:
            async with aclosing(self._streamed(body)) as events:
                async for event in events:
                    yield event
        raise Cut(f"{self._upstream.name} said nothing of how the turn ended")

    # -- over many connections ------------------------------------------------------------------------------------

    async def _streamed(self, body: dict[str, Any]) -> AsyncGenerator[Frame, None]:
        source, failures = self._posted(body), 0
        cut: GatewayError | None = None
        while True:
            before = self._had
            try:
                async with aclosing(source) as frames:
                    async for frame in frames:
                        yield frame
                cut = Cut(f"{self._upstream.name} ended its stream before the turn was over")
            except GatewayError as error:
                cut = await self._may_go_on(error, cut)
            failures = 1 if self._had > before else failures + 1
            if failures > self._upstream.patience.attempts:
                raise cut
            await asyncio.sleep(self._pause(failures))
            source = self._rest(cut) if self._begun else self._posted(body)

    async def _may_go_on(self, error: GatewayError, cut: GatewayError | None) -> GatewayError:
        """The break to tell of, should the stream not be had again; raises it where there is no hope.

        A server that nobody reached has taken nothing: it may be spoken to once more.
        """
        if isinstance(error, Unreachable):
            return error
        if self._begun:
            is_busy = isinstance(error, Overloaded | RateLimited) and cut is not None
            can_resume = is_busy or isinstance(error, Cut)
        else:
            can_resume = await self._find_out(error)
        if can_resume:
            return error
        raise (cut or error) from None

    async def _find_out(self, error: GatewayError) -> bool:
        """Whether it is known, after this, if the message was taken; if it was not, it is to be sent again."""
        is_refused = self._is_repeated and (error.details or {}).get("upstream_status") == CONFLICT
        if not is_refused and not isinstance(error, Cut):
            return False
        taken = is_refused if self._taken is None else await self._taken()
        self._begun, self._is_repeated = taken is True, True
        return taken is True or (taken is False and not is_refused)

    def _pause(self, failures: int) -> float:
        """As long as the server wants, or longer each time; the first try comes at once where it said nothing."""
        if self._retry_ms is not None:
            wanted, self._retry_ms = self._retry_ms / 1000, None
            return min(wanted, LONGEST_PAUSE)
        backoff = random.uniform(0.2, 0.4) * 2.0 ** (failures - 1)  # noqa: S311  # no secret
        return 0.0 if failures == 1 else min(backoff, LONGEST_PAUSE)

    async def _posted(self, body: dict[str, Any]) -> AsyncGenerator[Frame, None]:
        async with (
            self._upstream.attempt("POST", self._path, body, headers=WANTED) as wire,
            aclosing(self._read(wire)) as frames,
        ):
            async for frame in frames:
                yield frame

    async def _rest(self, cut: GatewayError) -> AsyncGenerator[Frame, None]:
        query = {"after": self._last_id or str(self._had), "stream": self._mode}
        path = f"{self._path}/current"
        async with self._upstream.attempt("GET", path, query=query, headers=WANTED) as wire:
            if wire.status == 204:  # it has no more to tell, and never said how the turn ended
                raise BackendFailed(cut.message)
            async with aclosing(self._read(wire)) as frames:
                async for frame in frames:
                    yield frame

    # -- one connection -------------------------------------------------------------------------------------------

    async def _read(self, wire: Wire) -> AsyncGenerator[Frame, None]:
        if wire.kind != "text/event-stream":
            raise BackendFailed(f"{self._upstream.name} answered with {wire.kind}, not with a stream of events")
        self._wire, self._begun = wire, True
        decoder = Decoder(name=self._upstream.name)
        try:
            while chunk := await wire.body():
                for event in decoder.feed(chunk):
                    if self._is_new(event):
                        yield self._frame(event)
        finally:
            self._wire, self._retry_ms = None, decoder.retry_ms

    def _is_new(self, event: SseEvent) -> bool:
        """Whether the event was not had before; it counts from now on."""
        found = NUMBER.fullmatch(event.id)
        if found is not None and int(found[1]) <= self._had:
            return False
        self._had += 1
        self._last_id = event.id if found is not None else self._last_id
        return True

    def _frame(self, event: SseEvent) -> Frame:
        data = event.data
        for secret in self._secrets:
            data = data.replace(secret, BLOT)
        try:
            return Frame(event.name, exact_json(data), event.id)
        except orjson.JSONDecodeError:
            if event.name not in HEARD:
                return Frame(event.name, None, event.id)
            raise BackendFailed(f"{self._upstream.name} sent a {event.name} that is not JSON") from None


WANTED = {"Accept": "text/event-stream"}


# -- a turn that is told when it is done ------------------------------------------------------------------------------

def frames_of(body: Any) -> list[Frame]:
    """The frames that a turn would have had, had it been streamed."""
    exchange = read_as(ExchangeBody, body, "the answer")
    said = [frame for message in exchange.messages for frame in _told(message)]
    return [Frame("turn_start", {}), *said, Frame("turn_stop", {"stopReason": exchange.stop_reason})]


def _told(message: MessageBody) -> list[Frame]:
    if message.role == "tool":
        return [Frame("tool_result", {"toolCallId": message.tool_call_id, "content": message.content})]
    if message.role != "assistant" or message.content is None:
        return []
    if isinstance(message.content, str):
        return [Frame("text", {"text": message.content})]
    return [Frame(name, block) for block in message.content if (name := _AS.get(str(block.get("type")))) is not None]


_AS = {"text": "text", "thinking": "thinking", "tool_use": "tool_call"}
"""The block of a message, and the frame that tells the same."""
