"""A running agent: greeted once, then holding sessions, each with a folder, and an inbox while it has a turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from gateway.errors import BackendFailed, GatewayError

from .json_rpc import JsonRpcPeer, result_or_raise
from .process import ChildProcess
from .session_folder import SessionFolder
from .settings import AcpSettings
from .update_queue import PermissionRequest, UpdateQueue
from .wire import (
    INTERNAL,
    INVALID,
    NOT_FOUND,
    PROTOCOL_VERSION,
    InitializeResult,
    NewSessionResult,
    PermissionParams,
    PromptResult,
    ReadFileParams,
    RpcId,
    RpcMessage,
    SessionUpdateParams,
    WriteFileParams,
)

log = structlog.get_logger("dragoman.acp")

MAX_SESSIONS = 10_000
"""So many sessions of one agent are remembered; who is forgotten begins anew."""
MAX_FILE_REQUESTS = 32
"""So many files may be read and written at once."""
CLIENT_INFO = {"name": "dragoman", "title": "Dragoman", "version": "1"}
CLIENT_CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}

Shape = TypeVar("Shape")


class AcpSession:
    """One session at the agent: which of ours it serves, its folder, and where what it says goes while a turn runs."""

    __slots__ = ("folder", "gateway_session_id", "session_id", "updates")

    def __init__(self, session_id: str, gateway_session_id: str, folder: SessionFolder) -> None:
        self.session_id, self.gateway_session_id, self.folder = session_id, gateway_session_id, folder
        self.updates: UpdateQueue | None = None


class AcpAgent:
    """One process. Everything that goes wrong with it is a `GatewayError`."""

    def __init__(self, child: ChildProcess, settings: AcpSettings) -> None:
        self._settings = settings
        self._peer = JsonRpcPeer(child, settings.line_bytes, self._heard)
        self._places: OrderedDict[str, AcpSession] = OrderedDict()
        self._errands: set[asyncio.Task[None]] = set()
        self.capabilities = InitializeResult()
        self.pid = child.pid

    @classmethod
    async def start(cls, settings: AcpSettings, base: Path) -> "AcpAgent":
        env = {name: value.get_secret_value() for name, value in settings.env.items()}
        child = await ChildProcess.start(
            settings.command, settings.args, env=env, folder=base, secrets=settings.secrets
        )
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
            if place.updates is not None:
                place.updates.close(BackendFailed("the agent was ended"))
        for errand in self._errands:
            errand.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)

    async def _greet(self) -> None:
        greeting = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": CLIENT_CAPABILITIES,
            "clientInfo": CLIENT_INFO,
        }
        told = await self._peer.request("initialize", greeting, self._settings.start_seconds)
        self.capabilities = decode_as("initialize", told, InitializeResult)
        if self.capabilities.protocol_version != PROTOCOL_VERSION:
            raise BackendFailed(f"the agent speaks version {self.capabilities.protocol_version} of the protocol,"
                                f" not {PROTOCOL_VERSION}")
        if self._settings.auth_method is not None:
            wanted = {"methodId": self._settings.auth_method}
            await self._peer.request("authenticate", wanted, self._settings.start_seconds)

    # -- sessions -------------------------------------------------------------------------------------------------

    def session(self, session_id: str) -> AcpSession | None:
        return self._places.get(session_id)

    async def new_session(
        self, serves: str, folder: SessionFolder, mcp_servers: Sequence[dict[str, Any]]
    ) -> AcpSession:
        wanted = {"cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        told = await self._peer.request("session/new", wanted, self._settings.answer_seconds)
        return self._remember(AcpSession(decode_as("session/new", told, NewSessionResult).session_id, serves, folder))

    async def load_session(
        self, session_id: str, serves: str, folder: SessionFolder, mcp_servers: Sequence[dict[str, Any]],
    ) -> AcpSession:
        """Take up a session of an earlier process; what the agent repeats of it is passed over."""
        wanted = {"sessionId": session_id, "cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        await self._peer.request("session/load", wanted, self._settings.answer_seconds)
        return self._remember(AcpSession(session_id, serves, folder))

    async def close_session(self, serves: str) -> None:
        """Our session is gone for good; an agent that can close sessions may put its own away."""
        for place in [place for place in self._places.values() if place.gateway_session_id == serves]:
            self.forget(place)
            if self.capabilities.can_close:
                wanted = {"sessionId": place.session_id}
                await self._peer.request("session/close", wanted, self._settings.cancel_seconds)

    def forget(self, place: AcpSession) -> None:
        self._places.pop(place.session_id, None)

    def _remember(self, place: AcpSession) -> AcpSession:
        """It is the last now that is forgotten; one with a turn is never."""
        self._places[place.session_id] = place
        self._places.move_to_end(place.session_id)
        if len(self._places) > MAX_SESSIONS:
            idle = (one for one in self._places.values() if one.updates is None)
            self.forget(next(idle, place))
        return place

    async def prompt(self, place: AcpSession, blocks: Sequence[dict[str, Any]]) -> UpdateQueue:
        """Begin a turn of the agent's; what it says, and how it ends, comes into the inbox."""
        inbox = place.updates = UpdateQueue()
        self._remember(place)
        wanted = {"sessionId": place.session_id, "prompt": list(blocks)}
        await self._peer.begin("session/prompt", wanted, lambda told: inbox.close(_prompt_result(told)))
        return inbox

    async def cancel(self, place: AcpSession) -> None:
        await self._peer.notify("session/cancel", {"sessionId": place.session_id})

    async def answer_permission(self, id: RpcId, option_id: str | None) -> None:
        """Answer a request for permission; no option means that nobody will choose one."""
        chosen = {"outcome": "cancelled"} if option_id is None else {"outcome": "selected", "optionId": option_id}
        await self._peer.answer(id, {"outcome": chosen})

    # -- what the agent asks and tells ----------------------------------------------------------------------------

    async def _heard(self, message: RpcMessage) -> None:
        try:
            if message.id is not None:
                await self._asked(message, message.id)
            elif message.method == "session/update":
                await self._told(message)
        except _InvalidMessage as error:
            log.warning("acp_message_invalid", process=self.pid, reason=error.message)
            if message.id is not None:
                self._run_errand(self._peer.refuse(message.id, INVALID, error.message))

    async def _told(self, message: RpcMessage) -> None:
        notice = decode_as("session/update", message.params, SessionUpdateParams)
        place = self._places.get(notice.session_id)
        if place is not None and place.updates is not None:
            await place.updates.put(notice.update, len(bytes(message.params)))

    async def _asked(self, message: RpcMessage, id: RpcId) -> None:
        if message.method != "session/request_permission":
            self._run_errand(self._serve(message, id))
            return
        wanted = decode_as("session/request_permission", message.params, PermissionParams)
        place = self._places.get(wanted.session_id)
        if place is None or place.updates is None or place.updates.closed.is_set():
            self._run_errand(self.answer_permission(id, None))
        else:
            await place.updates.put(PermissionRequest(id, wanted), len(bytes(message.params)))

    def _run_errand(self, errand: Coroutine[None, None, None]) -> None:
        """Beside the reading: an agent that writes before it reads must not wait for us while we wait for it."""
        if len(self._errands) >= MAX_FILE_REQUESTS:
            errand.close()
            raise BackendFailed("the agent asks for more than can be done at once")
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._errands.discard(task)
        if not task.cancelled() and isinstance(task.exception(), GatewayError):
            log.debug("acp_response_lost", process=self.pid, reason=str(task.exception()))

    async def _serve(self, message: RpcMessage, id: RpcId) -> None:
        try:
            await self._peer.answer(id, await self._file_errand(message))
        except _UnknownMethod:
            await self._peer.refuse(id, NOT_FOUND, f"{message.method} is not offered")
        except _InvalidMessage as error:
            await self._peer.refuse(id, INVALID, error.message)
        except GatewayError as error:
            await self._peer.refuse(id, INTERNAL, error.message)

    async def _file_errand(self, message: RpcMessage) -> dict[str, Any]:
        if message.method == "fs/read_text_file":
            wanted = decode_as(message.method, message.params, ReadFileParams)
            folder = self._folder(wanted.session_id)
            return {"content": await asyncio.to_thread(folder.read, wanted.path, wanted.line, wanted.limit)}
        if message.method == "fs/write_text_file":
            given = decode_as(message.method, message.params, WriteFileParams)
            await asyncio.to_thread(self._folder(given.session_id).write, given.path, given.content)
            return {}
        raise _UnknownMethod

    def _folder(self, session_id: str) -> SessionFolder:
        place = self._places.get(session_id)
        if place is None:
            raise BackendFailed(f"there is no session {session_id}")
        return place.folder


class _UnknownMethod(Exception):
    """The agent asks for something that is not offered."""


class _InvalidMessage(BackendFailed):
    """The agent said something that does not have the protocol's shape."""


def decode_as(method: str, raw: msgspec.Raw, shape: type[Shape]) -> Shape:
    """What the agent said, in the shape the protocol gives it."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _InvalidMessage(f"the agent said something in {method} that cannot be read: {error}") from None


def _prompt_result(told: RpcMessage | GatewayError) -> PromptResult | GatewayError:
    try:
        return decode_as("session/prompt", result_or_raise("session/prompt", told), PromptResult)
    except GatewayError as error:
        return error
