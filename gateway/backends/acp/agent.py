"""A running ACP agent: its initialisation, its sessions, and the files that it reads and writes."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

import gateway.model as m
from gateway.backends.setting_types import Executable, SecretSetting
from gateway.client import SessionMemory
from gateway.errors import BackendFailed, GatewayError, Interrupted
from gateway.json_values import JsonObject

from .json_rpc import JsonRpcPeer, RequestRefused, result_or_raise
from .process import ChildProcess
from .session_folder import SessionFolder
from .update_queue import PermissionRequest, UpdateQueue
from .wire import (
    INTERNAL,
    INVALID,
    NOT_FOUND,
    PROTOCOL_VERSION,
    ConfigOption,
    ConfigResult,
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
"""So many sessions of one agent are kept; a session that was dropped starts anew."""
MAX_FILE_REQUESTS = 32
"""The agent may have so many requests for files open at once."""
CLIENT_INFO = {"name": "dragoman", "title": "Dragoman", "version": "1"}
CLIENT_CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}

Shape = TypeVar("Shape")


class AcpSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    env: dict[str, SecretSetting] = {}
    command: Executable
    args: tuple[str, ...] = ()
    root: Path = Path("data/acp")
    auth_method: str | None = None
    start_seconds: PositiveFloat = 30
    answer_seconds: PositiveFloat = 60
    cancel_seconds: PositiveFloat = 5
    starts_per_minute: PositiveInt = 5
    line_bytes: PositiveInt = 16 * 1024 * 1024

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that are removed from messages of the agent."""
        return tuple(value.get_secret_value() for value in self.env.values())


class AcpSession:
    """One session of the agent: the gateway's session id, the folder, its options, and the queue of a running turn."""

    __slots__ = ("choices", "folder", "gateway_session_id", "session_id", "updates")

    def __init__(
        self, session_id: str, gateway_session_id: str, folder: SessionFolder, choices: Sequence[ConfigOption] = (),
    ) -> None:
        self.session_id, self.gateway_session_id, self.folder = session_id, gateway_session_id, folder
        self.choices = choices
        """What the session can be set to, and is set to."""
        self.updates: UpdateQueue | None = None

    def end_turn(self) -> None:
        """Drop the queue; a writer that waits for room in it continues."""
        updates, self.updates = self.updates, None
        if updates is not None:
            updates.close(Interrupted("the turn is over"))


