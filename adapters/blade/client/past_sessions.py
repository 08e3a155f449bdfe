"""Reads the sessions that a Blade server has: its list, and the turns of each."""

from collections.abc import Sequence

from msgspec.structs import replace

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from gateway.client import PAGE, PastTurns, members, require_objects, upstream_status
from gateway.errors import BackendFailed, GatewayError, NotFound
from gateway.ids import Mint, make_mint
from gateway.json_values import JsonObject
from gateway.ports import (
    DialectTable,
    ParsedFrame,
    PastItem,
    PastSession,
    RecordedCommands,
    RemoteAddress,
    RemoteSession,
    RemoteTurnEnd,
)
from mappings.language import UnreadableBody

from .decoder import Decoder
from .readers import BLADE, COMPACTION, frame_name, outcomes, read, turn_reader
from .remote import connect_api

UNKNOWN = 404
QUESTIONS = "questions as such: a question is a call, and its answer the result of the call"
PLACES = "the places of results among the blocks of a message: each stands after its call"
LOOPS = "the names of loops of sub-agents"
OPEN_TURN = "the turn that is open: it ends here as interrupted"
AGENT_FAILED = "The server's agent failed."
STOP_REASONS = {m.Outcome.FAILED: m.StopReason.ERROR, m.Outcome.INTERRUPTED: m.StopReason.INTERRUPTED}


class PastSessions:
    """See `gateway.ports.PastSessions`. A key sees its own sessions; Blade has no other users."""

    def __init__(
        self, address: RemoteAddress, user: str = "", mint: Mint | None = None, *, recorded: RecordedCommands,
    ) -> None:
        self._api = connect_api(address)
        self._mint, self._recorded = mint or make_mint(), recorded

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        offset = int(name or 0)
        response = await self._api.json("GET", "/sessions", query={"limit": str(PAGE), "offset": str(offset)})
        listed = read("sessions", response)["items"] if isinstance(response, dict) else response
        rows = require_objects(listed, "sessions")
        return [*map(_session, rows)], str(offset + len(rows)) if len(rows) == PAGE else None

    async def read(self, session_id: str) -> PastSession:
        place = f"/sessions/{session_id}"
        try:
            session = _session(members(await self._api.json("GET", place)))
            listed = require_objects(await self._api.json("GET", f"{place}/messages"), "turns")
        except GatewayError as error:
            if upstream_status(error) == UNKNOWN:
                raise NotFound(error.message) from None
            raise
        history = ListedTurnReader(self._mint, self._recorded, BLADE.table)
        for turn in listed:
            history.take(turn)
        history.end_chat()
        return PastSession(
            session=replace(session, session_id=session_id), turns=history.turns.end(), unseen=history.unseen,
            is_running=history.is_open,
        )

    async def close(self) -> None:
        await self._api.close()


class ListedTurnReader:
    """Makes turns of ours of Blade's: the turn of a person begins one, those of agents are its messages."""

    def __init__(self, mint: Mint, recorded: RecordedCommands, table: DialectTable) -> None:
        self.turns = PastTurns()
        self.unseen: list[str] = []
        self.is_open = False
        """Whether the last chat has not ended."""
        self._mint, self._recorded, self._table = mint, recorded, table
        self._message_id: str | None = None
        self._decoder = Decoder(self._named)
        self._last: JsonObject | None = None
        """The last turn of an agent in this chat."""
        self._at: float | None = None

    def take(self, turn: JsonObject) -> None:
        try:
            row, fields = turn_reader().decode(turn)
        except UnreadableBody as error:
            raise BackendFailed(f"a turn of the server cannot be understood: {error}") from None
        self._at = self._at if fields.get("started_at") is None else fields["started_at"]
        self._message_id = own_message_id(fields["turn_id"] or "")
        if row != COMPACTION and fields["role"] is m.Role.USER:
            self._take_message(turn)
            return
        calls = fields.get("tool_calls") or ()
        self._note(QUESTIONS, any(call["name"] == ASK_TOOL for call in calls))
        self._note(PLACES, len(calls) > 1)
        self._note(LOOPS, fields.get("fork") is not None)
        self._last = turn if row != COMPACTION and fields["fork"] is None else self._last
        self.turns.add(PastItem(item, self._at) for item in self._decoder.feed_turn(turn))

    def _take_message(self, turn: JsonObject) -> None:
        """A message begins a chat; the answer to a question goes on with the chat, whose call has it as its result."""
        for command in self._recorded(ParsedFrame(frame_name("turn.opened"), turn), NO_ASKS, self._table):
            self.end_chat()
            if isinstance(command, m.SendMessage):
                command = replace(command, message_id=self._message_id)
            self.turns.add([PastItem(command, self._at)])

    def _note(self, loss: str, is_met: bool) -> None:
        if is_met and loss not in self.unseen:
            self.unseen.append(loss)

    def end_chat(self) -> None:
        """The chat is over, as the last turn of its agent says."""
        items = self._decoder.end_chat() if self._last is not None else []
        self.is_open = self._last is not None and not any(isinstance(item, RemoteTurnEnd) for item in items)
        self._note(OPEN_TURN, self.is_open)
        ended = self._ending()
        self.turns.add(PastItem(ended if isinstance(item, RemoteTurnEnd) else item, self._at) for item in items)
        self.turns.begin()
        self._decoder, self._last = Decoder(self._named), None

    def _ending(self) -> RemoteTurnEnd:
        status = turn_reader().read(self._last)["status"] if self._last is not None else ""
        outcome = outcomes().get(status or "", m.Outcome.COMPLETED)
        failure = read("turn.listed", self._last)["failure"] if outcome is m.Outcome.FAILED else None
        fault = m.Fault(code=m.FaultCode.BACKEND, message=failure if isinstance(failure, str) else AGENT_FAILED)
        return RemoteTurnEnd(
            outcome=outcome, stop_reason=STOP_REASONS.get(outcome, m.StopReason.END_TURN),
            fault=fault if outcome is m.Outcome.FAILED else None,
        )

    def _named(self, prefix: str) -> str:
        """The message of a turn keeps the turn's name."""
        given, self._message_id = (self._message_id, None) if prefix == "msg" else (None, self._message_id)
        return given or self._mint(prefix)


NO_ASKS = m.SessionView(session_id="")
TURN_PREFIX, MESSAGE_PREFIX = "turn_", "msg_"


def own_message_id(turn_id: str) -> str | None:
    """The id of a message that is shown as this turn."""
    return turn_id.replace(TURN_PREFIX, MESSAGE_PREFIX, 1) if turn_id.startswith(TURN_PREFIX) else turn_id or None


def _session(body: JsonObject) -> RemoteSession:
    fields = read("session", body)
    session_id = fields["id"] or read("session.created", body)["session_id"] or ""
    return RemoteSession(
        session_id=session_id, title=fields["intent"], status=fields["status"], updated_at=fields["updated_at"],
        created_at=fields["created_at"],
    )
