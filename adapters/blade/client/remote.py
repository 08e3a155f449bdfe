"""Speaks Blade as a client: REST for sessions, a Socket.IO connection of its own for each chat."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from yarl import URL

import gateway.model as m
from gateway.client import (
    NOT_SERVED_STATUSES,
    Acknowledgement,
    GeneratorTurn,
    HttpClient,
    ItemGenerator,
    Redactor,
    SessionMemory,
    SocketIOConnection,
    SocketIOConnector,
    members,
    objects,
    read_offsets,
    require_objects,
    retry,
    suppress_statuses,
)
from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.ids import make_mint
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import (
    DecodedItem,
    NewRemoteSession,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurn,
    RemoteTurnEnd,
    SessionPlaces,
)
from mappings.language import UnreadableBody

from .decoder import Decoder
from .readers import COMPACTION, frame_name, read, status_word, turn_reader
from .requests import answer_body, compact_body, message_body, session_body, stop_body
from .turn_stream import ACKNOWLEDGED, ReadPosition, RestQueries, TurnStream

API_PATH, SOCKET_PATH = "/api", "/socket.io/"
DEFAULT_AGENT = "blade"
DEFAULT_SETTINGS = m.Settings()
SentEvent = tuple[str, dict[str, Any]]
"""The name of what is sent over the socket, and its body."""


@dataclass(slots=True)
class RemoteSessionState:
    """What is known of a session between chats: how far it was read and, while it waits for people, its decoder."""

    position: ReadPosition = field(default_factory=ReadPosition)
    decoder: Decoder | None = None
    redactor: Redactor | None = None
    """For the key and the secrets of the turn."""
    since: int | None = None
    """The last turn before those that the decoder has read."""


def connect_api(address: RemoteAddress) -> HttpClient:
    """A client of the REST routes of the server."""
    url = URL(address.url)
    place = str(url.with_path(url.path.rstrip("/") or API_PATH, keep_query=True))
    return HttpClient.at(address, url=place, headers={"Accept": "application/json"})


class Remote:
    """A Blade server. The key goes to REST as a bearer token, and to the socket when it connects.

    A chat has a connection of its own: a websocket or, if the server has none, long polling. If it breaks, the chat is
    resumed by `after_sequence`; with servers that do not number their events, by the turns that `GET …/messages` lists.
    A chat that waits for people can be answered by another process than the one that read its ask: the messages have
    all that it needs.

    Blade has no system prompt, no history, no tools of clients and no tools that need permission; options, secrets and
    the model are sent with every message.
    """

    supports_permissions = False

    def __init__(self, address: RemoteAddress) -> None:
        url = URL(address.url)
        path = url.path.rstrip("/")
        self._api = connect_api(address)
        socket = url.origin().with_path((path.removesuffix(API_PATH) if path.endswith(API_PATH) else "") + SOCKET_PATH)
        self._sockets = SocketIOConnector(
            HttpClient(str(socket.with_query(EIO="4")), secrets=(address.key,), timeouts=address.patience),
            auth={"token": address.key} if address.key else None,
        )
        self._key = address.key
        self._agent = address.agent
        self._sessions = SessionMemory[RemoteSessionState]()
        self._mint = make_mint()

    # -- beside chats ---------------------------------------------------------------------------------------------

    async def places(self) -> SessionPlaces:
        return SessionPlaces()

    async def about(self) -> m.AgentCard:
        """Blade has models and a version, and nothing else."""
        config = read("models", await self._described("/config/models"))
        version = read("version", await self._described("/version"))["version"]
        listed = [read("model", one) for one in objects(config["models"])]
        return m.AgentCard(
            name=self._agent or DEFAULT_AGENT,
            model=config["default"],
            title=next((one["name"] for one in listed if one["id"] == config["default"]), None),
            version=version or "1.0.0",
            capabilities=m.AgentCapabilities(images=("http", "data"), client_tools=False),
        )

    async def _described(self, path: str) -> dict[str, Any]:
        """The server's description of itself; empty if it has none."""
        response = None
        with suppress_statuses(NOT_SERVED_STATUSES):
            response = await self._api.json("GET", path)
        return members(response)

    async def open(self, opening: NewRemoteSession) -> str:
        made = await self._api.json("POST", "/sessions", session_body(opening, self._agent))
        session_id: str | None = read("session.created", members(made))["session_id"]
        if session_id is None:
            raise BackendFailed(f"{self._api.name} made a session and did not say which")
        self._session(session_id).position = ReadPosition(number=0, turn=-1)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        return await read_offsets(self._page, most)

    async def _page(self, limit: int, offset: int) -> Sequence[RemoteSession]:
        response = await self._api.json("GET", "/sessions", query={"limit": str(limit), "offset": str(offset)})
        listed = read("sessions", response)["items"] if isinstance(response, dict) else response
        return [*map(_remote_session, require_objects(listed, "sessions"))]

    async def join(self, session_id: str) -> RemoteSession:
        response = await self._api.json("GET", f"/sessions/{_quoted(session_id)}")
        return replace(_remote_session(members(response)), session_id=session_id)

    async def messages(self, session_id: str) -> Sequence[dict[str, Any]]:
        """All turns of a session, as they are."""
        return require_objects(await self._api.json("GET", f"/sessions/{_quoted(session_id)}/messages"), "turns")

    async def status(self, session_id: str) -> str:
        response = await self._api.json("GET", f"/sessions/{_quoted(session_id)}")
        return read("session", members(response))["status"] or ""

    async def close(self) -> None:
        await self._sockets.close()
        await self._api.close()

    # -- chats ----------------------------------------------------------------------------------------------------

    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings = DEFAULT_SETTINGS,
    ) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._new_turn, session_id, command, settings)))

    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        """Send one answer after the other, each in a chat of its own; the last one continues the turn."""
        return GeneratorTurn(self._items(session_id, partial(self._answers, session_id, answers)))

    async def _new_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings,
    ) -> list[SentEvent]:
        known = self._session(session_id)
        sent = (("chat:compact", compact_body(session_id)) if isinstance(command, m.Compact)
                else ("chat:send", message_body(session_id, command, settings)))
        known.decoder, known.since = Decoder(self._mint), known.position.turn
        known.redactor = Redactor((self._key, *settings.secrets.values()))
        return [sent]

    async def _answers(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> list[SentEvent]:
        known = self._session(session_id)
        known.decoder = known.decoder or await self._recalled(session_id)
        return [("chat:send", answer_body(session_id, asked, answer)) for asked, answer in answers]

    async def _items(self, session_id: str, prepare: Callable[[], Awaitable[list[SentEvent]]]) -> ItemGenerator:
        sent, known = await prepare(), self._session(session_id)
        decoder = known.decoder or Decoder(self._mint)
        for event, body in sent:
            async with aclosing(self._chat(session_id, known, decoder, event, body)) as chat:
                async for item in chat:
                    yield item
                    if isinstance(item, RemoteTurnEnd):
                        return

    async def _chat(
        self, session_id: str, known: RemoteSessionState, decoder: Decoder, event: str, body: JsonObject,
    ) -> AsyncGenerator[DecodedItem, None]:
        """Until the chat ends, because the turn has ended or waits for people."""
        redactor = known.redactor or self._api.redactor
        stream = TurnStream(self._sockets, redactor, self, session_id, known.position, known.since)
        is_summed_up = False
        async with aclosing(stream.frames(event, body)) as frames:
            async for frame in frames:
                items = decoder.feed(frame)
                if frame.name == ACKNOWLEDGED and event == "chat:compact":
                    items = await self._compacted(session_id, known, decoder, is_summed_up)
                stream.is_broken = decoder.fault is not None
                for one in items:
                    is_summed_up = is_summed_up or isinstance(one, m.SessionCompacted)
                    if isinstance(one, RemoteTurnEnd):
                        known.decoder = None
                        yield redactor.turn_end(one)
                        return
                    yield one
                if frame.name == frame_name("chat.ended") and decoder.paused:
                    return

    async def _compacted(
        self, session_id: str, known: RemoteSessionState, decoder: Decoder, is_summed_up: bool,
    ) -> list[DecodedItem]:
        """The compaction is done. A server sends it in a chat of its own, or has it only in its messages."""
        listed = [] if is_summed_up else [turn for turn in await self.messages(session_id) if _is_summary(turn)]
        known.position = ReadPosition()  # events that were not read may have had numbers
        ended = decoder.end_chat()
        return [*(event for turn in listed[-1:] for event in Decoder(self._mint).feed_turn(turn)), *ended]

    async def _recalled(self, session_id: str) -> Decoder:
        """A decoder that has read the messages of a session so far."""
        decoder = Decoder(self._mint)
        turns = await self.messages(session_id)
        for turn in turns:
            decoder.feed_turn(turn)
        known = self._session(session_id)
        known.since = -1
        places = [turn_reader().read(turn)["sequence"] for turn in turns]
        known.position.turn = max((place for place in places if place is not None), default=-1)
        return decoder

    async def interrupt(self, session_id: str) -> None:
        self._session(session_id).decoder = None
        await stop_chat(self._sockets, self, session_id)

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> RemoteSessionState:
        return self._sessions.setdefault(session_id, RemoteSessionState())


def _remote_session(session: JsonObject) -> RemoteSession:
    fields = read("session", session)
    session_id = fields["id"] or read("session.created", session)["session_id"] or ""  # either name, by server
    return RemoteSession(
        session_id=session_id, title=fields["intent"], status=fields["status"], updated_at=fields["updated_at"],
    )


def _is_summary(turn: JsonObject) -> bool:
    try:
        return turn_reader().decode(turn).cue == COMPACTION
    except UnreadableBody as error:
        raise BackendFailed(f"a turn of the server cannot be understood: {error}") from None


def _quoted(session_id: str) -> str:
    return quote(session_id, safe="")


STOP_SECONDS = 10.0
"""How long a server may take to acknowledge that it stops."""


async def stop_chat(sockets: SocketIOConnector, queries: RestQueries, session_id: str) -> None:
    """Repeat it until the server takes it, or the time is up."""
    async def stop() -> None:
        async with sockets.connect() as connection:
            await _send_stop(connection, sockets.upstream, queries, session_id)

    await retry(stop, sockets.upstream.timeouts.attempts)


async def _send_stop(
    connection: SocketIOConnection, upstream: HttpClient, queries: RestQueries, session_id: str,
) -> None:
    """Older servers stop a chat and do not acknowledge that: then the status of the session counts."""
    sent = await connection.emit("chat:stop", stop_body(session_id))
    try:
        while not isinstance(
            packet := await connection.receive(min(STOP_SECONDS, upstream.timeouts.first_byte)), Acknowledgement
        ):
            if packet.name == frame_name("fault.fatal"):
                raise _stop_refused(upstream, packet.body)
    except TimedOut:
        if await queries.status(session_id) in map(status_word, (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED)):
            raise
        return
    if packet.number == sent and isinstance(packet.body, dict) and packet.body.get("status") == "error":
        raise _stop_refused(upstream, packet.body)


def _stop_refused(upstream: HttpClient, body: JsonValue) -> GatewayError:
    reason = read("refusal", members(body))["message"] or "no reason given"
    return BackendFailed(f"{upstream.name} refused to stop: {upstream.redactor.quote(reason)}")
