"""The acp backend: sessions of an ACP agent, their folders, and their turns."""

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import structlog

import gateway.model as m
from gateway.client import AddressPolicy, BackendEvents, BackendOutputs
from gateway.errors import GatewayError, Interrupted, Unsupported
from gateway.json_values import JsonObject
from gateway.ports import Addresses, Turn

from .agent import AcpAgent, AcpSession, AcpSettings
from .json_rpc import RequestRefused
from .mcp_relay import McpRelay, mcp_server_params
from .process import ProcessSupervisor
from .prompt import PromptOptions, addresses_in, memory_blocks, opening_blocks, prompt_blocks, write_skills
from .session_folder import SessionFolder
from .turn import AcpTurn

log = structlog.get_logger("dragoman.acp")
METADATA_KEY = "acp"
"""The key of the agent's session id in a session's private metadata."""
LINGER_SECONDS = 5.0
"""Seconds beyond `cancel_seconds` that a turn may take to end before the folder of a deleted session is removed."""
AGENT_GONE = "The agent that asked this has stopped waiting: the server was stopped in between."


class AcpBackend:
    """One process for all sessions; each session has a session of the agent, and a folder below the root."""

    def __init__(
        self, settings: AcpSettings, base: Path, *, addresses: Addresses | None = None, trust_uploads: bool = False,
    ) -> None:
        command = settings.command
        self._settings = settings.model_copy(update={
            "command": str(base / command) if "/" in command else command,
        })
        self._root = base / settings.root
        self._keeper = ProcessSupervisor(lambda: AcpAgent.start(self._settings, base), settings.starts_per_minute)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._removing: set[asyncio.Task[None]] = set()
        self._addresses: Addresses = addresses or AddressPolicy()
        self._trust_uploads = trust_uploads
        self._relay = McpRelay(self._addresses)

    async def close(self) -> None:
        await self._keeper.close()
        await self._relay.close()
        await asyncio.gather(*self._removing)

    async def forget(self, session_id: str) -> None:
        """The session was deleted: close the agent's session and remove the folder."""
        removal = asyncio.create_task(self._remove(session_id), name=f"removal of {session_id}")
        self._removing.add(removal)
        removal.add_done_callback(self._removing.discard)
        if session_id not in self._turns:
            await asyncio.shield(removal)

    async def _remove(self, session_id: str) -> None:
        """Wait for a turn that is being cancelled, which may still write files, then remove the session."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.cancel_seconds + LINGER_SECONDS), self._turn(session_id):
                pass
        await self._close_session(session_id)
        if "root" not in self._settings.model_fields_set:  # below a root that the operator named, folders are kept
            await self._remove_folder(self._root / _folder_name(session_id))

    async def _close_session(self, session_id: str) -> None:
        agent = self._keeper.running
        if agent is None:
            return
        try:
            await agent.close_session(session_id)
        except GatewayError as error:
            log.warning("acp_session_close_failed", session=session_id, reason=error.message)

    async def _remove_folder(self, folder: Path) -> None:
        try:
            await asyncio.to_thread(shutil.rmtree, folder)
        except FileNotFoundError:
            pass  # the session had no turn
        except OSError as error:
            log.warning("acp_folder_not_removed", folder=str(folder), reason=str(error))

    def _turn(self, session_id: str) -> asyncio.Lock:
        """The lock of a session: the agent may still be cancelling its last turn."""
        return self._turns.setdefault(session_id, asyncio.Lock())

    async def run(self, turn: Turn) -> BackendOutputs:
        command = turn.command
        if not isinstance(command, m.SendMessage):
            raise Unsupported("the agent keeps its own history, which cannot be compacted from here")
        async with self._turn(turn.session_id):
            agent = await self._keeper.ready()
            place, is_new = await self._place(turn, agent)
            if is_new:
                yield m.SessionUpdated(metadata=_with_session_id(turn.metadata, place.session_id))
            await agent.configure(place, turn.settings, command.model or turn.settings.model)
            how = PromptOptions(
                images=agent.capabilities.takes_images, refused=await self._refused(command),
                trust_uploads=self._trust_uploads,
            )
            prompt = await asyncio.to_thread(prompt_blocks, command, place.folder, how)
            blocks = [*memory_blocks(turn), *prompt]
            if is_new:
                skills = await write_skills(turn, place.folder, trust_uploads=self._trust_uploads)
                blocks = [*opening_blocks(turn, skills), *blocks]
            async with AcpTurn(turn, agent, place, blocks, self._settings.cancel_seconds) as acp_turn:
                while events := await acp_turn.read():
                    yield events

    async def _refused(self, command: m.SendMessage) -> frozenset[str]:
        """The addresses in the message that clients may not name, after their host names were looked up."""
        urls = sorted(addresses_in(command))
        problems = await asyncio.gather(*map(self._addresses.problem_resolved, urls))
        refused = {url: problem for url, problem in zip(urls, problems, strict=True) if problem is not None}
        for problem in refused.values():
            log.warning("acp_address_blocked", reason=problem)
        return frozenset(refused)

    async def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendEvents:
        """A turn cannot resume: the agent's process was stopped together with the server."""
        raise Interrupted(AGENT_GONE)
        yield  # an async generator, as `run` is

    # -- sessions of the agent ------------------------------------------------------------------------------------

    async def _place(self, turn: Turn, agent: AcpAgent) -> tuple[AcpSession, bool]:
        """The agent's session, and whether it is new."""
        known = _stored_session_id(turn.metadata)
        if known is not None and (place := agent.session(known)) is not None:
            return place, False
        folder = await asyncio.to_thread(SessionFolder, self._root / _folder_name(turn.session_id))
        wanted = await mcp_server_params(
            _with_headers(turn.settings), agent.capabilities.mcp_transports, self._addresses, self._relay)
        if known is not None and agent.capabilities.can_load:
            try:
                return await agent.load_session(known, turn.session_id, folder, wanted), False
            except RequestRefused as error:
                log.warning("acp_session_load_refused", session=turn.session_id, reason=error.message)
        return await agent.new_session(turn.session_id, folder, wanted), True


def _with_headers(settings: m.Settings) -> list[JsonObject]:
    """The session's MCP servers, each with the header that it gets."""
    with_headers = []
    for one in settings.mcp_servers:
        given = one.get("headers")
        headers = {**(given if isinstance(given, dict) else {}), **settings.mcp_headers_of(str(one.get("url")))}
        with_headers.append({**one, "headers": headers})
    return with_headers


def _folder_name(session_id: str) -> str:
    """The name of a session's folder."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", session_id)


def _stored_session_id(metadata: Mapping[str, Any]) -> str | None:
    kept = (metadata.get(m.PRIVATE) or {}).get(METADATA_KEY)
    return kept if isinstance(kept, str) else None


def _with_session_id(metadata: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    return {**metadata, m.PRIVATE: {**(metadata.get(m.PRIVATE) or {}), METADATA_KEY: session_id}}