class AcpAgent:
    """One process; every failure is a `GatewayError`."""

    def __init__(self, child: ChildProcess, settings: AcpSettings) -> None:
        self._settings = settings
        self._peer = JsonRpcPeer(child, settings.line_bytes, self._receive)
        self._sessions = SessionMemory[AcpSession](MAX_SESSIONS, is_busy=lambda session: session.updates is not None)
        self._requests: set[asyncio.Task[None]] = set()
        self.capabilities = InitializeResult()
        self.pid = child.pid

    @classmethod
    async def start(cls, settings: AcpSettings, base: Path) -> "AcpAgent":
        env = {name: value.get_secret_value() for name, value in settings.env.items()}
        child = await ChildProcess.start(
            settings.command, settings.args, env=env, folder=base, secrets=settings.secrets
        )
        agent = cls(child, settings)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(agent.close)
            await agent._initialize()
            undo.pop_all()
        return agent

    @property
    def broken(self) -> GatewayError | None:
        return self._peer.broken

    async def close(self) -> None:
        await self._peer.close()
        for session in self._sessions.values():
            if session.updates is not None:
                session.updates.close(BackendFailed("the agent was ended"))
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def _initialize(self) -> None:
        hello = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": CLIENT_CAPABILITIES,
            "clientInfo": CLIENT_INFO,
        }
        result = await self._peer.request("initialize", hello, self._settings.start_seconds)
        self.capabilities = decode_as("initialize", result, InitializeResult)
        if self.capabilities.protocol_version != PROTOCOL_VERSION:
            raise BackendFailed(f"the agent speaks version {self.capabilities.protocol_version} of the protocol,"
                                f" not {PROTOCOL_VERSION}")
        if self._settings.auth_method is not None:
            wanted = {"methodId": self._settings.auth_method}
            await self._peer.request("authenticate", wanted, self._settings.start_seconds)

    # -- sessions -------------------------------------------------------------------------------------------------

    def session(self, session_id: str) -> AcpSession | None:
        return self._sessions.get(session_id)

    async def new_session(
        self, gateway_session_id: str, folder: SessionFolder, mcp_servers: Sequence[dict[str, object]]
    ) -> AcpSession:
        wanted = {"cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        result = await self._peer.request("session/new", wanted, self._settings.answer_seconds)
        made = decode_as("session/new", result, NewSessionResult)
        return self._remember(AcpSession(made.session_id, gateway_session_id, folder, config_choices(result)))

    async def load_session(
        self, session_id: str, gateway_session_id: str, folder: SessionFolder, mcp_servers: Sequence[dict[str, object]],
    ) -> AcpSession:
        """Load a session of an earlier process; the history that the agent repeats is ignored."""
        wanted = {"sessionId": session_id, "cwd": str(folder.path), "mcpServers": list(mcp_servers)}
        result = await self._peer.request("session/load", wanted, self._settings.answer_seconds)
        return self._remember(AcpSession(session_id, gateway_session_id, folder, config_choices(result)))

    async def configure(self, session: AcpSession, settings: m.Settings, model: str | None) -> None:
        """Set the options that the agent offers to what the session has chosen, its model among them."""
        for option in session.choices:
            chosen = settings.options.get(option.id) or (model if option.category == "model" else None)
            if chosen is None or chosen == option.current_value or not option.offers(chosen):
                continue
            wanted = {"sessionId": session.session_id, "configId": option.id, "value": chosen}
            try:
                result = await self._peer.request("session/set_config_option", wanted, self._settings.answer_seconds)
            except RequestRefused as error:
                log.warning("acp_option_refused", session=session.gateway_session_id, reason=error.message)
            else:
                session.choices = config_choices(result) or session.choices

    async def close_session(self, gateway_session_id: str) -> None:
        """The gateway's session was deleted; close the agent's session if the agent can."""
        of_gateway = [each for each in self._sessions.values() if each.gateway_session_id == gateway_session_id]
        for session in of_gateway:
            self.forget(session)
            if self.capabilities.can_close:
                wanted = {"sessionId": session.session_id}
                await self._peer.request("session/close", wanted, self._settings.cancel_seconds)

    def forget(self, session: AcpSession) -> None:
        self._sessions.pop(session.session_id)

    def _remember(self, session: AcpSession) -> AcpSession:
        """Keep the session as the most recent one; a session without a turn may be dropped for it."""
        self._sessions.put(session.session_id, session)
        return session

    async def prompt(self, session: AcpSession, blocks: Sequence[JsonObject]) -> UpdateQueue:
        """Start a turn of the agent; its updates and its result arrive in the queue."""
        updates = session.updates = UpdateQueue()
        self._remember(session)
        wanted = {"sessionId": session.session_id, "prompt": list(blocks)}
        await self._peer.begin("session/prompt", wanted, lambda reply: updates.close(_prompt_result(reply)))
        return updates

    async def cancel(self, session: AcpSession) -> None:
        await self._peer.notify("session/cancel", {"sessionId": session.session_id})

    async def answer_permission(self, id: RpcId, option_id: str | None) -> None:
        """Answer a request for permission; without an option the request is cancelled."""
        chosen: JsonObject = {"outcome": "cancelled"}
        if option_id is not None:
            chosen = {"outcome": "selected", "optionId": option_id}
        await self._peer.answer(id, {"outcome": chosen})

    # -- messages of the agent ------------------------------------------------------------------------------------

    async def _receive(self, message: RpcMessage) -> None:
        try:
            if message.id is not None:
                await self._receive_request(message, message.id)
            elif message.method == "session/update":
                await self._session_update(message)
        except _InvalidMessage as error:
            log.warning("acp_message_invalid", process=self.pid, reason=error.message)
            if message.id is not None:
                self._start_request(self._peer.refuse(message.id, INVALID, error.message))

    async def _session_update(self, message: RpcMessage) -> None:
        notice = decode_as("session/update", message.params, SessionUpdateParams)
        session = self._sessions.get(notice.session_id)
        if session is not None and session.updates is not None:
            await session.updates.put(notice.update, len(bytes(message.params)))

    async def _receive_request(self, message: RpcMessage, id: RpcId) -> None:
        if message.method != "session/request_permission":
            self._start_request(self._serve(message, id))
            return
        wanted = decode_as("session/request_permission", message.params, PermissionParams)
        session = self._sessions.get(wanted.session_id)
        if session is None or session.updates is None or session.updates.closed.is_set():
            self._start_request(self.answer_permission(id, None))
        else:
            await session.updates.put(PermissionRequest(id, wanted), len(bytes(message.params)))

    def _start_request(self, request: Coroutine[None, None, None]) -> None:
        """Handle a request in a task: the agent may write more before it reads the response."""
        if len(self._requests) >= MAX_FILE_REQUESTS:
            request.close()
            raise BackendFailed("the agent asks for more than can be done at once")
        task = asyncio.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._requests.discard(task)
        if not task.cancelled() and isinstance(task.exception(), GatewayError):
            log.debug("acp_response_lost", process=self.pid, reason=str(task.exception()))

    async def _serve(self, message: RpcMessage, id: RpcId) -> None:
        try:
            await self._peer.answer(id, await self._file_result(message))
        except _UnknownMethod:
            await self._peer.refuse(id, NOT_FOUND, f"{message.method} is not offered")
        except _InvalidMessage as error:
            await self._peer.refuse(id, INVALID, error.message)
        except GatewayError as error:
            await self._peer.refuse(id, INTERNAL, error.message)

    async def _file_result(self, message: RpcMessage) -> JsonObject:
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
        session = self._sessions.get(session_id)
        if session is None:
            raise BackendFailed(f"there is no session {session_id}")
        return session.folder


class _UnknownMethod(Exception):
    """The agent called a method that the client does not offer."""


class _InvalidMessage(BackendFailed):
    """The agent sent a message that does not fit the protocol."""


def decode_as(method: str, raw: msgspec.Raw, shape: type[Shape]) -> Shape:
    """The parameters or the result of a method, as a struct."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _InvalidMessage(f"the agent sent a message {method} that cannot be read: {error}") from None


def config_choices(raw: msgspec.Raw) -> tuple[ConfigOption, ...]:
    """The options in the result of a method; none if it has none, or none that can be read."""
    try:
        return msgspec.json.decode(raw, type=ConfigResult).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def _prompt_result(result: RpcMessage | GatewayError) -> PromptResult | GatewayError:
    try:
        return decode_as("session/prompt", result_or_raise("session/prompt", result), PromptResult)
    except GatewayError as error:
        return error
