"""Reads one run until it ends or waits for a person; a broken connection is resumed, and every wait is bounded."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from uuid import uuid4

from adapters.zenflux.asks import AskRef, decode_ref
from adapters.zenflux.bodies import RequestFrame, ResponseFrame, ResumeBody, SessionBody
from gateway.client import (
    RETRYABLE_ERRORS,
    HttpClient,
    Reconnector,
    WebSocketConnection,
    WebSocketConnector,
    upstream_status,
)
from gateway.errors import BackendFailed, GatewayError, Overloaded, TimedOut
from gateway.ids import Mint
from gateway.json_values import JsonObject
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from mappings.language import Bindings

from .agent_card import fetch_data
from .decoder import Decoder, read_event
from .readers import ZENFLUX, RunEvent, read_body, read_list, unwrap

PENDING = "/human-confirmation/pending"
MAX_MESSAGES_SEARCHED = 5
"""How many messages are searched for a run whose beginning was missed."""


FindRun = Callable[["RemoteRun"], Awaitable[str | None]]


class TurnTimedOut(TimedOut):
    """The run took longer in all than it may; taking it up again would not help."""


class SilenceTimeout(Exception):
    """The server was silent for a while, and the run may be over."""


class RemoteRun:
    """Frames in, decoded items out."""

    def __init__(
        self, session_id: str, mint: Mint, upstream: HttpClient, connection: WebSocketConnection, *, run_id: str = ""
    ) -> None:
        self.session_id, self.run_id = session_id, run_id
        self.connection: WebSocketConnection | None = connection
        self.decoder = Decoder(mint)
        self.seq = 0
        """The last event that was read."""
        self.request_id = ""
        self.broken: GatewayError | None = None
        """Why the run had to be resumed, while it is unknown whether it can be."""
        self.silence, self.quiets = 0.0, 0
        self.undelivered: list[Callable[[], Awaitable[bool]]] = []
        """Answers to asks that the server did not know yet; each is sent again, and returns whether it was taken."""
        self.before: str | None = None
        """The run before this one; None if that is unknown."""
        self.over = False
        self.asked: list[AskRef] = []
        self.expecting = False
        """Whether the server has more open asks than it has sent."""
        self.had = 0
        """Events up to this one were read before, by another process."""
        self.awaited: set[str] = set()
        """Asks that were read before, by another process; the events after them are new."""
        self._upstream = upstream

    @property
    def begun(self) -> bool:
        return bool(self.run_id)

    async def request(self, method: str, params: Any) -> None:
        """Send a request; its response will have the same id."""
        assert self.connection is not None, "the run is connected"
        self.request_id = str(uuid4())
        await self.connection.send(ZENFLUX.spell(RequestFrame(id=self.request_id, method=method, params=params)))

    async def disconnect(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()

    async def resume(self) -> None:
        """Resume after the last event that was read."""
        position = ResumeBody(run_id=self.run_id, after_seq=self.seq)
        await self.request(ResumeBody.row, ZENFLUX.spell(position))

    def rest(self) -> None:
        """Start the measure of silence again, because a frame came."""
        self.silence, self.quiets = 0.0, 0

    def grace(self, *, soon: bool) -> float:
        """Seconds until the server is asked, longer after each attempt without effect."""
        return (SHORT_SILENCE_SECONDS if soon else SILENCE_SECONDS) * (1 << self.quiets)

    def decode(self, body: object) -> list[DecodedItem]:
        if not isinstance(body, dict):
            raise BackendFailed(f"{self._upstream.name} sent a frame that is not an object")
        event = read_event(ParsedFrame("", body))
        if event is None:
            self._take_response(body)
            return []
        if not self._is_ours(event) or 0 < event.seq <= self.seq:
            return []  # it was read before the connection broke
        if event.seq:
            self.seq, self.broken = event.seq, None
        return self._new_items(self.decoder.take(event), event.seq)

    def _is_ours(self, event: RunEvent) -> bool:
        if event.session_id not in ("", self.session_id):
            return False
        self.run_id = self.run_id or event.run_id
        return event.run_id in ("", self.run_id)

    def conclude(self) -> list[DecodedItem]:
        return self._new_items(self.decoder.conclude(), 0)

    def _new_items(self, items: Any, seq: int) -> list[DecodedItem]:
        """Decode frames that were read before, without giving their items again."""
        old = bool(self.awaited) or (0 < seq <= self.had)
        refs = [decode_ref(one.ref) for one in items if isinstance(one, RemoteAsk)]
        self.awaited -= {ref.request_id for ref in refs}
        self.over = any(isinstance(one, RemoteTurnEnd) for one in items)
        if old:
            return [one for one in items if isinstance(one, RemoteTurnEnd)]
        self.asked += refs
        return list(items)

    # -- responses ------------------------------------------------------------------------------------------------

    def _take_response(self, body: JsonObject) -> None:
        """Raises the refusal of the last request; another frame that the table does not have means nothing."""
        if not ZENFLUX.table.is_object(ResponseFrame.row, body):
            return
        response = read_body(ResponseFrame.row, body)
        if response["id"] != self.request_id:
            return
        if response["is_ok"] is not True:
            raise self._refusal(response["code"] or "an error", response["message"])
        self.run_id, self.broken = self.run_id or response["run_id"] or "", None

    def _refusal(self, code: str, message: str | None) -> GatewayError:
        words = self._upstream.quote(f"{code}{': ' + message if message else ''}".encode())
        if self.broken is not None:
            return RunLost(f"{self.broken.message}; it cannot be taken up again ({words})")
        kind = Overloaded if code == "OVERLOADED" else BackendFailed
        return kind(f"{self._upstream.name} refused: {words}", details={"upstream_code": code})


class TurnStream:
    """Reads the runs of one server.

    A run whose connection broke is resumed with `session.resume` after the number of the last event; repeated events
    are left out. If the connection broke before the server named the run, the run is looked for among the running ones
    of the conversation, and in its newest messages. If the server cannot resume, the failure is raised.
    """

    def __init__(self, upstream: HttpClient, sockets: WebSocketConnector) -> None:
        self._upstream, self._sockets = upstream, sockets
        self._ends_silently = False
        """Whether the last run ended without an end from the server."""

    async def read(self, run: RemoteRun) -> AsyncGenerator[DecodedItem, None]:
        """Read until the run is over, or waits for people."""
        frames = RunFrames(self._upstream, self._sockets, run, self._find, ends_silently=self._ends_silently)
        reconnector = Reconnector(self._upstream.timeouts.attempts)
        run.asked, run.expecting = [], False
        while not run.over:
            try:
                items = run.decode(await reconnector.read(frames))
                self._ends_silently = self._ends_silently and not run.over
            except SilenceTimeout:
                if run.expecting:
                    return
                items = await self._after_silence(run)
            for one in items:
                yield one
            if items and run.asked and run.decoder.paused and not run.over:
                run.expecting = await self._asks_more(run)
                if not run.expecting:
                    return

    # -- the state of a run ---------------------------------------------------------------------------------------

    async def _after_silence(self, run: RemoteRun) -> list[DecodedItem]:
        """Some servers do not send the end of a run; its state shows whether it goes on.

        A run that still waits after its answer had sent its ask before it could take answers.
        """
        if run.undelivered and await self._waits(run.run_id):
            run.undelivered = [deliver for deliver in run.undelivered if not await deliver()]
        if run.decoder.decided or (run.decoder.closing and not await self._goes_on(run.run_id)):
            self._ends_silently = True
            return run.conclude()
        return []

    async def _waits(self, run_id: str) -> bool:
        """Whether the run has an open ask; if the server cannot tell, what is known here counts."""
        try:
            return bool(await self.pending(run_id))
        except GatewayError:
            return True

    async def _goes_on(self, run_id: str) -> bool:
        try:
            state = read_body(SessionBody.row, unwrap(await self._upstream.json("GET", f"/session/{run_id}")))
        except GatewayError as error:
            return upstream_status(error) != 404
        return state["active"] is not False

    async def _asks_more(self, run: RemoteRun) -> bool:
        """Whether it has more open asks than it has sent; a server that cannot tell has one at a time."""
        try:
            pending = await self.pending(run.run_id)
        except GatewayError:
            return False
        known, kinds = {ref.request_id for ref in run.asked}, {ref.kind for ref in run.asked if not ref.request_id}
        return any((one["request_id"] or "") not in known and (one["kind"] or "") not in kinds for one in pending)

    async def pending(self, run_id: str = "") -> list[Bindings]:
        """The open asks, of a run or of all."""
        query = {"session_id": run_id} if run_id else None
        response = unwrap(await self._upstream.json("GET", PENDING, query=query))
        found = read_list("list.pending", response)
        return [one for one in found if run_id in ("", one["run_id"] or run_id)]

    async def _find(self, run: RemoteRun) -> str | None:
        """The run that our message began: the running one, or else a new one that is over already."""
        run_id = await self.running(run.session_id)
        if run_id is not None or run.before is None:
            return run_id
        path = f"/conversations/{run.session_id}/messages"
        query = {"limit": str(MAX_MESSAGES_SEARCHED), "order": "desc"}
        response = unwrap(await self._upstream.json("GET", path, query=query))
        found = read_list("list.messages", response)
        messages = sorted(found, key=lambda one: one["at"] or 0.0)  # servers differ in what desc means
        runs = [one["run_id"] for one in messages]
        newest = next((run for run in reversed(runs) if run), "")
        return newest if newest != run.before else None

    async def running(self, session_id: str) -> str | None:
        """The running run of a conversation, if the server names it."""
        active = read_list("list.sessions", await fetch_data(self._upstream, "/sessions"))
        return next((one["run_id"] for one in active if one["session_id"] == session_id), None)


class RunFrames:
    """The frames of one run, on as many connections as it takes; each wait for a frame is bounded."""

    def __init__(
        self, upstream: HttpClient, sockets: WebSocketConnector, run: RemoteRun, find: FindRun, *, ends_silently: bool,
    ) -> None:
        """`find` looks for a run whose beginning was missed; `ends_silently` says that the server sends no ends."""
        self._upstream, self._sockets, self._run, self._find = upstream, sockets, run, find
        self._ends_silently = ends_silently
        self._deadline = _now() + upstream.timeouts.total

    @property
    def cursor(self) -> int:
        return self._run.seq

    async def connect(self) -> None:
        """Resume the run; nothing happens while its first connection lasts."""
        run = self._run
        if run.connection is not None:
            return
        if not run.begun:
            run.run_id = await self._find(run) or ""
        if not run.begun:
            reason = f"{run.broken.message}; " if run.broken is not None else ""
            raise RunLost(f"{reason}whether it took the message is not known")
        run.connection, run.silence = await self._sockets.connect(), 0.0
        await run.resume()

    async def receive(self) -> Any:
        """The next frame; `SilenceTimeout` if the server should be asked whether the run goes on."""
        run, patience = self._run, self._upstream.timeouts
        assert run.connection is not None, "the run is connected"
        limit = patience.idle if run.begun else patience.first_byte
        wait = min(self._deadline - _now(), limit - run.silence)
        closing = run.decoder.closing
        grace = run.grace(soon=bool(run.undelivered) or (closing and self._ends_silently))
        graceful = (run.expecting or closing or run.undelivered) and grace < wait
        wait = grace if graceful else wait
        try:
            frame = await run.connection.receive(wait)
        except TimeoutError:
            run.silence += wait
            if graceful:
                run.quiets += 1
                raise SilenceTimeout from None
            if run.silence >= limit:
                raise TimedOut(f"{self._upstream.name} has sent nothing for {limit:g} seconds") from None
            raise TurnTimedOut(f"{self._upstream.name} took longer than {patience.total:g} seconds in all") from None
        run.rest()
        return frame

    async def disconnect(self) -> None:
        await self._run.disconnect()

    async def check_resumable(self, error: GatewayError) -> None:
        if isinstance(error, TurnTimedOut) or not isinstance(error, (TimedOut, *RETRYABLE_ERRORS)):
            raise error
        self._run.broken = error


def _now() -> float:
    return asyncio.get_running_loop().time()


SILENCE_SECONDS = 2.0
"""Seconds of silence after which the server is asked whether a run goes on that may be over."""
SHORT_SILENCE_SECONDS = 0.1
"""Seconds of silence if the run is probably over, or if an answer has to be sent again."""


class RunLost(BackendFailed):
    """A run that was cut, and that the server cannot go on with; it may well go on there."""
