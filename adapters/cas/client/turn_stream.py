"""Reads the stream of one turn at a CAS server, over several connections if need be."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial

import orjson
from multidict import MultiDict

from adapters.cas.wire import PREVIEWED_TYPES
from gateway.client import (
    RETRYABLE_ERRORS,
    EventStream,
    HttpClient,
    Reconnector,
    SseEvent,
    read_pages,
    upstream_status,
)
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from gateway.ids import Mint
from gateway.json_values import read_exact_json
from gateway.ports import DecodedItem, ParsedFrame

from .decoder import Decoder, listed_event, read_event
from .readers import ReceivedEvent, read_page
from .thread_decoder import COORDINATOR, STATUSES

DELTA_QUERY = MultiDict([("event_deltas[]", kind) for kind in PREVIEWED_TYPES])
NOT_SERVED_STATUSES = (400, 404, 405, 501)
"""The statuses of a server that does not have a route."""
MAX_THREAD_PAGES = 10_000
"""So many pages of a thread's events are read."""
THREAD_CUES = ("scope.opened", *STATUSES)
"""The events of a thread itself."""


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
        self._open = AsyncExitStack()
        self._events: EventStream | None = None
        self._connected_at = self.cursor
        """The cursor when the last connection was made."""
        self._last_id = ""

    async def items(self) -> AsyncGenerator[DecodedItem, None]:
        """Until the turn has ended, or waits for people."""
        reconnector = Reconnector(self._upstream.timeouts.attempts)
        try:
            while True:
                for event in await reconnector.read(self):
                    frame, self._last_id = frame_of_event(event, self._last_id), event.id
                    for one in await self.take(frame):
                        yield one
                    if self.decoder.paused or self.decoder.over:
                        return
        finally:
            await self.disconnect()

    async def take(self, frame: ParsedFrame) -> list[DecodedItem]:
        """The items of one frame of the session's stream, after those of its thread."""
        if not isinstance(frame.body, dict):
            return self.decoder.feed(frame)
        event = read_event(frame)
        if not self._is_ours(event):
            return []
        items = [] if event.is_preview else [
            one for each in await self._of_thread(event) for one in self.decoder.take(each)]
        items += self.decoder.take(event)
        self._note(event)
        return items

    def _note(self, event: ReceivedEvent) -> None:
        """Where the stream can be taken up again."""
        if event.is_preview:
            self._place = "" if event.id == (event.given.get("final_id") or "") else event.id
        else:
            self._cursor = self._place = event.id or self._cursor

    def _is_ours(self, event: ReceivedEvent) -> bool:
        """Whether an event belongs to no other turn of the session."""
        return not event.turn_id or not self._turn_id or event.turn_id == self._turn_id

    # -- the session's stream -------------------------------------------------------------------------------------

    @property
    def cursor(self) -> tuple[str, str]:
        return self._cursor, self._place or self._cursor

    async def connect(self) -> None:
        self._connected_at, self._last_id = self.cursor, ""
        if self._place in ("", self._cursor):
            self._place = self._cursor
            self.decoder.on_reconnect()
        self._events = await self._open.enter_async_context(self._upstream.stream(
            "GET", f"{self._at}/events/stream", headers={"Last-Event-ID": self._place}, query=DELTA_QUERY, attempts=1,
        ))

    async def receive(self) -> list[SseEvent]:
        assert self._events is not None, "the stream is connected"
        if not (events := await self._events.read()):
            raise ConnectionLost(f"{self._upstream.name} ended the stream before the turn had ended")
        return events

    async def disconnect(self) -> None:
        await self._open.aclose()
        self._events = None

    async def check_resumable(self, error: GatewayError) -> None:
        """After a preview that the server has forgotten, the last whole event; no server is silent twice."""
        if self._place != self._cursor and upstream_status(error) in NOT_SERVED_STATUSES:
            self._place = self._cursor
            return
        is_first_silence = isinstance(error, TimedOut) and self.cursor != self._connected_at
        if not is_first_silence and not isinstance(error, RETRYABLE_ERRORS):
            raise error

    # -- sub-agents' threads --------------------------------------------------------------------------------------

    async def _of_thread(self, event: ReceivedEvent) -> list[ReceivedEvent]:
        """The earlier events of an event's thread that were not read yet."""
        thread_id = self._thread_of(event)
        if thread_id is None or not self._has_threads:
            return []
        try:
            found = await self._unread_of(thread_id)
        except BackendFailed as error:
            if upstream_status(error) not in NOT_SERVED_STATUSES:
                raise
            self._has_threads = False
            return []
        places = [at for at, one in enumerate(found) if one.id == event.id]
        found = found[:places[0]] if places else found
        self._threads[thread_id] = event.id if places else self._threads[thread_id]
        return [one for one in found if self._is_ours(one)]

    def _thread_of(self, event: ReceivedEvent) -> str | None:
        """The sub-agent's thread of a kept event; for a message to the parent, the sender's."""
        own, sender = event.thread_id, event.given.get("from_id")
        is_status = event.cue in THREAD_CUES and event.given.get("role") != COORDINATOR
        if is_status and own:
            self._threads.setdefault(own, "")
        return next((thread for thread in (sender, own) if thread and thread in self._threads), None)

    async def _unread_of(self, thread_id: str) -> list[ReceivedEvent]:
        path, after = f"{self._at}/threads/{thread_id}/events", self._threads[thread_id]
        events = await read_pages(partial(read_page, self._upstream, path, after=after), max_pages=MAX_THREAD_PAGES)
        return [*map(listed_event, events)]


def frame_of_event(event: SseEvent, before: str = "") -> ParsedFrame:
    """An id that stays as it was before is not the event's own."""
    try:
        return ParsedFrame(event.name, read_exact_json(event.data), "" if event.id == before else event.id)
    except orjson.JSONDecodeError:
        raise BackendFailed("the upstream sent an event that is not JSON") from None
