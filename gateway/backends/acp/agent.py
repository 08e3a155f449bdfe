"""A running agent: greeted once, then holding sessions, each with a folder, and an inbox while it has a turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from gateway.errors import BackendFailed, GatewayError

from .child import Child
from .folder import Folder
from .inbox import Asking, Inbox
from .peer import Peer, result_of
from .settings import AcpSettings
from .wire import (
    INTERNAL,
    INVALID,
    NOT_FOUND,
    PROTOCOL_VERSION,
    Id,
    Initialized,
    Message,
    Notice,
    Opened,
    Prompted,
    Reading,
    Wanted,
    Writing,
)

log = structlog.get_logger("dragoman.acp")

MOST_SESSIONS = 10_000
"""So many sessions of one agent are remembered; who is forgotten begins anew."""
MOST_ERRANDS = 32
"""So many files may be read and written at once."""
CLIENT = {"name": "dragoman", "title": "Dragoman", "version": "1"}
ABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}

Shape = TypeVar("Shape")


class Place:
    """One session at the agent: which of ours it serves, its folder, and where what it says goes while a turn runs."""

    __slots__ = ("folder", "inbox", "serves", "session_id")

    def __init__(self, session_id: str, serves: str, folder: Folder) -> None:
        self.session_id, self.serves, self.folder = session_id, serves, folder
        self.inbox: Inbox | None = None


class Agent:
    """One process. Everything that goes wrong with it is a `GatewayError`."""

    def __init__(self, child: Child, settings: AcpSettings) -> None:
        self._settings = settings
        self._peer = Peer(child, settings.line_bytes, self._heard)
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._errands: set[asyncio.Task[None]] = set()
        self.about = Initialized()
        self.pid = child.pid

    @classmethod
    async def start(cls, settings: AcpSettings, base: Path) -> "Agent":
        env = {name: value.get_secret_value() for name, value in settings.env.items()}
        child = await Child.start(settings.command, settings.args, env=env, folder=base, secrets=settings.secrets)
        agent = cls(child, settings)
        try:
            await agent._greet()
        except BaseException:
            await agent.close()
            raise
        return agent

    @property
    def broken(self) -> GatewayError | None:
        return self._peer.broken

    async def close(self) -> None:
        await self._peer.close()
        for place in self._places.values():
            if place.inbox is not None:
                place.inbox.close(BackendFailed("the agent was ended"))
        for errand in self._errands:
            errand.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)

    async def _greet(self) -> None:
        greeting = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": ABILITIES, "clientInfo": CLIENT}
        told = await self._peer.request("initialize", greeting, self._settings.start_seconds)
        self.about = shaped("initialize", told, Initialized)
        if self.about.protocol_version != PROTOCOL_VERSION:
            raise BackendFailed(f"the agent speaks version {self.about.protocol_version} of the protocol,"
                                f" not {PROTOCOL_VERSION}")
        if self._settings.auth_method is not None:
            wanted = {"methodId": self._settings.auth_method}
            await self._peer.request("authenticate", wanted, self._settings.start_seconds)

    # -- sessions -------------------------------------------------------------------------------------------------

    def place(self, session_id: str) -> Place | None:
        return self._places.get(session_id)

    async def open(self, serves: str, folder: Folder, mcp_servers: Sequence[dict[str, Any]]) -> Place:
        wanted = {"cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        told = await self._peer.request("session/new", wanted, self._settings.answer_seconds)
        return self._remember(Place(shaped("session/new", told, Opened).session_id, serves, folder))

    async def load(
        self, session_id: str, serves: str, folder: Folder, mcp_servers: Sequence[dict[str, Any]],
    ) -> Place:
        """Take up a session of an earlier process; what the agent repeats of it is passed over."""
        wanted = {"sessionId": session_id, "cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        await self._peer.request("session/load", wanted, self._settings.answer_seconds)
        return self._remember(Place(session_id, serves, folder))

    async def leave(self, serves: str) -> None:
        """Our session is gone for good; an agent that can close sessions may put its own away."""
        for place in [place for place in self._places.values() if place.serves == serves]:
            self.forget(place)
            if self.about.can_close:
                wanted = {"sessionId": place.session_id}
                await self._peer.request("session/close", wanted, self._settings.cancel_seconds)

    def forget(self, place: Place) -> None:
        self._places.pop(place.session_id, None)

    def _remember(self, place: Place) -> Place:
        """It is the last now that is forgotten; one with a turn is never."""
        self._places[place.session_id] = place
        self._places.move_to_end(place.session_id)
        if len(self._places) > MOST_SESSIONS:
            idle = (one for one in self._places.values() if one.inbox is None)
            self.forget(next(idle, place))
        return place

    async def prompt(self, place: Place, blocks: Sequence[dict[str, Any]]) -> Inbox:
        """Begin a turn of the agent's; what it says, and how it ends, comes into the inbox."""
        inbox = place.inbox = Inbox()
        self._remember(place)
        wanted = {"sessionId": place.session_id, "prompt": list(blocks)}
        await self._peer.begin("session/prompt", wanted, lambda told: inbox.close(_ended(told)))
        return inbox

    async def cancel(self, place: Place) -> None:
        await self._peer.notify("session/cancel", {"sessionId": place.session_id})

    async def permit(self, id: Id, option_id: str | None) -> None:
        """Answer a request for permission; no option means that nobody will choose one."""
        chosen = {"outcome": "cancelled"} if option_id is None else {"outcome": "selected", "optionId": option_id}
        await self._peer.answer(id, {"outcome": chosen})

    # -- what the agent asks and tells ----------------------------------------------------------------------------

    async def _heard(self, message: Message) -> None:
        try:
            if message.id is not None:
                await self._asked(message, message.id)
            elif message.method == "session/update":
                await self._told(message)
        except _Unreadable as error:
            log.warning("the agent said something that cannot be read", process=self.pid, why=error.message)
            if message.id is not None:
                self._run_errand(self._peer.refuse(message.id, INVALID, error.message))

    async def _told(self, message: Message) -> None:
        notice = shaped("session/update", message.params, Notice)
        place = self._places.get(notice.session_id)
        if place is not None and place.inbox is not None:
            await place.inbox.put(notice.update, len(bytes(message.params)))

    async def _asked(self, message: Message, id: Id) -> None:
        if message.method != "session/request_permission":
            self._run_errand(self._serve(message, id))
            return
        wanted = shaped("session/request_permission", message.params, Wanted)
        place = self._places.get(wanted.session_id)
        if place is None or place.inbox is None or place.inbox.closed.is_set():
            self._run_errand(self.permit(id, None))
        else:
            await place.inbox.put(Asking(id, wanted), len(bytes(message.params)))

    def _run_errand(self, errand: Coroutine[None, None, None]) -> None:
        """Beside the reading: an agent that writes before it reads must not wait for us while we wait for it."""
        if len(self._errands) >= MOST_ERRANDS:
            errand.close()
            raise BackendFailed("the agent asks for more than can be done at once")
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._errands.discard(task)
        if not task.cancelled() and isinstance(task.exception(), GatewayError):
            log.debug("an answer did not reach the agent", process=self.pid, why=str(task.exception()))

    async def _serve(self, message: Message, id: Id) -> None:
        try:
            await self._peer.answer(id, await self._file_errand(message))
        except _Unknown:
            await self._peer.refuse(id, NOT_FOUND, f"{message.method} is not offered")
        except _Unreadable as error:
            await self._peer.refuse(id, INVALID, error.message)
        except GatewayError as error:
            await self._peer.refuse(id, INTERNAL, error.message)

    async def _file_errand(self, message: Message) -> dict[str, Any]:
        if message.method == "fs/read_text_file":
            wanted = shaped(message.method, message.params, Reading)
            folder = self._folder(wanted.session_id)
            return {"content": await asyncio.to_thread(folder.read, wanted.path, wanted.line, wanted.limit)}
        if message.method == "fs/write_text_file":
            given = shaped(message.method, message.params, Writing)
            await asyncio.to_thread(self._folder(given.session_id).write, given.path, given.content)
            return {}
        raise _Unknown

    def _folder(self, session_id: str) -> Folder:
        place = self._places.get(session_id)
        if place is None:
            raise BackendFailed(f"there is no session {session_id}")
        return place.folder


class _Unknown(Exception):
    """The agent asks for something that is not offered."""


class _Unreadable(BackendFailed):
    """The agent said something that does not have the protocol's shape."""


def shaped(method: str, raw: msgspec.Raw, shape: type[Shape]) -> Shape:
    """What the agent said, in the shape the protocol gives it."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Unreadable(f"the agent said something in {method} that cannot be read: {error}") from None


def _ended(told: Message | GatewayError) -> Prompted | GatewayError:
    try:
        return shaped("session/prompt", result_of("session/prompt", told), Prompted)
    except GatewayError as error:
        return error
