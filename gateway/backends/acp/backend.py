"""The acp backend: a turn here is a prompt there; what the agent wants permission for is asked here."""

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import is_planning
from gateway.client import AddressPolicy, BackendEvents
from gateway.errors import BackendFailed, GatewayError, Interrupted, Unsupported
from gateway.ports import Addresses, Turn

from .agent import AcpAgent, AcpSession
from .decoder import STOP_REASONS, AcpDecoder
from .json_rpc import RequestRefused
from .mcp_relay import McpRelay, mcp_server_params
from .process import ProcessSupervisor
from .prompt import ContentBlock, PromptOptions, addresses_in, opening_blocks, prompt_blocks
from .session_folder import SessionFolder
from .settings import AcpSettings
from .update_queue import PermissionRequest, UpdateQueue
from .wire import PermissionOption, PromptResult

log = structlog.get_logger("dragoman.acp")
METADATA_KEY = "acp"
"""Under this name a session's private metadata tell which session of the agent's is behind it."""
HOLD_SECONDS = 0.5
"""So long a call is held that the agent has not begun, in case that it wants a permission for it."""
LINGER_SECONDS = 5.0
"""So much longer than to cancel it a turn may take to end, before the folder of a session that is gone is removed."""
AGENT_GONE = "The agent that asked this has stopped waiting: the server was stopped in between."


