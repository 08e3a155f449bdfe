"""Reads the stream of one turn at a CAS server, over several connections if need be."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from multidict import MultiDict

from adapters.cas.wire import PREVIEWED_TYPES
from gateway.client import HttpClient, SseEvent, suppress_statuses, upstream_status
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from gateway.ids import Mint
from gateway.json_values import read_exact_json
from gateway.ports import DecodedItem, ParsedFrame

from .decoder import Decoder
from .provisioning import require_object
from .readers import event_type_of, frame_event_id, is_stored, previewed_event_id
from .thread_decoder import COORDINATOR

DELTA_QUERY = MultiDict([("event_deltas[]", kind) for kind in PREVIEWED_TYPES])
NOT_SERVED_STATUSES = (400, 404, 405, 501)
"""The statuses of a server that does not have a route."""
RETRY_DELAY = 0.2
"""Seconds to wait before a stream without events is opened again; so many more each time."""
GOOD_CONNECTION_SECONDS = 5.0
"""A connection that lasted longer than this was a good one, even without events."""


class TurnStream:
    """One turn of one session.

    A broken stream is opened again with `Last-Event-ID`. If the server's previews have ids of their own, it goes on
    right after the last of them. If they have none, or the server has forgotten them, it goes on after the last
    complete event; previews of the next one are ignored, and that event adds what is missing. The text of sub-agents
    is not in the session's stream: it is read from the list of their thread whenever the stream has an event of it.
    """

    def __init__(self, upstream: HttpClient, session_id: str, turn_id: str, cursor: str, mint: Mint) -> None:
        self.decoder = Decoder(mint)
        self._upstream, self._at = upstream, f"/sessions/{session_id}"
        self._turn_id = turn_id
        self._cursor = cursor
        """The last whole event."""
        self._place = cursor
        """The id of the last frame; empty if that frame had none."""
        self._threads: dict[str, str] = {}
        """The last event that was read of each sub-agent's thread."""
        self._has_threads = True

    async def items(self) -> AsyncGenerator[DecodedItem, None]:
        """Until the turn has ended, or waits for people."""
        failures = 0
        while True:
            since, reached, tried = asyncio.get_running_loop().time(), self._reached, True
            error: GatewayError = ConnectionLost(f"{self._upstream.name} ended the stream before the turn had ended")
            try:
                async with aclosing(self._connection()) as frames:
                    async for frame in frames:
                        tried = False
                        for one in await self.take(frame):
                            yield one
                        if self.decoder.paused or self.decoder.over:
                            return
                tried = False
            except (ConnectionLost, TimedOut) as failed:
                error = failed
            lasted = (
                isinstance(error, ConnectionLost)
                and asyncio.get_running_loop().time() - since > GOOD_CONNECTION_SECONDS
            )
            failures = 0 if lasted or self._reached != reached else failures + 1
            is_final = tried or isinstance(error, TimedOut) or failures >= self._upstream.timeouts.attempts
            if failures and is_final:
                raise error
            await asyncio.sleep(RETRY_DELAY * failures)

    @property
    def _reached(self) -> tuple[str, str]:
        """The cursor for the server."""
        return self._cursor, self._place or self._cursor

    async def take(self, frame: ParsedFrame) -> list[DecodedItem]:
        """The items of one frame of the session's stream, after those of its thread."""
        if not self._is_ours(frame):
            return []
        frames = [*await self._of_thread(frame), frame]
        said = [one for each in frames for one in self.decoder.feed(each)]
        self._note(frame)
        return said

    def _note(self, frame: ParsedFrame) -> None:
        """Where the stream can be taken up again."""
        if is_stored(frame):
            self._cursor = self._place = frame_event_id(frame) or self._cursor
        else:
            own = frame_event_id(frame)
            self._place = "" if own == previewed_event_id(frame) else own

    def _is_ours(self, frame: ParsedFrame) -> bool:
        """Whether a frame belongs to another turn of the session."""
        turn_id = frame.body.get("turn_id") if isinstance(frame.body, dict) else None
        return not turn_id or not self._turn_id or turn_id == self._turn_id

    # -- the session's stream -------------------------------------------------------------------------------------

    async def _connection(self) -> AsyncGenerator[ParsedFrame, None]:
        if self._place not in ("", self._cursor):
            with suppress_statuses(NOT_SERVED_STATUSES):
                async with aclosing(self._frames(self._place)) as frames:
                    async for frame in frames:
                        yield frame
                return
        self._place = self._cursor
        self.decoder.on_reconnect()
        async with aclosing(self._frames(self._cursor)) as frames:
            async for frame in frames:
                yield frame

    async def _frames(self, after: str) -> AsyncGenerator[ParsedFrame, None]:
        before, headers = "", {"Last-Event-ID": after}
        path = f"{self._at}/events/stream"
        async with self._upstream.stream("GET", path, headers=headers, query=DELTA_QUERY) as stream:
            while events := await stream.read():
                for event in events:
                    yield frame_of_event(event, before)
                    before = event.id

    # -- sub-agents' threads --------------------------------------------------------------------------------------

    async def _of_thread(self, frame: ParsedFrame) -> list[ParsedFrame]:
        """The events of a frame's thread before it that were not read yet."""
        thread_id = self._thread_of(frame)
        if thread_id is None or not self._has_threads:
            return []
        try:
            found = await self._unheard(thread_id)
        except BackendFailed as error:
            if upstream_status(error) not in NOT_SERVED_STATUSES:
                raise
            self._has_threads = False
            return []
        places = [at for at, event in enumerate(found) if event.get("id") == frame_event_id(frame)]
        found = found[:places[0]] if places else found
        self._threads[thread_id] = frame_event_id(frame) if places else self._threads[thread_id]
        frames = [ParsedFrame(str(event.get("type")), event, str(event.get("id") or "")) for event in found]
        return [one for one in frames if self._is_ours(one)]

    def _thread_of(self, frame: ParsedFrame) -> str | None:
        """The sub-agent's thread of a kept frame; for a message to the parent, the sender's."""
        if not isinstance(frame.body, dict) or not is_stored(frame):
            return None
        own, sender = (frame.body.get(name) for name in ("session_thread_id", "from_session_thread_id"))
        is_status = event_type_of(frame).startswith("session.thread_") and frame.body.get("role") != COORDINATOR
        if is_status and isinstance(own, str) and own:
            self._threads.setdefault(own, "")
        return next((thread for thread in (sender, own) if isinstance(thread, str) and thread in self._threads), None)

    async def _unheard(self, thread_id: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        query = {"limit": "100", "order": "asc"}
        after = {"after_id": self._threads[thread_id]} if self._threads[thread_id] else {}
        while True:
            page = require_object(await self._upstream.json(
                "GET", f"{self._at}/threads/{thread_id}/events", query={**query, **after}), "the events of a thread")
            rows = page.get("data")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise BackendFailed(f"{self._upstream.name} answered with a list that has no data")
            found += rows
            if page.get("has_more") is not True or not isinstance(page.get("next_page"), str) or not rows:
                return found
            after = {"page": page["next_page"]}


def frame_of_event(event: SseEvent, before: str = "") -> ParsedFrame:
    """An id that stays as it was before is not the event's own."""
    try:
        return ParsedFrame(event.name, read_exact_json(event.data), "" if event.id == before else event.id)
    except orjson.JSONDecodeError:
        raise BackendFailed("the upstream sent an event that is not JSON") from None
