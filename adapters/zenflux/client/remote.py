"""Speaks ZenFlux as a client, so that a ZenFlux server can be an agent."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from urllib.parse import quote

from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.asks import AskRef, decode_ref
from adapters.zenflux.bodies import ConversationBody
from adapters.zenflux.wire import DIALECT_NAME, MAX_TITLE
from gateway.client import GeneratorTurn, HttpClient, ItemGenerator, SessionMemory, WebSocketConnector, read_offsets
from gateway.errors import BackendFailed, GatewayError, Unsupported
from gateway.ids import make_mint
from gateway.ports import (
    NewRemoteSession,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurn,
    RemoteTurnEnd,
    SessionPlaces,
)
from mappings.language import Bindings

from . import agent_card
from .readers import read_body, read_list, unwrap
from .requests import CLIENT_USER, CONFIRMATION, HttpCall, deliver_answer, message_body, send_call
from .turn_stream import RemoteRun, TurnStream

MAX_OPEN_CONNECTIONS = 256
"""How many connections stay open while people are asked; the oldest are closed, and opened again when needed."""
SOCKET_PATH = "/ws/chat"
MAX_SESSIONS = 10_000
"""Of so many sessions the last run is remembered."""
BegunRun = tuple[RemoteRun, Callable[[], Awaitable[None]]]
"""A run, and what sends to it what it begins or goes on with."""


class Remote:
    """A ZenFlux server. Each turn has a socket of its own, which stays open while people are asked.

    ZenFlux has no tools, options, secrets, system prompt or model of a session, no history to begin with and no
    compaction: a session has an agent and a title, and a message has text, files and variables. `TurnStream` explains
    how a run is resumed.
    """

    supports_permissions = False

    def __init__(self, address: RemoteAddress) -> None:
        self._agent = address.agent
        self._upstream = HttpClient.at(address)
        self._sockets = WebSocketConnector(self._upstream, SOCKET_PATH)
        self._stream = TurnStream(self._upstream, self._sockets)
        self._mint = make_mint()
        self._runs_read: dict[str, RemoteRun] = {}
        self._parked = SessionMemory[RemoteRun](MAX_OPEN_CONNECTIONS)
        self._runs = SessionMemory[str](MAX_SESSIONS)

    async def places(self) -> SessionPlaces:
        return SessionPlaces(variables=True)

    async def about(self) -> m.AgentCard:
        return await agent_card.fetch_agent_card(self._upstream, self._agent, DIALECT_NAME)

    async def open(self, opening: NewRemoteSession) -> str:
        query = {"user_id": CLIENT_USER}
        if opening.title:
            query["title"] = opening.title[:MAX_TITLE]
        if self._agent:
            query["agent_id"] = self._agent
        made = read_body(ConversationBody.row, unwrap(await self._upstream.json("POST", "/conversations", query=query)))
        session_id: str | None = made["session_id"]
        if session_id is None:
            raise BackendFailed(f"{self._upstream.name} did not say which conversation it has made")
        self._runs.put(session_id, "")
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        return await read_offsets(self._conversations, most)

    async def _conversations(self, limit: int, offset: int) -> Sequence[RemoteSession]:
        query = {"user_id": CLIENT_USER, "limit": str(limit), "offset": str(offset)}
        response = unwrap(await self._upstream.json("GET", "/conversations", query=query))
        return [*map(_remote_session, read_list("list.conversations", response))]

    async def join(self, session_id: str) -> RemoteSession:
        response = unwrap(await self._upstream.json("GET", f"/conversations/{quote(session_id, safe='')}"))
        return replace(_remote_session(read_body(ConversationBody.row, response)), session_id=session_id)

    async def close(self) -> None:
        for run in self._parked.values():
            await self._leave(run.session_id)
        await self._sockets.close()
        await self._upstream.close()

    # -- turns ----------------------------------------------------------------------------------------------------

    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._new_run, session_id, command)))

    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._answered_run, session_id, answers)))

    async def _new_run(self, session_id: str, command: m.SendMessage | m.Compact) -> BegunRun:
        if isinstance(command, m.Compact):
            raise Unsupported("a ZenFlux server compacts by itself, and not on request")
        params = message_body(session_id, command, self._agent)
        await self._leave(session_id)
        run = RemoteRun(session_id, self._mint, self._upstream, await self._sockets.open())
        run.before = self._runs.get(session_id)
        return run, partial(run.request, "chat.send", params)

    async def _answered_run(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> BegunRun:
        refs = await self._refs(session_id, [asked for asked, _ in answers])
        run = await self._run_of(session_id, refs)

        async def deliver_all() -> None:
            if not run.request_id:
                await run.resume()
            deliveries = [partial(deliver_answer, self._upstream, asked.ask, ref, answer, alone=len(refs) == 1)
                          for (asked, answer), ref in zip(answers, refs, strict=True)]
            run.undelivered = [deliver for deliver in deliveries if not await deliver()]

        return run, deliver_all

    async def interrupt(self, session_id: str) -> None:
        run = self._runs_read.get(session_id) or self._parked.get(session_id)
        known = run.run_id if run is not None else ""
        run_id = known or await self._stream.running(session_id) or self._runs.get(session_id)
        await self._leave(session_id)
        if not run_id:
            return
        await send_call(self._upstream, HttpCall("POST", f"/session/{run_id}/stop"))
        for ref in run.asked if run is not None else ():
            if ref.request_id and not ref.precise:  # the stop may not reach a run that waits for an answer
                await send_call(self._upstream, HttpCall("DELETE", f"{CONFIRMATION}/{ref.request_id}"))

    async def _items(self, session_id: str, prepare: Callable[[], Awaitable[BegunRun]]) -> ItemGenerator:
        """The items of the run from there on; its connection stays open only while people are asked."""
        (run, begin), waits = await prepare(), False
        self._runs_read[session_id] = run
        try:
            await begin()
            async with aclosing(self._stream.read(run)) as items:
                async for one in items:
                    yield self._upstream.redactor.turn_end(one) if isinstance(one, RemoteTurnEnd) else one
            waits = not run.over
        finally:
            if self._runs_read.get(session_id) is run:
                del self._runs_read[session_id]
            if run.run_id:
                self._runs.put(session_id, run.run_id)
            if waits:
                await self._park(run)
            else:
                await run.disconnect()

    # -- what is kept ---------------------------------------------------------------------------------------------

    async def _park(self, run: RemoteRun) -> None:
        await self._leave(run.session_id)
        oldest = self._parked.put(run.session_id, run)
        if oldest is not None:
            await oldest.disconnect()

    async def _leave(self, session_id: str) -> None:
        run = self._parked.pop(session_id)
        if run is not None:
            await run.disconnect()

    async def _run_of(self, session_id: str, refs: Sequence[AskRef]) -> RemoteRun:
        """The connection on which the ask came, or a new one, on which the run is read again up to the ask."""
        run_id = refs[0].run
        run = self._parked.get(session_id)
        if run is not None and run.run_id == run_id:
            self._parked.pop(session_id)
            return run
        await self._leave(session_id)
        run = RemoteRun(session_id, self._mint, self._upstream, await self._sockets.open(), run_id=run_id)
        run.had = max(ref.seq for ref in refs)
        run.awaited = {ref.request_id for ref in refs if not ref.seq}
        return run

    # -- what was asked -------------------------------------------------------------------------------------------

    async def _refs(self, session_id: str, asked: Sequence[RemoteAsk]) -> list[AskRef]:
        """The target of each answer; if only the call of an ask is known, the server is asked for the ask."""
        refs = [_known_ref(one) for one in asked]
        if not all(ref is not None and ref.request_id for ref in refs):
            try:
                pending = await self._stream.pending()
            except GatewayError:
                pending = []
            refs = [_find_ref(one, ref, session_id, pending) for one, ref in zip(asked, refs, strict=True)]
        missing = [one for one, ref in zip(asked, refs, strict=True) if ref is None]
        if missing:
            raise BackendFailed(f"{self._upstream.name} does not wait for this any more")
        return [ref for ref in refs if ref is not None]


def _remote_session(bindings: Bindings) -> RemoteSession:
    return RemoteSession(
        session_id=bindings["session_id"] or "", agent=bindings["agent"], title=bindings["title"],
        status=bindings["status"], updated_at=bindings["updated_at"],
    )


def _known_ref(asked: RemoteAsk) -> AskRef | None:
    return decode_ref(asked.ref) if asked.ref.startswith("{") else None


def _find_ref(asked: RemoteAsk, ref: AskRef | None, session_id: str, pending: Sequence[Bindings]) -> AskRef | None:
    """The open ask that is meant: by its call, or by its kind."""
    call, kind = m.call_of(asked.ask), asked.ask.kind
    for one in pending:
        same = one["call"]["call_id"] == call.call_id if call is not None else one["kind"] == kind
        if same and one["session_id"] == session_id and (ref is None or not ref.request_id):
            known = ref or AskRef(run=one["run_id"] or "", kind=kind)
            return replace(known, request_id=one["request_id"] or "", precise=bool(one["kind"]))
    return ref