class AcpBackend:
    """One process for all sessions; each session here has one there, and a folder below the root."""

    def __init__(self, settings: AcpSettings, base: Path) -> None:
        command = settings.command
        self._settings = settings.model_copy(update={
            "command": str(base / command) if "/" in command else command,
        })
        self._root = base / settings.root
        self._keeper = ProcessSupervisor(lambda: AcpAgent.start(self._settings, base), settings.starts_per_minute)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._removing: set[asyncio.Task[None]] = set()
        self.confine(AddressPolicy(), trust_uploads=False)

    def confine(self, addresses: Addresses, *, trust_uploads: bool) -> None:
        """What clients named reaches the agent within these bounds."""
        self._addresses, self._trust_uploads = addresses, trust_uploads
        self._relay = McpRelay(addresses)

    async def close(self) -> None:
        await self._keeper.close()
        await self._relay.close()
        await asyncio.gather(*self._removing)

    async def forget(self, session_id: str) -> None:
        """The session is gone, and with it the agent's own and the folder."""
        removal = asyncio.create_task(self._remove(session_id), name=f"removal of {session_id}")
        self._removing.add(removal)
        removal.add_done_callback(self._removing.discard)
        if session_id not in self._turns:
            await asyncio.shield(removal)

    async def _remove(self, session_id: str) -> None:
        """Not while a turn that was interrupted says goodbye: it may still be writing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.cancel_seconds + LINGER_SECONDS), self._turn(session_id):
                pass
        await self._close_there(session_id)
        if "root" not in self._settings.model_fields_set:  # where the operator has named it, folders are the operator's
            await self._remove_folder(self._root / _folder_name(session_id))

    async def _close_there(self, session_id: str) -> None:
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
            pass  # it never had a turn
        except OSError as error:
            log.warning("acp_folder_not_removed", folder=str(folder), reason=str(error))

    def _turn(self, session_id: str) -> asyncio.Lock:
        """One turn of a session at a time: one that was interrupted may still be saying goodbye."""
        return self._turns.setdefault(session_id, asyncio.Lock())

    async def run(self, turn: Turn) -> BackendEvents:
        command = turn.command
        if not isinstance(command, m.SendMessage):
            raise Unsupported("the agent keeps its own history, which cannot be compacted from here")
        async with self._turn(turn.session_id):
            agent = await self._keeper.ready()
            place, is_new = await self._place(turn, agent)
            if is_new:
                yield m.SessionUpdated(metadata=_with_session_id(turn.metadata, place.session_id))
            how = PromptOptions(images=agent.capabilities.takes_images, refused=await self._refused(command),
                          trust_uploads=self._trust_uploads)
            said = await asyncio.to_thread(prompt_blocks, command, place.folder, how)
            prompt = [*(opening_blocks(turn) if is_new else ()), *said]
            async with aclosing(self._follow(turn, agent, place, prompt)) as speech:
                async for event in speech:
                    yield event

    async def _refused(self, command: m.SendMessage) -> frozenset[str]:
        """The addresses of the message that lead, as of now, to where clients may not send an agent."""
        urls = sorted(addresses_in(command))
        problems = await asyncio.gather(*map(self._addresses.problem_resolved, urls))
        refused = {url: problem for url, problem in zip(urls, problems, strict=True) if problem is not None}
        for problem in refused.values():
            log.warning("acp_address_blocked", reason=problem)
        return frozenset(refused)

    async def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendEvents:
        """The agent's process was ended with the server, and what it wanted to do was never done."""
        raise Interrupted(AGENT_GONE)
        yield  # an async generator, as `run` is

    # -- sessions there -----------------------------------------------------------------------------------------------

    async def _place(self, turn: Turn, agent: AcpAgent) -> tuple[AcpSession, bool]:
        """The session at the agent, and whether the agent meets it for the first time."""
        known = _stored_session_id(turn.metadata)
        if known is not None and (place := agent.session(known)) is not None:
            return place, False
        folder = await asyncio.to_thread(SessionFolder, self._root / _folder_name(turn.session_id))
        wanted = await mcp_server_params(
            turn.settings.mcp_servers, agent.capabilities.mcp_transports, self._addresses, self._relay)
        if known is not None and agent.capabilities.can_load:
            try:
                return await agent.load_session(known, turn.session_id, folder, wanted), False
            except RequestRefused as error:
                log.warning("acp_session_load_refused", session=turn.session_id, reason=error.message)
        return await agent.new_session(turn.session_id, folder, wanted), True

    # -- a turn there -------------------------------------------------------------------------------------------------

    async def _follow(
        self, turn: Turn, agent: AcpAgent, place: AcpSession, prompt: Sequence[ContentBlock]
    ) -> BackendEvents:
        hearing = AcpDecoder(turn.mint)
        inbox, over = await agent.prompt(place, prompt), False
        asking: list[tuple[PermissionRequest, m.ToolCall]] = []
        try:
            for said in hearing.begin():
                yield said
            while not over:
                if asking and inbox.empty:
                    for said in hearing.pause([call for _, call in asking]):
                        yield said
                    await self._settle(turn, agent, hearing, inbox, asking)
                    asking.clear()
                    continue
                if hearing.holds and not await inbox.ready(HOLD_SECONDS):
                    for said in hearing.release_held():
                        yield said
                match await inbox.get():
                    case PermissionRequest() as request:
                        call, told = hearing.permission_requested(request.wanted.tool_call)
                        for said in told:
                            yield said
                        decided = preset_decision(turn, call)
                        if decided is None:
                            asking.append((request, call))
                        else:
                            await self._decide(agent, hearing, request, call, decided)
                    case GatewayError() as error:
                        over = True
                        raise error
                    case PromptResult() as prompted:
                        over = True
                        for said in hearing.end(prompted):
                            yield said
                        if STOP_REASONS.get(prompted.stop_reason) is STOP_REASONS["cancelled"]:
                            raise Interrupted("the agent cancelled its turn")
                    case update:
                        for said in hearing.feed(update):
                            yield said
        finally:
            if not over:
                await self._leave(agent, place, inbox, [request for request, _ in asking])
            place.updates = None
            inbox.close(Interrupted("the turn is over"))  # whoever still fills it must not wait for room

    async def _settle(
        self,
        turn: Turn,
        agent: AcpAgent,
        hearing: AcpDecoder,
        inbox: UpdateQueue,
        asking: Sequence[tuple[PermissionRequest, m.ToolCall]],
    ) -> None:
        """Put all requests before people and pass their decisions on; an agent that ends meanwhile ends the turn."""
        inbox.wait_for_people(True)
        asks = [permission_ask(call) for _, call in asking]
        tasks = asyncio.create_task(turn.ask(*asks)), asyncio.create_task(inbox.closed.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise await _end_reason(inbox)
            for (request, call), answer in zip(asking, tasks[0].result(), strict=True):
                await self._decide(agent, hearing, request, call, decision(answer))
        finally:
            inbox.wait_for_people(False)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _decide(
        self, agent: AcpAgent, hearing: AcpDecoder, request: PermissionRequest, call: m.ToolCall, decided: bool | None,
    ) -> None:
        if not decided:
            hearing.denied(call)
        await agent.answer_permission(request.id, option_for(request.wanted.options, decided))

    async def _leave(
        self, agent: AcpAgent, place: AcpSession, inbox: UpdateQueue, asking: Sequence[PermissionRequest]
    ) -> None:
        """The turn here is over before the one there: cancel that, and wait a while until it has ended."""
        try:
            async with asyncio.timeout(self._settings.cancel_seconds):
                await agent.cancel(place)
                for request in asking:
                    await agent.answer_permission(request.id, None)
                while not inbox.closed.is_set():
                    if isinstance(item := await inbox.get(), PermissionRequest):
                        await agent.answer_permission(item.id, None)
        except TimeoutError:
            log.warning("acp_cancel_timeout", process=agent.pid)
            agent.forget(place)
        except GatewayError as error:
            log.debug("acp_cancel_failed", process=agent.pid, reason=error.message)


async def _end_reason(inbox: UpdateQueue) -> GatewayError:
    """Why the agent no longer waits for what it asked."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while True:
                item = await inbox.get()
                if isinstance(item, GatewayError):
                    return item
                if isinstance(item, PromptResult):
                    break
    return BackendFailed("the agent ended its turn without waiting for the permission it had asked for")


def _folder_name(session_id: str) -> str:
    """A session's id, fit to be the name of a folder."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", session_id)


def _stored_session_id(metadata: Mapping[str, Any]) -> str | None:
    kept = (metadata.get(m.PRIVATE) or {}).get(METADATA_KEY)
    return kept if isinstance(kept, str) else None


def _with_session_id(metadata: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    return {**metadata, m.PRIVATE: {**(metadata.get(m.PRIVATE) or {}), METADATA_KEY: session_id}}


OPTION_KINDS = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""The kinds of options a yes and a no stand for, the nearest first."""


def preset_decision(turn: Turn, call: m.ToolCall) -> bool | None:
    """What the session has decided beforehand about work of this kind; None where people are to be asked."""
    if is_planning(turn):
        return False
    policy = (turn.settings.tools or {}).get(call.name, m.Permission.ASK)
    if policy is not m.Permission.ASK:
        return policy is m.Permission.ALLOW
    headless = isinstance(turn.command, m.SendMessage) and turn.command.headless
    return True if headless else None


def permission_ask(call: m.ToolCall) -> m.PermissionAsk:
    return m.PermissionAsk(call=replace(call, permission=m.Permission.ASK), description=call.display_name or call.name)


def decision(answer: m.Answer) -> bool | None:
    """Yes, no, or None where nobody will answer."""
    return answer.granted if isinstance(answer, m.DecidePermission) else None


def option_for(options: Sequence[PermissionOption], decided: bool | None) -> str | None:
    """The option that says what was decided; None cancels the request, as where the agent offers no such option."""
    if decided is None:
        return None
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in OPTION_KINDS[decided] if kind in by_kind), None)
