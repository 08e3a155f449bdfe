"""Socket.IO: clients known by their token, each heard in the order it speaks, sessions followed by cursors."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import orjson
import socketio  # type: ignore[import-untyped]
import structlog
from aiohttp import WSCloseCode, web
from engineio.async_drivers.aiohttp import WebSocket  # type: ignore[import-untyped]
from engineio.exceptions import EngineIOError  # type: ignore[import-untyped]
from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

from gateway.errors import GatewayError, Invalid, TooLarge
from gateway.model import LimitExceeded, read_json
from gateway.quotas import Place

from .guard import Guard, bearer, public
from .peers import Peer
from .rates import WRONG_KEYS
from .sockets import SOCKETS

log = structlog.get_logger("dragoman.socketio")

BY_POLLING, BY_SOCKET = 8, 256
"""How many events may wait for a client that polls (some take no more than 16 at once), or has a socket."""

ACK = "3"
_NUMBER = re.compile(r"2(\d{1,15})")
"""An event that is to be acknowledged, and by which number."""


class Json:
    """What the Socket.IO server reads and writes JSON with."""

    @staticmethod
    def dumps(value: Any, **_: Any) -> str:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()

    def __init__(self, reads: Callable[[str], Any]) -> None:
        self.loads = reads


class Later:
    """An answer that is not to hold up what the client says next."""

    def __init__(self, answer: Awaitable[Any]) -> None:
        self.answer = answer


class Listener(Protocol):
    """Who hears what clients say: the event's name and what came with it; what is returned acknowledges it."""

    async def hear(self, peer: Peer, event: str, said: Any) -> Any: ...
    async def refuse(self, peer: Peer, error: GatewayError) -> Any:
        """Tell a client that what it sent is not taken."""
    async def gone(self, peer: Peer) -> None:
        """The client has left."""


