"""Reads the sessions that a CAS server has: its list, and the events of each."""

from collections.abc import Sequence
from functools import cache

import gateway.model as m
from adapters.cas.bodies import SessionBody
from gateway.client import HttpClient, PastTurns, upstream_status
from gateway.errors import GatewayError, NotFound
from gateway.ids import Mint, make_mint
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import (
    DialectTable,
    ParsedFrame,
    PastItem,
    PastSession,
    RecordedCommands,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurnEnd,
    ScopedEvent,
)
from mappings.language import FrameDecoder

from .decoder import Decoder
from .provisioning import read_agent
from .readers import CAS, read_page, require_id

UNKNOWN = 404
EVENT_IDS = "ids of events: ours are numbered by their places in the log"
SUBAGENTS = "words and usage of sub-agents: they are in threads of their own"
OPEN_TURN = "the turn that is open: it ends here as interrupted"


class PastSessions:
    """See `gateway.ports.PastSessions`. A key sees its own sessions; CAS has no other users."""

    def __init__(
        self, address: RemoteAddress, user: str = "", mint: Mint | None = None, *, recorded: RecordedCommands,
    ) -> None:
        self._upstream = HttpClient.at(address)
        self._mint, self._recorded = mint or make_mint(), recorded

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        items, following = await read_page(self._upstream, "/sessions", name, order="desc")
        return [_session(one) for one in items], following

    async def read(self, session_id: str) -> PastSession:
        place = f"/sessions/{session_id}"
        try:
            session = await self._upstream.json("GET", place)
        except GatewayError as error:
            if upstream_status(error) == UNKNOWN:
                raise NotFound(error.message) from None
            raise
        history, page = EventReader(Decoder(self._mint), self._recorded, CAS.table), None
        while True:
            events, page = await read_page(self._upstream, f"{place}/events", page)
            for event in events:
                history.take(event)
            if page is None or not events:
                break
        return PastSession(
            session=_session(session), turns=history.turns.end(), unseen=history.unseen, is_running=history.is_open,
            metadata=CAS.read(SessionBody.row, session, "a session")["metadata"] or {},
        )

    async def close(self) -> None:
        await self._upstream.close()


class EventReader:
    """Makes turns of events: those that clients have sent are commands, the others are decoded."""

    def __init__(self, decoder: Decoder, recorded: RecordedCommands, table: DialectTable) -> None:
        self.turns = PastTurns()
        self._decoder, self._recorded, self._table = decoder, recorded, table
        self._asked = m.SessionView(session_id="")
        """The open asks, as commands refer to them."""
        self.is_open = self._has_scopes = False

    @property
    def unseen(self) -> Sequence[str]:
        return (EVENT_IDS, *([SUBAGENTS] if self._has_scopes else []), *([OPEN_TURN] if self.is_open else []))

    def take(self, event: JsonObject) -> None:
        frame = ParsedFrame("", event)
        _, place = place_reader().read("", event) or ("", {"turn_id": None, "at": None})
        self.turns.name(place["turn_id"] or None)
        commands = self._recorded(frame, self._asked, self._table)
        if commands and any(self._asked.asks):
            self._decoder.answered()
        for command in commands:
            self.is_open = True
            self._asked.asks.pop(getattr(command, "request_id", ""), None)
        items = self._decoder.feed(frame)
        for item in items:
            if isinstance(item, RemoteAsk):
                self._asked.asks[item.ref] = m.OpenAsk(
                    request_id=item.ref, ask=item.ask, seq=0, at=0.0, turn_id="", scope_id=item.scope_id,
                    call_id=item.ref,
                )
            elif isinstance(item, RemoteTurnEnd):
                self.is_open = False
                self._asked.asks.clear()
            self._has_scopes = self._has_scopes or isinstance(item, ScopedEvent)
        self.turns.add(PastItem(item, place["at"]) for item in (*commands, *items))


@cache
def place_reader() -> FrameDecoder:
    """Reads of an event to which turn it belongs, and its time."""
    return CAS.frames({}, ("turn_id", "at"))


def _session(body: JsonValue) -> RemoteSession:
    fields = CAS.read(SessionBody.row, body, "a session")
    agent = fields["agent_id"] if fields["agent"] is None else read_agent(fields["agent"]).name
    return RemoteSession(
        session_id=require_id(fields["session_id"], "a session"), agent=agent, title=fields["title"],
        status=fields["status"], updated_at=fields["updated_at"], created_at=fields["created_at"],
    )
