"""The remote backend: a turn here is a turn there; what is asked there is asked here, and answers go back."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import structlog

from gateway.errors import BackendFailed, GatewayError, Interrupted
from gateway.model import (
    PRIVATE,
    ROOT,
    Answer,
    AnyAsk,
    ClientToolAsk,
    Entry,
    Fault,
    Outcome,
    ReturnResult,
    SeedMessage,
    SendMessage,
    SessionUpdated,
    ToolOutput,
    ToolReturned,
    ToolStatusChanged,
    call_of,
)
from gateway.ports import Said, Scoped, Turn
from gateway.speech import Speech
from gateway.upstream import Asked, Ended, Heard, Opening, Remote

from .ending import reasoned
from .guarding import Guard, settled, settled_now
from .holding import evaluated

log = structlog.get_logger("dragoman.remote")

KNOWN = 10_000
"""So many sessions are remembered here; for the others there is the metadata of the session."""
GOODBYE_SECONDS = 5.0
"""How long the server is given to take note that its turn is over."""
SESSION, SERVER, SPOKEN = "upstream_session", "upstream_url", "upstream_dialect"
"""Where a session's metadata tells which session of which server is behind it."""
KEPT = "remote"
"""Under this name the same stands in the session's private metadata."""
ASKED = "asked"
"""Beside it: what a turn waits for, where the server knows it by another word than the id of the call it is about."""
NOTHING_CAME = ReturnResult(request_id="", content="Tool call cancelled", is_error=True)
FORGOTTEN = "The server that asked this cannot be reached any more under the ids it used."


