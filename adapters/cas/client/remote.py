"""Speaks CAS as a client, so that a CAS server can be an agent."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import quote

import gateway.model as m
from adapters.cas.bodies import NewEventsBody, NewSessionBody, SentEventsBody, SessionBody
from gateway.client import GeneratorTurn, HttpClient, ItemGenerator, SessionMemory, read_pages, retry, upstream_status
from gateway.errors import BackendFailed, Unsupported
from gateway.ids import make_mint, random_id
from gateway.json_values import JsonValue
from gateway.ports import (
    NewRemoteSession,
    ParsedFrame,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurn,
    RemoteTurnEnd,
    SessionPlaces,
)

from .decoder import listed_event
from .provisioning import AgentProvisioner, SyncedSettings, read_agent
from .readers import CAS, ReceivedEvent, read_page, require_id
from .requests import EventBody, answer_event, interrupt_event, message_event
from .turn_stream import TurnStream

OPENING_CUE = "input.accepted.send_message"
"""The event that begins a turn."""
MAX_TURN_PAGES = 10_000
"""So many pages of events are looked through for the beginning of a turn."""
GONE_STATUSES = (400, 404, 409)
"""How a server refuses an agent or an environment that is no more."""


class Remote:
    """A CAS server.

    A session is made with an agent and an environment, which are made once and used again unless the address names an
    agent. Later changes of the tools, the client's tools and the MCP servers are sent before the next message; a
    session keeps its model and its system prompt, and a server may refuse all changes. CAS has no options, no secrets
    and no history that was made elsewhere. Every request that creates something carries an `Idempotency-Key`, and is
    sent again with it if the connection breaks. Broken streams are resumed after the last complete event
    (`Last-Event-ID`); a turn that waits for people is found again after a restart of ours, from the list of its events.
    """

    supports_permissions = True

    def __init__(self, address: RemoteAddress) -> None:
        self._upstream = HttpClient.at(address)
        self._provisioner = AgentProvisioner(self._upstream, self._post, address.agent)
        self._turns = SessionMemory[TurnStream]()
        """The turns that run or wait; one that was forgotten is read again from the server."""
        self._settings = SyncedSettings(self._post, self._provisioner.own_tools)
        self._mint = make_mint()

    async def places(self) -> SessionPlaces:
        return SessionPlaces(client_tools=True, mcp_servers=True)

    async def about(self) -> m.AgentCard:
        return await self._provisioner.card()

    async def open(self, opening: NewRemoteSession) -> str:
        try:
            return await self._open(opening)
        except BackendFailed as error:
            if upstream_status(error) not in GONE_STATUSES or not self._provisioner.forget():
                raise
        return await self._open(opening)

    async def _open(self, opening: NewRemoteSession) -> str:
        new = NewSessionBody(
            agent=await self._provisioner.agent(opening.settings), environment_id=await self._provisioner.environment(),
            title=opening.title or None,
        )
        session_id = _read_session(await self._post("/sessions", CAS.spell(new))).session_id
        self._settings.note(session_id, opening.settings)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        return [_read_session(one) for one in await self._provisioner.listed("/sessions", order="desc", most=most)]

    async def join(self, session_id: str) -> RemoteSession:
        return _read_session(await self._upstream.json("GET", f"/sessions/{quote(session_id, safe='')}"))

    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._new_turn, session_id, command, settings)))

    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._answered_turn, session_id, answers)))

    async def interrupt(self, session_id: str) -> None:
        await self._send(session_id, [interrupt_event()])

    async def close(self) -> None:
        await self._upstream.close()

    # -- turns ----------------------------------------------------------------------------------------------------

    async def _new_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None,
    ) -> TurnStream:
        if isinstance(command, m.Compact):
            raise Unsupported("the upstream compacts by itself, and not on request")
        if settings is not None:
            await self._settings.send_changes(session_id, settings)
        accepted = (await self._send(session_id, [message_event(command)]))[-1]
        cursor = require_id(accepted.id, "the event that was sent")
        turn = TurnStream(self._upstream, session_id, accepted.turn_id, cursor, self._mint)
        self._turns.put(session_id, turn)
        return turn

    async def _answered_turn(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> TurnStream:
        turn = self._turns.get(session_id) or await self._recalled(session_id)
        await self._send(session_id, [answer_event(asked, given) for asked, given in answers])
        turn.decoder.answered()
        return turn

    async def _items(self, session_id: str, begin: Callable[[], Awaitable[TurnStream]]) -> ItemGenerator:
        turn = await begin()
        async with aclosing(turn.items()) as items:
            async for one in items:
                if isinstance(one, RemoteTurnEnd) and self._turns.get(session_id) is turn:
                    self._turns.pop(session_id)
                yield one

    async def _recalled(self, session_id: str) -> TurnStream:
        """The last turn of a session, decoded again from the list of its events."""
        events = await read_pages(
            partial(read_page, self._upstream, f"/sessions/{session_id}/events", order="desc"),
            is_last=lambda event: listed_event(event).cue == OPENING_CUE, max_pages=MAX_TURN_PAGES,
        )
        if not events:
            raise BackendFailed(f"{self._upstream.name} knows of no turn in session '{session_id}'")
        turn = TurnStream(self._upstream, session_id, listed_event(events[0]).turn_id, "", self._mint)
        for event in reversed(events):
            await turn.take(ParsedFrame("", event))  # its items were given before
        self._turns.put(session_id, turn)
        return turn

    # -- sending --------------------------------------------------------------------------------------------------

    async def _send(self, session_id: str, events: list[EventBody]) -> list[ReceivedEvent]:
        """The events as the server has taken them."""
        response = await self._post(f"/sessions/{session_id}/events", CAS.spell(NewEventsBody(events=events)))
        accepted = CAS.read(SentEventsBody.row, response, "events")["events"]
        if not accepted or not all(isinstance(one, dict) for one in accepted):
            raise BackendFailed(f"{self._upstream.name} does not say which events it has accepted")
        return [*map(listed_event, accepted)]

    async def _post(self, path: str, body: JsonValue) -> Any:
        """Send the request, with retries under one idempotency key, so that it is executed once."""
        headers = {"Idempotency-Key": random_id("key")}
        return await retry(
            lambda: self._upstream.json("POST", path, body, headers=headers), self._upstream.timeouts.attempts
        )


def _read_session(body: JsonValue) -> RemoteSession:
    fields = CAS.read(SessionBody.row, body, "a session")
    agent = fields["agent_id"] if fields["agent"] is None else read_agent(fields["agent"]).name
    return RemoteSession(
        session_id=require_id(fields["session_id"], "a session"), agent=agent, title=fields["title"],
        status=fields["status"], updated_at=fields["updated_at"],
    )
