"""A Socket.IO server: authenticates clients by token, handles their events in order, and sends events of sessions."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, cast

import socketio  # type: ignore[import-untyped]
import structlog
from aiohttp import web
from engineio.exceptions import EngineIOError  # type: ignore[import-untyped]
from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

from gateway.errors import GatewayError, Invalid, TooLarge, Unauthenticated
from gateway.http.answers import Answers, Shape, described
from gateway.http.request import read_body
from gateway.http.security import (
    CONNECTION_LIMITS,
    WRONG_KEY_LIMITER,
    Authenticator,
    accepts_any_content_type,
    bearer_token,
    client_network_of,
    connection_of,
    counted_by_message,
    mark_authenticated,
    public,
    set_current_caller,
)
from gateway.http.socket_relay import SOCKET_RELAY
from gateway.http.websocket import OPEN_SOCKETS, REVOKED_CLOSE_SECONDS, check_upgrade_headers
from gateway.json_values import JsonLimitExceeded, read_json_in_steps
from gateway.logging import SampledLogger
from gateway.quotas import QuotaSlot
from gateway.time_slices import SLICE_BYTES

from .client import MAX_HANDSHAKE_BYTES, PendingHandshakes, SocketIOClient
from .library import JsonReader, SocketIOJson, SocketIOLibraryLogger, SocketIOWebSocket, translate_with_body

log = structlog.get_logger("dragoman.socketio")

POLLING_QUEUE, WEBSOCKET_QUEUE = 8, 256
"""The number of events that may wait for a polling client (some take at most 16 at once), or for a WebSocket."""

ACK_PACKET = "3"
BINARY_PACKETS = ("5", "6")
POLLING_BODY = re.compile(rb"[134b][^\x1e]*(?:\x1e[134b][^\x1e]*)*")
"""Packets of Engine.IO that a polling client may send: close, pong, message."""
RESERVED_EVENTS = ("connect", "disconnect", "*")
"""Names of events that the library uses itself."""
_BEFORE_JSON = re.compile(r"[23]\d*(?=\[)")
"""Matches an event or an acknowledgement before its payload."""
_ACK_NUMBER = re.compile(r"2(\d{1,15})")
"""Matches an event that wants an acknowledgement, and its number."""


class DeferredAck:
    """An acknowledgement that must not delay the next event of the client."""

    def __init__(self, answer: Awaitable[object]) -> None:
        self.answer = answer


class SocketIOListener(Protocol):
    """Handles events of clients: gets the name and the payload; the return value is the acknowledgement."""

    async def on_event(self, peer: SocketIOClient, event: str, body: object) -> object: ...
    async def send_error(self, peer: SocketIOClient, error: GatewayError) -> object:
        """Send an error to a client whose packet is refused."""
    async def on_disconnect(self, peer: SocketIOClient) -> None:
        """Handle the disconnect of a client."""
TEXT = "text/plain"
NO_MESSAGES = Answers()
CONNECTION_QUERY: Mapping[str, Shape] = {"EIO": {"4"}, "transport": {"polling", "websocket"}, "sid": str}


class SocketIOServer:
    """A Socket.IO endpoint of the application; a listener handles the events."""

    def __init__(
        self,
        listener: SocketIOListener,
        guard: Authenticator,
        *,
        patience: Callable[[], float],
        ping_seconds: float,
        most_bytes: int,
        reads: JsonReader = read_json_in_steps,
        software: Callable[[object], str] = lambda auth: "",
    ) -> None:
        self.patience = patience
        self._software = software
        """(what a client sends to authenticate) → the program that the client says it is, if it does."""
        self._listener = listener
        self._guard = guard
        self._peers: dict[str, SocketIOClient] = {}
        self._places: dict[str, QuotaSlot] = {}
        self._upgrades: dict[str, web.Request] = {}
        self._expelling: dict[str, asyncio.Task[None]] = {}
        self._app: web.Application | None = None
        self._sampled = SampledLogger(log)
        self._handshakes = PendingHandshakes(self._limits, self.cut, self._sampled)
        quiet = SocketIOLibraryLogger(self._sampled)
        self._sio = socketio.AsyncServer(
            async_mode="aiohttp", json=SocketIOJson(reads), max_http_buffer_size=most_bytes, ping_interval=ping_seconds,
            cors_allowed_origins=[], logger=quiet, engineio_logger=quiet,  # the origin policy has checked already
        )
        self._make_id, self.eio.generate_id = self.eio.generate_id, self._new_id
        self._dispatch, self._handle_event = dict(self.eio.handlers), self._sio._handle_event
        self._sio._handle_event = self._check_event
        self.eio.on("connect", self._open)
        self.eio.on("message", self._receive)
        self.eio.on("disconnect", self._forget)
        ours = {"websocket": partial(SocketIOWebSocket, self), "translate_request": translate_with_body}
        self.eio._async = {**self.eio._async, **ours}
        self._sio.on("connect", self._connect)
        self._sio.on("disconnect", self._disconnect)
        self._sio.on("*", self._on_event)

    @property
    def eio(self) -> Any:
        return self._sio.eio

    def routes(self, path: str, socket: Answers = NO_MESSAGES) -> list[web.RouteDef]:
        """The routes; `socket` says what goes over a connection in either direction."""
        return [
            web.get(path, described(self.serve, replace(
                socket, answer=str, media_type=TEXT, frames="socketio", query=CONNECTION_QUERY))),
            web.post(path, described(self.serve, Answers(
                str, media_type=TEXT, reads=str, reads_type=TEXT, query=CONNECTION_QUERY))),
            web.options(path, self.serve),
        ]

    def _new_id(self) -> str:
        """The id of a new connection; where several processes serve the port, it names this process."""
        made: str = self._make_id()
        relay = self._app.get(SOCKET_RELAY) if self._app is not None else None
        return relay.mark(made) if relay is not None else made

    def _limits(self) -> Any:
        assert self._app is not None, "somebody has asked"
        return self._app[CONNECTION_LIMITS]()

    @public
    @counted_by_message
    @accepts_any_content_type
    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve a request; the key is in the CONNECT packet, not in a header."""
        check_upgrade_headers(request)
        self._app = request.app
        request.app[OPEN_SOCKETS].add(self)
        sid = request.query.get("sid")
        if sid is None:
            request.app[OPEN_SOCKETS].check_open()
        elif sid not in self.eio.sockets:
            relay = request.app.get(SOCKET_RELAY)
            if relay is not None and (response := await relay.pass_on(request, sid)) is not None:
                return response
            raise Invalid("this connection of Socket.IO does not exist or was closed; connect again", param="sid")
        elif sid not in self._handshakes:
            mark_authenticated(request)
        if sid is not None and "Upgrade" in request.headers:  # the library checks the header, too
            if self.eio.sockets[sid].upgraded or self.eio.sockets[sid].upgrading:
                raise Invalid("this connection of Socket.IO already has a WebSocket", param="sid")
            self._upgrades[sid] = request
            self._restrict(sid)
        elif sid is not None and request.method == "POST":
            await self._read(sid, request)
        try:
            return cast(web.StreamResponse, await self._sio.handle_request(request))
        finally:
            if sid is not None and self._upgrades.get(sid) is request:
                del self._upgrades[sid]

    async def _read(self, transport_id: str, request: web.Request) -> None:
        """Read the body of a polling client, and refuse packets that the library cannot handle."""
        is_known = transport_id not in self._handshakes
        try:
            body = await read_body(request, self.eio.max_http_buffer_size if is_known else MAX_HANDSHAKE_BYTES)
        except TooLarge:
            await self.refuse_size(transport_id)
            await self.cut(transport_id)
            raise
        if body and not POLLING_BODY.fullmatch(body):
            raise Invalid(
                self.log_malformed(ValueError("a body of Engine.IO must have packets that begin with 1, 3 or 4"))
            )

    # -- clients --------------------------------------------------------------------------------------------------

    async def _open(self, transport_id: str, environ: dict[str, object]) -> object:
        """Register a new transport, whose client must authenticate soon."""
        found = await self._dispatch["connect"](transport_id, environ)
        self._await_key(transport_id)
        return found

    async def _forget(self, transport_id: str, reason: object = None) -> None:
        self._handshakes.end(transport_id)
        await self._dispatch["disconnect"](transport_id, reason)

    def _await_key(self, transport_id: str) -> None:
        request = self._request_of(transport_id)
        transport = request.transport if request is not None else None
        self._handshakes.begin(transport_id, client_network_of(transport) if transport is not None else "")
        self._restrict(transport_id)

    def _restrict(self, transport_id: str) -> None:
        """Limit the bytes of a WebSocket until its client is authenticated."""
        request = self._request_of(transport_id)
        if transport_id not in self._handshakes or request is None or "Upgrade" not in request.headers:
            return
        if (connection := connection_of(request)) is not None:
            connection.restrict(MAX_HANDSHAKE_BYTES)

    def _request_of(self, transport_id: str) -> web.Request | None:
        environ = self._sio.environ.get(transport_id) or {}
        return self._upgrades.get(transport_id) or environ.get("aiohttp.request")

    async def _connect(self, sid: str, environ: dict[str, Any], auth: object) -> None:
        token_field = auth.get("token") if isinstance(auth, dict) else None
        token = token_field if isinstance(token_field, str) else bearer_token(environ["aiohttp.request"])
        request = environ["aiohttp.request"]
        try:
            with request.app[WRONG_KEY_LIMITER].track_attempt(request.remote, token):
                caller = await self._guard.authenticate(
                    token, request.remote or "", request.headers, self._software(auth))
            self._places[sid] = request.app[OPEN_SOCKETS].tally.reserve_stream(caller.user)
        except GatewayError as error:
            raise Refused(error.message) from None
        transport_id = self._sio.manager.eio_sid_from_sid(sid, "/")
        peer = self._peers[sid] = SocketIOClient(self, sid, transport_id, caller)
        if caller.credential:
            peer.admission = self._guard.open_requests.add(caller, partial(self._expel, peer))
        self._handshakes.end(transport_id)
        if (asked := self._request_of(transport_id)) is not None:
            mark_authenticated(asked)

    async def _disconnect(self, sid: str, reason: object = None) -> None:
        peer = self._peers.pop(sid, None)
        if (place := self._places.pop(sid, None)) is not None:
            place.close()
        if peer is not None:
            if peer.admission is not None:
                self._guard.open_requests.discard(peer.admission)
            peer.unfollow_all()
            peer.wake_poll()
            connection = self.eio.sockets.get(peer.transport_id)
            if connection is not None and not connection.closing and not connection.closed:
                self._await_key(peer.transport_id)
            await self._listener.on_disconnect(peer)

    def _expel(self, peer: SocketIOClient) -> None:
        """Disconnect a client whose key was revoked."""
        peer.unfollow_all()
        task = self._expelling[peer.sid] = asyncio.create_task(self._part(peer), name=f"expel {peer.sid}")
        task.add_done_callback(lambda done: self._expelling.pop(peer.sid, None))

    async def _part(self, peer: SocketIOClient) -> None:
        """Send the reason, and close the connection even if the client does not read."""
        with suppress(TimeoutError, ConnectionResetError, EngineIOError):
            async with asyncio.timeout(REVOKED_CLOSE_SECONDS):
                await self._listener.send_error(peer, Unauthenticated("the key was revoked or has expired"))
                await self._sio.disconnect(peer.sid)
        await self.cut(peer.transport_id)

    async def _receive(self, transport_id: str, packet: str | bytes) -> None:
        """Let the library read a packet; a malformed packet is refused, with one line in the server log."""
        if not self._handshakes.accepts_packet(transport_id, packet):
            return
        try:
            if isinstance(packet, bytes) or packet.startswith(BINARY_PACKETS):
                raise ValueError("a packet must be text; binary events are not supported")
            if len(packet) > SLICE_BYTES and (before := _BEFORE_JSON.match(packet)) is not None:
                await self._sio.packet_class.json.read_ahead(packet[before.end():])
            await self._dispatch["message"](transport_id, packet)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            reason = self.log_malformed(error)
            number = _ACK_NUMBER.match(packet) if isinstance(packet, str) else None
            answer = await self._refuse(transport_id, _packet_error(error, reason))
            if number is not None and answer is not None:
                await self.eio.send(transport_id, f"{ACK_PACKET}{number[1]}{SocketIOJson.dumps([answer])}")

    async def _check_event(self, transport_id: str, namespace: str | None, number: int | None, body: object) -> None:
        if (namespace or "/") != "/":
            return  # nobody listens
        if not isinstance(body, list) or not body or not isinstance(body[0], str) or body[0] in RESERVED_EVENTS:
            raise ValueError("an event must be an array that begins with its name, which is not a reserved name")
        await self._handle_event(transport_id, namespace, number, body)

    async def refuse_size(self, transport_id: str) -> None:
        await self._refuse(transport_id, TooLarge(f"a packet is larger than {self.eio.max_http_buffer_size} bytes"))

    async def _refuse(self, transport_id: str, error: GatewayError) -> Any:
        """Send an error about a refused packet; return its acknowledgement."""
        peer = self._peers.get(self._sio.manager.sid_from_eio_sid(transport_id, "/"))
        if peer is None:
            return None
        with suppress(ConnectionResetError, EngineIOError):
            return await self._listener.send_error(peer, error)

    async def _on_event(self, event: str, sid: str, *body: object) -> object:
        """Handle the events of a client one after the other."""
        peer = self._peers.get(sid)
        if peer is None:
            return None
        async with peer.command_lock:
            answer = await self._answer(peer, event, body[0] if body else None)
        return await answer.answer if isinstance(answer, DeferredAck) else answer

    async def _answer(self, peer: SocketIOClient, event: str, body: object) -> object:
        if peer.admission is not None and peer.admission.is_revoked:
            return None
        set_current_caller(peer.caller)
        try:
            return await self._listener.on_event(peer, event, body)
        except (ConnectionResetError, EngineIOError):
            return None  # the client has disconnected

    # -- connections ----------------------------------------------------------------------------------------------

    def queue(self, transport_id: str) -> "asyncio.Queue[Any] | None":
        connection = self.eio.sockets.get(transport_id)
        return None if connection is None or connection.closed else connection.queue

    def room(self, transport_id: str) -> int:
        connection = self.eio.sockets.get(transport_id)
        return WEBSOCKET_QUEUE if connection is not None and connection.upgraded else POLLING_QUEUE

    def log_malformed(self, error: Exception) -> str:
        """Write why a packet is malformed; the library cannot handle events of another shape."""
        reason = str(error) if isinstance(error, ValueError) else "an event must be an array that begins with its name"
        self._sampled.info("socketio_packet_malformed", reason=reason[:200])
        return reason

    async def cut(self, transport_id: str) -> None:
        """End a connection without a farewell."""
        connection, request = self.eio.sockets.get(transport_id), self._request_of(transport_id)
        if connection is None:
            return
        upgraded = connection.upgraded
        with suppress(EngineIOError):
            await connection.close(wait=False, abort=True)
        connection.queue.put_nowait(None)  # a polling request may wait for events
        if upgraded and request is not None and request.transport is not None:
            request.transport.abort()
        self.eio.sockets.pop(transport_id, None)

    async def close_when_idle(self) -> None:
        """Close each connection when nothing is being sent to it, at the transport, so that clients reconnect."""
        await asyncio.gather(*(self._leave(peer) for peer in list(self._peers.values())))

    async def _leave(self, peer: SocketIOClient) -> None:
        await peer.wait_until_idle()
        if (connection := self.eio.sockets.get(peer.transport_id)) is not None:
            await self._hang_up(connection)

    async def close(self) -> None:
        """Close all connections: the server stops."""
        for peer in list(self._peers.values()):
            peer.unfollow_all()
        for connection in list(self.eio.sockets.values()):
            await self._hang_up(connection)
        if (watching := getattr(self.eio, "service_task_handle", None)) is not None:
            watching.cancel()

    async def _hang_up(self, connection: Any) -> None:
        with suppress(EngineIOError, ConnectionError):
            await connection.close(wait=False, abort=False)
            connection.queue.put_nowait(None)


def _packet_error(error: Exception, reason: str) -> Invalid:
    """Return the error for a client; a field is named without its index in the array of the packet."""
    if not isinstance(error, JsonLimitExceeded):
        return Invalid(f"malformed packet: {reason}")
    place, _, field = error.field.partition(".")
    field = field if place.isdecimal() else error.field
    return Invalid(f"{field}: {error.words}" if field else error.words, param=field or None)
