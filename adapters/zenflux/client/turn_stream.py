"""Reads one run until it ends or waits for a person; a broken connection is resumed, and every wait is bounded."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from uuid import uuid4

from adapters.zenflux.asks import AskRef, decode_ref
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
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd

from .agent_card import fetch_data, list_of_objects, unwrapped
from .decoder import Decoder, ReadFrame, read_frame
from .readers import members, text

PENDING = "/human-confirmation/pending"
CLIENT_USER = "local"
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
        self.owed: list[Callable[[], Awaitable[bool]]] = []
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

    async def ask(self, method: str, **params: Any) -> None:
        """Send a request; its response will have the same id."""
        assert self.connection is not None, "the run is connected"
        self.request_id = str(uuid4())
        await self.connection.send({"type": "req", "id": self.request_id, "method": method, "params": params})

    async def disconnect(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()

    async def resume(self) -> None:
        """Resume after the last event that was read."""
        await self.ask("session.resume", session_id=self.run_id, after_seq=self.seq)

    def rest(self) -> None:
        """Start the measure of silence again, because a frame came."""
        self.silence, self.quiets = 0.0, 0

    def grace(self, *, soon: bool) -> float:
        """Seconds until the server is asked, longer after each attempt without effect."""
        return (SHORT_SILENCE_SECONDS if soon else SILENCE_SECONDS) * (1 << self.quiets)

    def decode(self, body: Any) -> list[DecodedItem]:
        if not isinstance(body, dict):
            raise BackendFailed(f"{self._upstream.name} sent a frame that is no object")
        if body.get("type") == "res":
            return self._answered(body)
        read = read_frame(ParsedFrame("", body))
        if read is None or not self._is_ours(read):
            return []
        seq = max(0, read.bindings.get("out_seq") or 0)
        if seq and seq <= self.seq:
            return []  # read before the connection broke
        if seq:
            self.seq, self.broken = seq, None
        return self._news(self.decoder.take(read), seq)

    def _is_ours(self, read: ReadFrame) -> bool:
        given = read.bindings
        if given.get("session_id") not in (None, "", self.session_id):
            return False
        run = given.get("run_id")
        self.run_id = self.run_id or run or ""
        return not run or run == self.run_id

    def conclude(self) -> list[DecodedItem]:
        return self._news(self.decoder.conclude(), 0)

    def _news(self, heard: Any, seq: int) -> list[DecodedItem]:
        """Decode frames that were read before, without giving their items again."""
        old = bool(self.awaited) or (0 < seq <= self.had)
        refs = [decode_ref(one.ref) for one in heard if isinstance(one, RemoteAsk)]
        self.awaited -= {ref.request_id for ref in refs}
        self.over = any(isinstance(one, RemoteTurnEnd) for one in heard)
        if old:
            return [one for one in heard if isinstance(one, RemoteTurnEnd)]
        self.asked += refs
        return list(heard)

    # -- responses ------------------------------------------------------------------------------------------------

    def _answered(self, body: dict[str, Any]) -> list[DecodedItem]:
        if body.get("id") != self.request_id:
            return []
        if body.get("ok") is not True:
            raise self._refusal(members(body.get("error")))
        payload = members(body.get("payload"))
        self.run_id, self.broken = self.run_id or text(payload.get("session_id")), None
        return []

    def _refusal(self, error: dict[str, Any]) -> GatewayError:
        code, said = text(error.get("code")) or "an error", text(error.get("message"))
        words = self._upstream.quote(f"{code}{': ' + said if said else ''}".encode())
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

    async def hear(self, talk: RemoteRun) -> AsyncGenerator[DecodedItem, None]:
        """Read until the run is over, or waits for people."""
        frames = RunFrames(self._upstream, self._sockets, talk, self._find, ends_silently=self._ends_silently)
        reconnector = Reconnector(self._upstream.timeouts.attempts)
        talk.asked, talk.expecting = [], False
        while not talk.over:
            try:
                heard = talk.decode(await reconnector.read(frames))
                self._ends_silently = self._ends_silently and not talk.over
            except SilenceTimeout:
                if talk.expecting:
                    return
                heard = await self._after_silence(talk)
            for one in heard:
                yield one
            if heard and talk.asked and talk.decoder.paused and not talk.over:
                talk.expecting = await self._asks_more(talk)
                if not talk.expecting:
                    return

    # -- the state of a run ---------------------------------------------------------------------------------------

    async def _after_silence(self, talk: RemoteRun) -> list[DecodedItem]:
        """Some servers do not send the end of a run; its state shows whether it goes on.

        A run that still waits after its answer had sent its ask before it could take answers.
        """
        if talk.owed and await self._waits(talk.run_id):
            talk.owed = [tell for tell in talk.owed if not await tell()]
        if talk.decoder.decided or (talk.decoder.closing and not await self._goes_on(talk.run_id)):
            self._ends_silently = True
            return talk.conclude()
        return []

    async def _waits(self, run_id: str) -> bool:
        """Whether the run has an open ask; if the server cannot tell, what is known here counts."""
        try:
            return bool(await self.pending(run_id))
        except GatewayError:
            return True

    async def _goes_on(self, run_id: str) -> bool:
        try:
            state = members(unwrapped(await self._upstream.json("GET", f"/session/{run_id}")))
        except GatewayError as error:
            return upstream_status(error) != 404
        return state.get("active") is not False

    async def _asks_more(self, talk: RemoteRun) -> bool:
        """Whether it has more open asks than it has sent; a server that cannot tell has one at a time."""
        try:
            pending = await self.pending(talk.run_id)
        except GatewayError:
            return False
        heard, kinds = {ref.request_id for ref in talk.asked}, {ref.kind for ref in talk.asked if not ref.request_id}
        return any(text(one.get("request_id")) not in heard and kind_of(one) not in kinds for one in pending)

    async def pending(self, run_id: str = "") -> list[dict[str, Any]]:
        """The open asks, of a run or of all."""
        query = {"session_id": run_id} if run_id else None
        found = list_of_objects(unwrapped(await self._upstream.json("GET", PENDING, query=query)), "pending")
        return [one for one in found if run_id in ("", one.get("session_id", run_id))]

    async def _find(self, talk: RemoteRun) -> str | None:
        """The run that our message began: the running one, or else a new one that is over already."""
        run_id = await self.running(talk.session_id)
        if run_id is not None or talk.before is None:
            return run_id
        path = f"/conversations/{talk.session_id}/messages"
        query = {"limit": str(MAX_MESSAGES_SEARCHED), "order": "desc"}
        found = list_of_objects(unwrapped(await self._upstream.json("GET", path, query=query)), "messages")
        messages = sorted(found, key=lambda one: text(one.get("created_at")))  # servers differ in what desc means
        runs = [text(members(one.get("metadata")).get("session_id")) for one in messages]
        newest = next((run for run in reversed(runs) if run), "")
        return newest if newest != talk.before else None

    async def running(self, session_id: str) -> str | None:
        """The running run of a conversation, if the server names it."""
        active = list_of_objects(await fetch_data(self._upstream, "/sessions"), "sessions")
        return next((text(one.get("session_id")) or None for one in active
                     if one.get("conversation_id") == session_id), None)


class RunFrames:
    """The frames of one run, on as many connections as it takes; each wait for a frame is bounded."""

    def __init__(
        self, upstream: HttpClient, sockets: WebSocketConnector, talk: RemoteRun, find: FindRun, *, ends_silently: bool,
    ) -> None:
        """`find` looks for a run whose beginning was missed; `ends_silently` says that the server sends no ends."""
        self._upstream, self._sockets, self._talk, self._find = upstream, sockets, talk, find
        self._ends_silently = ends_silently
        self._deadline = _now() + upstream.timeouts.total

    @property
    def cursor(self) -> int:
        return self._talk.seq

    async def connect(self) -> None:
        """Resume the run; nothing happens while its first connection lasts."""
        talk = self._talk
        if talk.connection is not None:
            return
        if not talk.begun:
            talk.run_id = await self._find(talk) or ""
        if not talk.begun:
            reason = f"{talk.broken.message}; " if talk.broken is not None else ""
            raise RunLost(f"{reason}whether it took the message is not known")
        talk.connection, talk.silence = await self._sockets.connect(), 0.0
        await talk.resume()

    async def receive(self) -> Any:
        """The next frame; `SilenceTimeout` if the server should be asked whether the run goes on."""
        talk, patience = self._talk, self._upstream.timeouts
        assert talk.connection is not None, "the run is connected"
        limit = patience.idle if talk.begun else patience.first_byte
        wait = min(self._deadline - _now(), limit - talk.silence)
        closing = talk.decoder.closing
        grace = talk.grace(soon=bool(talk.owed) or (closing and self._ends_silently))
        graceful = (talk.expecting or closing or talk.owed) and grace < wait
        wait = grace if graceful else wait
        try:
            frame = await talk.connection.receive(wait)
        except TimeoutError:
            talk.silence += wait
            if graceful:
                talk.quiets += 1
                raise SilenceTimeout from None
            if talk.silence >= limit:
                raise TimedOut(f"{self._upstream.name} has said nothing for {limit:g} seconds") from None
            raise TurnTimedOut(f"{self._upstream.name} took longer than {patience.total:g} seconds in all") from None
        talk.rest()
        return frame

    async def disconnect(self) -> None:
        await self._talk.disconnect()

    async def check_resumable(self, error: GatewayError) -> None:
        if isinstance(error, TurnTimedOut) or not isinstance(error, (TimedOut, *RETRYABLE_ERRORS)):
            raise error
        self._talk.broken = error


def kind_of(pending: dict[str, Any]) -> str:
    return text(members(pending.get("metadata")).get("kind"))


def _now() -> float:
    return asyncio.get_running_loop().time()


SILENCE_SECONDS = 2.0
"""Seconds of silence after which the server is asked whether a run goes on that may be over."""
SHORT_SILENCE_SECONDS = 0.1
"""Seconds of silence if the run is probably over, or if an answer has to be sent again."""


class RunLost(BackendFailed):
    """A run that was cut, and that the server cannot go on with; it may well go on there."""