class RemoteBackend:
    """Every session here has one there, opened with its first turn and remembered in the session's metadata."""

    def __init__(self, remote: Remote, dialect: str, url: str) -> None:
        self._remote, self._dialect, self._url = remote, dialect, url
        self._known: OrderedDict[str, str] = OrderedDict()

    async def close(self) -> None:
        await self._remote.close()

    async def run(self, turn: Turn) -> Speech:
        session_id = self._recall(turn)
        if session_id is None:
            session_id = await self._remote.open(_opening(turn))
            yield SessionUpdated(metadata=self._noted(turn, session_id))
        self._remember(turn.session_id, session_id)
        stream = self._remote.say(session_id, turn.command, settled_now(turn))
        async with aclosing(self._follow(turn, session_id, stream)) as speech:
            async for said in speech:
                yield said

    async def resume(self, turn: Turn, answers: Sequence[Answer]) -> Speech:
        """The turn waited here while the gateway stopped; it still waits there."""
        session_id, asked = self._recall(turn), _asked_before(turn)
        if session_id is None or len(asked) != len(answers):
            raise Interrupted(FORGOTTEN)
        self._remember(turn.session_id, session_id)
        for said in _returned(asked, answers):
            yield said
        stream = self._remote.answer(session_id, list(zip(asked, answers, strict=True)))
        async with aclosing(self._follow(turn, session_id, stream)) as speech:
            async for said in speech:
                yield said

    # -- a turn there -------------------------------------------------------------------------------------------------

    async def _follow(self, turn: Turn, session_id: str, stream: AsyncGenerator[Heard, None]) -> Speech:
        """Say what is heard, ask what is asked, until the server has ended its turn."""
        over, done = False, set[str]()
        guard = None if self._remote.tells_permissions else Guard(turn)
        try:
            while not over:
                asked: list[Asked] = []
                async with aclosing(reasoned(stream if guard is None else evaluated(stream), turn.mint)) as told:
                    async for heard in told:
                        if guard is not None:
                            guard.watch(heard)
                        if isinstance(heard, Asked):
                            asked.append(heard)
                        elif isinstance(heard, Ended):
                            over = True
                            _raise_fault(heard)
                        elif (said := _ours(heard, done)) is not None:
                            yield said
                if over:
                    return
                if not asked:
                    raise BackendFailed(f"the server at {self._url} stopped without ending its turn")
                if any(one.ref != _mark(one.ask)[1] for one in asked):
                    yield SessionUpdated(metadata=_with_asks(turn, asked))
                answers = await self._ask(turn, asked)
                for said in _returned(asked, answers):
                    yield said
                done |= {one.ask.call.call_id for one in asked if isinstance(one.ask, ClientToolAsk)}
                stream = self._remote.answer(session_id, list(zip(asked, answers, strict=True)))
        finally:
            if not over:
                await self._leave(session_id)

    async def _ask(self, turn: Turn, asked: Sequence[Asked]) -> list[Answer]:
        scopes = {one.scope_id for one in asked}
        return await turn.ask(*(one.ask for one in asked), scope_id=scopes.pop() if len(scopes) == 1 else ROOT)

    async def _leave(self, session_id: str) -> None:
        """The turn here is over before the one there: end that, too, within a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                try:
                    await self._remote.interrupt(session_id)
                except GatewayError as error:
                    log.warning("the server was not told that its turn is over", server=self._url, why=error.message)

    # -- which session there ------------------------------------------------------------------------------------------

    def _noted(self, turn: Turn, session_id: str) -> dict[str, Any]:
        """The metadata with the session there: for all to see, and where no client can take it away."""
        seen = {SESSION: session_id, SERVER: self._url, SPOKEN: self._dialect}
        private = turn.metadata.get(PRIVATE) or {}
        return {**turn.metadata, **seen, PRIVATE: {**private, KEPT: seen}}

    def _recall(self, turn: Turn) -> str | None:
        kept = (turn.metadata.get(PRIVATE) or {}).get(KEPT) or {}
        told = kept.get(SESSION) if kept.get(SERVER) == self._url else None
        return self._known.get(turn.session_id) or (told if isinstance(told, str) else None)

    def _remember(self, ours: str, theirs: str) -> None:
        self._known[ours] = theirs
        self._known.move_to_end(ours)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)


# -- what is asked there, and answered after a restart here -----------------------------------------------------------

def _with_asks(turn: Turn, asked: Sequence[Asked]) -> dict[str, Any]:
    """The metadata with what is needed to answer by whoever has not heard the server ask."""
    private = turn.metadata.get(PRIVATE) or {}
    told = {"turn": turn.turn_id, "asks": [[*_mark(one.ask), one.ref, one.scope_id] for one in asked]}
    return {**turn.metadata, PRIVATE: {**private, KEPT: {**(private.get(KEPT) or {}), ASKED: told}}}


def _asked_before(turn: Turn) -> list[Asked]:
    """What the turn waits for, as far as it can still be answered there."""
    told = ((turn.metadata.get(PRIVATE) or {}).get(KEPT) or {}).get(ASKED) or {}
    kept = told.get("asks") if told.get("turn") == turn.turn_id else None
    if kept and [(kind, call_id) for kind, call_id, _, _ in kept] == [_mark(ask) for ask in turn.asked]:
        return [Asked(ask=ask, ref=ref, scope_id=scope_id)
                for ask, (_, _, ref, scope_id) in zip(turn.asked, kept, strict=True)]
    return [Asked(ask=ask, ref=call.call_id) for ask in turn.asked if (call := call_of(ask)) is not None]


def _mark(ask: AnyAsk) -> tuple[str, str]:
    """What an ask is and what it is about: so one is told from another."""
    call = call_of(ask)
    return ask.kind, call.call_id if call else ""


def _ours(said: Said, done: set[str]) -> Said | None:
    """What is said there as it is said here: nothing of calls that have come back here already, nor of its metadata."""
    event = said.event if isinstance(said, Scoped) else said
    if isinstance(event, ToolReturned | ToolStatusChanged | ToolOutput):
        return None if event.call_id in done else said
    if isinstance(event, SessionUpdated):
        return SessionUpdated(title=event.title) if event.title is not None else None
    return said


def _raise_fault(ended: Ended) -> None:
    if ended.fault is not None:
        raise _Faulted(ended.fault)
    if ended.outcome is Outcome.INTERRUPTED:
        raise Interrupted("the server's turn was interrupted")
    if ended.outcome is Outcome.FAILED:
        raise BackendFailed("the server's turn failed")


class _Faulted(GatewayError):
    """The fault that a server told, told on."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message, details=fault.details)
        self._fault = fault

    @property
    def fault(self) -> Fault:
        return self._fault


def _returned(asked: Sequence[Asked], answers: Sequence[Answer]) -> list[Said]:
    """What the client's own tools gave back; a server need not repeat what it was told."""
    said: list[Said] = []
    for one, answer in zip(asked, answers, strict=True):
        if isinstance(one.ask, ClientToolAsk):
            call, gave = one.ask.call, answer if isinstance(answer, ReturnResult) else NOTHING_CAME
            event = ToolReturned(call_id=call.call_id, content=gave.content, is_error=gave.is_error, origin=call.origin)
            said.append(event if one.scope_id == ROOT else Scoped(one.scope_id, event))
    return said


def _opening(turn: Turn) -> Opening:
    """A new session there knows what was said here before; the message that starts the turn is sent by itself."""
    started_by = len(turn.command.results) or 1 if isinstance(turn.command, SendMessage) else 1
    return Opening(settings=settled(turn), history=tuple(_seed(entry) for entry in turn.history[:-started_by]))


def _seed(entry: Entry) -> SeedMessage:
    return SeedMessage(role=entry.role, content=entry.content, call_id=entry.call_id)
