"""Blade spoken as a client: REST for sessions, Socket.IO for chats; a server of it becomes an agent."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import aiohttp
from msgspec.structs import replace as replace_fields
from yarl import URL

from gateway.errors import BackendFailed
from gateway.ids import minting
from gateway.model import AgentCard, Answer, Capabilities, Compact, SendMessage, SessionCompacted, Settings
from gateway.upstream import Asked, Ended, Frame, Heard, Opening, RemoteAddress, RemoteSession, Upstream, moment

from .hearing import BladeHearing
from .hearing_words import objects_of, optional_text, text
from .remote_bodies import answer_body, message_body, session_body
from .remote_following import ACKNOWLEDGED, Following, Mark
from .remote_place import Place, socket_session
from .remote_stopping import stop

API, SOCKET = "/api", "/socket.io/"
MOST = 4096
"""Of so many sessions it is known how far they were heard; those not used for the longest make room."""
PAGE = 100
"""So many sessions are asked for at once."""
ABSENT = (404, 405, 501)
NAME = "blade"
PLAIN = Settings()


@dataclass(slots=True)
class Known:
    """What is known of a session between chats: how far it was heard and, while it waits for people, its state."""

    mark: Mark = field(default_factory=Mark)
    hearing: BladeHearing | None = None
    place: Place | None = None
    since: int | None = None
    """The last turn before those that the hearing has heard."""


class BladeRemote:
    """A server of Blade. The key goes to REST as a bearer token, and to the socket when it connects.

    A chat has a connection of its own: a websocket or, where the server takes none, requests again and again. One that
    breaks is made again, and the chat is taken up by `after_sequence`; with servers that do not number their events, by
    the turns that `GET …/messages` lists. A chat that waits for people can be answered by another process than the one
    that heard it ask: what it had heard is in the messages.

    Blade cannot be told of a system prompt, a history, tools of clients, or tools that need permission; options and
    secrets are sent with every message, as what the chat runs with, and so is the model.
    """

    tells_permissions = False

    def __init__(self, address: RemoteAddress) -> None:
        url = URL(address.url)
        path = url.path.rstrip("/")
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        self._api = Upstream(
            str(url.with_path(path or API, keep_query=True)), headers={**headers, "Accept": "application/json"},
            secrets=(address.key,), patience=address.patience,
        )
        socket = url.origin().with_path((path.removesuffix(API) if path.endswith(API) else "") + SOCKET)
        self._place = Place(socket.with_query(EIO="4"), address.key, address.patience)
        self._agent = address.agent
        self._sessions: OrderedDict[str, Known] = OrderedDict()
        self._sockets: aiohttp.ClientSession | None = None
        self._mint = minting()

    # -- beside chats ---------------------------------------------------------------------------------------------

    async def about(self) -> AgentCard:
        """Blade tells of models and a version, and of nothing else."""
        told = await self._asked("/config/models")
        version = await self._asked("/version")
        model = optional_text(told.get("default"))
        named = [one for one in told.get("models") or () if isinstance(one, dict) and one.get("id") == model]
        return AgentCard(
            name=self._agent or NAME, model=model, title=optional_text(named[0].get("name")) if named else None,
            version=text(version.get("version")) or "1.0.0",
            capabilities=Capabilities(images=("http", "data"), client_tools=False),
        )

    async def _asked(self, path: str) -> dict[str, Any]:
        """What a server tells of itself; nothing where it does not."""
        try:
            told = await self._api.json("GET", path)
        except BackendFailed as error:
            if (error.details or {}).get("upstream_status") not in ABSENT:
                raise
            told = None
        return told if isinstance(told, dict) else {}

    async def open(self, opening: Opening) -> str:
        made = await self._api.json("POST", "/sessions", session_body(opening, self._agent))
        session_id = made.get("session_id") if isinstance(made, dict) else None
        if not isinstance(session_id, str) or not session_id:
            raise BackendFailed(f"{self._api.name} made a session and did not say which")
        self._session(session_id).mark = Mark(number=0, turn=-1)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        found: list[RemoteSession] = []
        while len(found) < most:
            query = {"limit": str(min(PAGE, most - len(found))), "offset": str(len(found))}
            told = await self._api.json("GET", "/sessions", query=query)
            page = objects_of(told.get("items") if isinstance(told, dict) else told, "sessions")
            found += map(_listed, page)
            if len(page) < int(query["limit"]):
                break
        return found

    async def join(self, session_id: str) -> RemoteSession:
        told = await self._api.json("GET", f"/sessions/{_quoted(session_id)}")
        return replace_fields(_listed(told if isinstance(told, dict) else {}), session_id=session_id)

    async def messages(self, session_id: str) -> Sequence[dict[str, Any]]:
        """All turns of a session, as they are."""
        return objects_of(await self._api.json("GET", f"/sessions/{_quoted(session_id)}/messages"), "turns")

    async def status(self, session_id: str) -> str:
        told = await self._api.json("GET", f"/sessions/{_quoted(session_id)}")
        return text(told.get("status")) if isinstance(told, dict) else ""

    async def close(self) -> None:
        sockets, self._sockets = self._sockets, None
        if sockets is not None:
            await sockets.close()
        await self._api.close()

    # -- chats ----------------------------------------------------------------------------------------------------

    async def say(
        self, session_id: str, command: SendMessage | Compact, settings: Settings = PLAIN,
    ) -> AsyncGenerator[Heard, None]:
        known = self._session(session_id)
        known.hearing = BladeHearing(self._mint)
        said = (("chat:compact", {"session_id": session_id}) if isinstance(command, Compact)
                else ("chat:send", message_body(session_id, command, settings)))
        known.since = known.mark.turn
        known.place = replace(self._place, secrets=tuple(settings.secrets.values()))
        async with aclosing(self._chat(session_id, known, known.hearing, *said)) as chat:
            async for heard in chat:
                yield heard

    async def answer(
        self, session_id: str, answers: Sequence[tuple[Asked, Answer]],
    ) -> AsyncGenerator[Heard, None]:
        """One answer after the other, each a chat of its own; the last one goes on with what was interrupted."""
        known = self._session(session_id)
        hearing = known.hearing = known.hearing or await self._recalled(session_id)
        for asked, answer in answers:
            body = answer_body(session_id, asked, answer)
            async with aclosing(self._chat(session_id, known, hearing, "chat:send", body)) as chat:
                async for heard in chat:
                    yield heard
                    if isinstance(heard, Ended):
                        return

    async def _chat(
        self, session_id: str, known: Known, hearing: BladeHearing, event: str, body: dict[str, Any],
    ) -> AsyncGenerator[Heard, None]:
        """Until the chat ends: with the turn, or to wait for people."""
        place = known.place or self._place
        following = Following(self._socket_session, place, self, session_id, known.mark, known.since)
        is_summed_up = False
        async with aclosing(following.frames(event, body)) as frames:
            async for frame in frames:
                heard = hearing.feed(frame)
                if frame.name == ACKNOWLEDGED and event == "chat:compact":
                    heard = await self._compacted(session_id, known, hearing, is_summed_up)
                following.is_broken = hearing.fault is not None
                for one in heard:
                    is_summed_up = is_summed_up or isinstance(one, SessionCompacted)
                    if isinstance(one, Ended):
                        known.hearing = None
                        yield _discreet(one, place)
                        return
                    yield one
                if frame.name == "chat:end" and hearing.paused:
                    return

    async def _compacted(
        self, session_id: str, known: Known, hearing: BladeHearing, is_summed_up: bool,
    ) -> list[Heard]:
        """It is done. A server may tell of it in a chat that ends by itself, or only in its messages."""
        listed = [] if is_summed_up else [
            turn for turn in await self.messages(session_id) if turn.get("kind") == "compaction"
        ]
        known.mark = Mark()  # events that were not heard may have had numbers
        ended = hearing.feed(Frame("chat:end", {"status": None}))
        return [*(event for turn in listed[-1:] for event in BladeHearing(self._mint).feed(Frame("turn:end", turn))),
                *ended]

    async def _recalled(self, session_id: str) -> BladeHearing:
        """A hearing that has heard all there was to hear, and has told it."""
        hearing = BladeHearing(self._mint)
        turns = await self.messages(session_id)
        for turn in turns:
            hearing.feed(Frame("turn:end", turn))
        known = self._session(session_id)
        known.since = -1
        known.mark.turn = max((turn["sequence"] for turn in turns if isinstance(turn.get("sequence"), int)), default=-1)
        return hearing

    async def interrupt(self, session_id: str) -> None:
        self._session(session_id).hearing = None
        await stop(self._socket_session, self._place, self, session_id)

    # -- pieces ---------------------------------------------------------------------------------------------------

    @property
    def _socket_session(self) -> aiohttp.ClientSession:
        if self._sockets is None:
            self._sockets = socket_session(self._place.patience)
        return self._sockets

    def _session(self, session_id: str) -> Known:
        known = self._sessions.setdefault(session_id, Known())
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return known


def _discreet(ended: Ended, place: Place) -> Ended:
    """A server may repeat what it was told in confidence when it says what went wrong."""
    if ended.fault is None:
        return ended
    fault = replace_fields(ended.fault, message=place.without_secrets(ended.fault.message))
    return replace_fields(ended, fault=fault)


def _listed(session: dict[str, Any]) -> RemoteSession:
    session_id = text(session.get("id")) or text(session.get("session_id"))
    return RemoteSession(
        session_id=session_id, title=optional_text(session.get("intent")),
        status=optional_text(session.get("status")), updated_at=moment(session.get("updated_at")),
    )


def _quoted(session_id: str) -> str:
    return quote(session_id, safe="")