class SocketServer:
    """A Socket.IO endpoint of the application; what is said there is a listener's business."""

    def __init__(
        self, listener: Listener, guard: Guard, *, patience: Callable[[], float], ping_seconds: float, most_bytes: int,
        origins: Sequence[str], reads: Callable[[str], Any] = read_json,
    ) -> None:
        self.patience = patience
        self._listener = listener
        self._guard = guard
        self._peers: dict[str, Peer] = {}
        self._places: dict[str, Place] = {}
        self._upgrades: dict[str, web.Request] = {}
        self._sio = socketio.AsyncServer(
            async_mode="aiohttp", json=Json(reads), max_http_buffer_size=most_bytes, ping_interval=ping_seconds,
            cors_allowed_origins="*" if "*" in origins else list(origins) or None, logger=_quiet,
            engineio_logger=_quiet,
        )
        self._dispatch = self.eio.handlers["message"]
        self.eio.on("message", self._receive)
        self.eio._async = {**self.eio._async, "websocket": partial(_WebSocket, self)}
        self._sio.on("connect", self._connect)
        self._sio.on("disconnect", self._disconnect)
        self._sio.on("*", self._hear)

    @property
    def eio(self) -> Any:
        return self._sio.eio

    def routes(self, path: str) -> list[web.RouteDef]:
        return [web.route(method, path, self.serve) for method in ("GET", "POST", "OPTIONS")]

    @public
    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Who asks is said in the CONNECT packet, not in a header."""
        request.app[SOCKETS].add(self)
        sid = request.query.get("sid")
        if sid is None:
            request.app[SOCKETS].check_open()
        if sid is not None and request.query.get("transport") == "websocket":
            self._upgrades[sid] = request
        elif sid is not None and (request.content_length or 0) > self.eio.max_http_buffer_size:
            await self.refuse_size(sid)
        try:
            response: web.StreamResponse = await self._sio.handle_request(request)
            return response
        finally:
            if sid is not None and self._upgrades.get(sid) is request:
                del self._upgrades[sid]

    # -- clients --------------------------------------------------------------------------------------------------

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any) -> None:
        said = auth.get("token") if isinstance(auth, dict) else None
        token = said if isinstance(said, str) else bearer(environ["aiohttp.request"])
        request = environ["aiohttp.request"]
        try:
            with request.app[WRONG_KEYS].judging(request.remote, token):
                owner = self._guard.owner_of(token)
            self._places[sid] = request.app[SOCKETS].tally.take_stream(owner)
        except GatewayError as error:
            raise Refused(error.message) from None
        self._peers[sid] = Peer(self, sid, self._sio.manager.eio_sid_from_sid(sid, "/"), owner, token)

    async def _disconnect(self, sid: str, reason: Any = None) -> None:
        peer = self._peers.pop(sid, None)
        if (place := self._places.pop(sid, None)) is not None:
            place.close()
        if peer is not None:
            peer.unfollow_all()
            peer.hang_up()
            await self._listener.gone(peer)

    async def _receive(self, transport_id: str, packet: str | bytes) -> None:
        """Have a packet read by the library; one that cannot be read is refused, and costs a line of the journal."""
        try:
            await self._dispatch(transport_id, packet)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            reason = _note(error)
            number = _NUMBER.match(packet) if isinstance(packet, str) else None
            answer = await self._refuse(transport_id, _refusal(error, reason))
            if number is not None and answer is not None:
                await self.eio.send(transport_id, f"{ACK}{number[1]}{Json.dumps([answer])}")

    async def refuse_size(self, transport_id: str) -> None:
        await self._refuse(transport_id, TooLarge(f"a packet is larger than {self.eio.max_http_buffer_size} bytes"))

    async def _refuse(self, transport_id: str, error: GatewayError) -> Any:
        """Tell the client of a connection that what it sent is not taken; what this would be acknowledged with."""
        peer = self._peers.get(self._sio.manager.sid_from_eio_sid(transport_id, "/"))
        if peer is None:
            return None
        with suppress(ConnectionResetError, EngineIOError):
            return await self._listener.refuse(peer, error)

    async def _hear(self, event: str, sid: str, *said: Any) -> Any:
        """One after the other: what a client says first is done first."""
        peer = self._peers.get(sid)
        if peer is None:
            return None
        async with peer.order:
            answer = await self._answer(peer, event, said[0] if said else None)
        return await answer.answer if isinstance(answer, Later) else answer

    async def _answer(self, peer: Peer, event: str, said: Any) -> Any:
        try:
            try:
                peer.owner = self._guard.owner_of(peer.token)
            except GatewayError as error:  # the key was deleted meanwhile
                await self._listener.refuse(peer, error)
                await self._sio.disconnect(peer.sid)
                return None
            return await self._listener.hear(peer, event, said)
        except (ConnectionResetError, EngineIOError):
            return None  # the client has left

    # -- connections ----------------------------------------------------------------------------------------------

    def queue(self, transport_id: str) -> "asyncio.Queue[Any] | None":
        connection = self.eio.sockets.get(transport_id)
        return None if connection is None or connection.closed else connection.queue

    def room(self, transport_id: str) -> int:
        connection = self.eio.sockets.get(transport_id)
        return BY_SOCKET if connection is not None and connection.upgraded else BY_POLLING

    async def cut(self, transport_id: str) -> None:
        """End a connection whose client may not even take a farewell."""
        connection = self.eio.sockets.get(transport_id)
        environ = self._sio.environ.get(transport_id) or {}
        request = self._upgrades.get(transport_id) or environ.get("aiohttp.request")
        if connection is None:
            return
        upgraded = connection.upgraded
        with suppress(EngineIOError):
            await connection.close(wait=False, abort=True)
        if upgraded and request is not None and request.transport is not None:
            request.transport.abort()
        self.eio.sockets.pop(transport_id, None)

    async def leave(self) -> None:
        """Say goodbye to each when nothing is being told to it: at the transport, so that clients come again."""
        await asyncio.gather(*(self._leave(peer) for peer in list(self._peers.values())))

    async def _leave(self, peer: Peer) -> None:
        await peer.quiet()
        if (connection := self.eio.sockets.get(peer.transport_id)) is not None:
            await self._hang_up(connection)

    async def close(self) -> None:
        """The server stops: say goodbye to everybody."""
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


class _WebSocket(WebSocket):  # type: ignore[misc]  # the library has no types
    """The library's websocket; a client whose packet is too large or none at all learns why it is disconnected."""

    def __init__(self, server: SocketServer, handler: Any, eio: Any) -> None:
        super().__init__(handler, eio)
        self._connection, self._server = handler.__self__, server

    async def __call__(self, environ: dict[str, Any]) -> web.WebSocketResponse:
        refuse = partial(self._server.refuse_size, self._connection.sid)
        self._sock = _Response(refuse, max_msg_size=self.server.max_http_buffer_size)
        await self._sock.prepare(environ["aiohttp.request"])
        try:
            await self.handler(self)
        except ValueError as error:
            _note(error)
            await self._connection.close(wait=False, abort=True)
            await self._sock.close(code=WSCloseCode.PROTOCOL_ERROR)
        return self._sock


class _Response(web.WebSocketResponse):
    """A websocket that has something to say before it is closed on a message that is too large."""

    def __init__(self, refuse: Callable[[], Awaitable[None]], **given: Any) -> None:
        super().__init__(**given)
        self._refuse = refuse

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        if code == WSCloseCode.MESSAGE_TOO_BIG and not self.closed:
            await self._refuse()
        return await super().close(code=code, message=message, drain=drain)


def _note(error: Exception) -> str:
    """Write down why a packet cannot be read; the library stumbles over events of another shape than this."""
    reason = str(error) if isinstance(error, ValueError) else "an event is an array that begins with its name"
    log.warning("a packet cannot be read", reason=reason)
    return reason


def _refusal(error: Exception, reason: str) -> Invalid:
    """What a client is told of a packet; a field is named without its place in the packet's array."""
    if not isinstance(error, LimitExceeded):
        return Invalid(f"a packet cannot be read: {reason}")
    place, _, field = error.field.partition(".")
    field = field if place.isdecimal() else error.field
    return Invalid(f"{field}: {error.words}" if field else error.words, param=field or None)


class _Quiet:
    """The library's own journal, which tells the contents of every packet, is not kept."""

    def debug(self, *_: Any, **__: Any) -> None: ...
    def info(self, *_: Any, **__: Any) -> None: ...
    def warning(self, *_: Any, **__: Any) -> None: ...

    def error(self, words: str, *args: Any, **__: Any) -> None:
        log.error("socket.io", words=words % args if args else words)

    def exception(self, words: str, *args: Any, **__: Any) -> None:
        if isinstance(error := sys.exc_info()[1], ValueError):  # what a client sent, not what we did
            _note(error)
        else:
            log.exception("socket.io", words=words % args if args else words)


_quiet = _Quiet()
