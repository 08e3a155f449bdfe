"""One turn with an ACP agent: its updates as events, and its requests for permission as asks."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog

import gateway.model as m
from gateway.backends.tools import is_headless, is_planning
from gateway.errors import BackendFailed, GatewayError, Interrupted
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd, Turn

from .agent import AcpAgent, AcpSession
from .decoder import AcpDecoder, is_granted
from .prompt import ContentBlock
from .update_queue import PermissionRequest, UpdateQueue
from .wire import PermissionOption, PromptResult

log = structlog.get_logger("dragoman.acp")
HOLD_SECONDS = 0.5
"""How long the start of a call is held, in case the agent asks permission for it."""


class AcpTurn:
    """A prompt to the agent, as an async context manager whose exit cancels the agent's turn if it still runs."""

    def __init__(
        self, turn: Turn, agent: AcpAgent, session: AcpSession, prompt: Sequence[ContentBlock], cancel_seconds: float,
    ) -> None:
        self._turn, self._agent, self._session, self._prompt = turn, agent, session, prompt
        self._cancel_seconds = cancel_seconds
        self._decoder = AcpDecoder(turn.mint)
        self._requests: list[tuple[PermissionRequest, RemoteAsk]] = []
        """The requests for permission that people are to decide."""
        self._preset: tuple[PermissionRequest, RemoteAsk, m.Answer] | None = None
        """A request that the session's settings decide."""
        self._has_begun = self._is_paused = self._is_over = False
        self._failure: GatewayError | None = None
        self._updates: UpdateQueue

    async def __aenter__(self) -> "AcpTurn":
        self._updates = await self._agent.prompt(self._session, self._prompt)
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if not self._is_over:
                await self._cancel()
        finally:
            self._session.end_turn()

    async def read(self) -> list[BackendEvent]:
        """The next events, at least one; an empty list at the end. Asks people as soon as the agent waits for them."""
        while not self._is_over:
            if events := await self._next():
                return events
        if self._failure is not None:
            raise self._failure
        return []

    async def _next(self) -> list[BackendEvent]:
        if not self._has_begun:
            self._has_begun = True
            return self._decoder.begin()
        if self._preset is not None:  # after the events of the request were emitted
            preset, self._preset = self._preset, None
            await self._decide(*preset)
        if self._is_paused:
            await self._ask()
            return []
        if self._requests and self._updates.empty:
            self._is_paused = True
            return self._decoder.suspend()
        if self._decoder.holds and not await self._updates.ready(HOLD_SECONDS):
            return self._decoder.release_held()
        match await self._updates.get():
            case PermissionRequest() as request:
                return self._request(request)
            case GatewayError() as error:
                self._is_over = True
                raise error
            case body:
                return self._events(self._decoder.feed(ParsedFrame("", body)))

    def _events(self, items: Sequence[DecodedItem]) -> list[BackendEvent]:
        """The events of the items; the end of the agent's turn ends this one."""
        events = list[BackendEvent]()
        for item in items:
            if isinstance(item, RemoteTurnEnd):
                self._is_over = True
                if item.outcome is m.Outcome.INTERRUPTED:
                    self._failure = Interrupted("the agent cancelled its turn")
            elif not isinstance(item, RemoteAsk):
                events.append(item)
        return events

    # -- permissions ----------------------------------------------------------------------------------------------

    def _request(self, request: PermissionRequest) -> list[BackendEvent]:
        items = self._decoder.feed(ParsedFrame("", request.wanted, str(request.id)))
        for asked in items:
            if isinstance(asked, RemoteAsk) and isinstance(asked.ask, m.PermissionAsk):
                decided = preset_decision(self._turn, asked.ask.call)
                if decided is None:
                    self._requests.append((request, asked))
                else:
                    self._preset = request, asked, m.DecidePermission(request_id="", granted=decided)
        return self._events(items)

    async def _ask(self) -> None:
        """Ask people about all requests and pass their decisions on; an agent that ends meanwhile ends the turn."""
        self._updates.wait_for_people(True)
        asks = [asked.ask for _, asked in self._requests]
        tasks = asyncio.create_task(self._turn.ask(*asks)), asyncio.create_task(self._updates.closed.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise await _end_reason(self._updates)
            for (request, asked), answer in zip(self._requests, tasks[0].result(), strict=True):
                await self._decide(request, asked, answer)
        finally:
            self._updates.wait_for_people(False)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._requests, self._is_paused = [], False

    async def _decide(self, request: PermissionRequest, asked: RemoteAsk, answer: m.Answer) -> None:
        self._decoder.on_answer(asked, answer)
        await self._agent.answer_permission(request.id, option_for(request.wanted.options, is_granted(answer)))

    async def _cancel(self) -> None:
        """Cancel the agent's turn, and wait a while until it has ended."""
        try:
            async with asyncio.timeout(self._cancel_seconds):
                await self._agent.cancel(self._session)
                for request, _ in self._requests:
                    await self._agent.answer_permission(request.id, None)
                while not self._updates.closed.is_set():
                    if isinstance(item := await self._updates.get(), PermissionRequest):
                        await self._agent.answer_permission(item.id, None)
        except TimeoutError:
            log.warning("acp_cancel_timeout", process=self._agent.pid)
            self._agent.forget(self._session)
        except GatewayError as error:
            log.debug("acp_cancel_failed", process=self._agent.pid, reason=error.message)


async def _end_reason(updates: UpdateQueue) -> GatewayError:
    """Why the agent no longer waits for the permissions."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while True:
                item = await updates.get()
                if isinstance(item, GatewayError):
                    return item
                if isinstance(item, PromptResult):
                    break
    return BackendFailed("the agent ended its turn without waiting for the permission it had asked for")


OPTION_KINDS = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""The kinds of options that grant and deny, the preferred one first."""


def preset_decision(turn: Turn, call: m.ToolCall) -> bool | None:
    """The decision that the session's settings make for this call; None if people are to be asked."""
    if is_planning(turn):
        return False
    policy = (turn.settings.tools or {}).get(call.name, m.Permission.ASK)
    if policy is not m.Permission.ASK:
        return policy is m.Permission.ALLOW
    return True if is_headless(turn) else None


def option_for(options: Sequence[PermissionOption], decided: bool | None) -> str | None:
    """The option for the decision; None, which cancels the request, if the agent offers none."""
    if decided is None:
        return None
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in OPTION_KINDS[decided] if kind in by_kind), None)
