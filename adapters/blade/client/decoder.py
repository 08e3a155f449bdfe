"""Frames of a Blade server in, canonical events out. No clock, no socket."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from adapters.blade.wire import FILES_CHANGED
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd, ScopedEvent
from mappings.language import FrameDecoder, UnreadableBody

from .call_decoder import CallDecoder
from .loops import Loops
from .readers import Bindings, builtin_blade_table, rows
from .turn_decoder import PATCHES, TurnDecoder


class Decoder:
    """Decodes the chats of one session, one after the other; a chat that was paused goes on where it was.

    Its events refer to the server's own names: calls have the server's ids, scopes the names of its loops. Feeding the
    turns that `GET …/messages` lists, each as a `turn:end`, leads to the same state as decoding the live frames did,
    and gives the events that were missed.
    """

    def __init__(self, mint: Mint) -> None:
        self._loops = Loops(mint)
        self._calls = CallDecoder(self._loops, mint)
        self._turns = TurnDecoder(self._loops, self._calls)
        self.fault: m.Fault | None = None
        """The error that the server has reported; the end of the chat should follow."""
        self._is_resting = False
        self._is_over = False
        self._read = frame_decoder().read
        self._steps: dict[str, Callable[[Bindings], list[DecodedItem]]] = {
            "chat.started": self._chat_start,
            "chat.paused": self._chat_paused,
            "chat.waiting": self._chat_waiting,
            "chat.ended": self._chat_ended,
            "turn.opened": self._turn_start,
            "turn.closed": self._turn_end,
            **{cue: partial(self._patched, cue) for cue in PATCHES},
            "fault.fatal": self._failed,
            "fault.passing": self._fault_told,
            "notice": self._notice,
            "session.changed": self._updated,
            "files.changed": self._files,
        }

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        try:
            found = self._read(frame.name, frame.body)
            step = self._steps.get(found[0]) if found is not None else None
            return step(found[1]) if found is not None and step is not None else []
        except UnreadableBody as error:
            raise BackendFailed(f"a {frame.name} of the server cannot be understood: {error}") from None

    def feed_turn(self, turn: dict[str, Any]) -> list[DecodedItem]:
        """A turn as `GET …/messages` lists it: what of it was missed."""
        try:
            return self._turn_end({"turn": turn})
        except UnreadableBody as error:
            raise BackendFailed(f"a turn of the server cannot be understood: {error}") from None

    def end_chat(self) -> list[DecodedItem]:
        """The chat is over, though the server does not say so."""
        return self._chat_ended({"outcome": None, "result": None, "stop_reason": None})

    def end(self) -> list[DecodedItem]:
        return self._end_messages()

    @property
    def paused(self) -> bool:
        return self._is_resting and bool(self._calls.pending)

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The frames of the server show what becomes of an answer."""

    def configure(self, settings: m.Settings) -> None:
        """The frames of the server contain what is needed of the settings."""

    def on_reconnect(self) -> None:
        """Repeated frames lead to the same state."""

    # -- chats ----------------------------------------------------------------------------------------------------

    def _chat_start(self, given: Bindings) -> list[DecodedItem]:
        self._is_resting = self._is_over = False
        self.fault = None
        return []

    def _turn_start(self, given: Bindings) -> list[DecodedItem]:
        """A server may leave out the start of a chat."""
        self._is_over = False
        return self._reopen_loops(self._turns.start(given))

    def _patched(self, cue: str, given: Bindings) -> list[DecodedItem]:
        return [] if self._is_over else self._reopen_loops(self._turns.patch(cue, given))

    def _turn_end(self, given: Bindings) -> list[DecodedItem]:
        return [] if self._is_over else self._reopen_loops(self._turns.end(given))

    def _reopen_loops(self, decoded: list[DecodedItem]) -> list[DecodedItem]:
        """Open a sub-agent that has ended once more, if a turn of it goes on."""
        self._is_resting = self._is_resting and not decoded
        if len(decoded) == 1 and type(decoded[0]) is m.BlockDelta:
            return decoded
        items: list[DecodedItem] = []
        opened: set[str] = set()
        for each in decoded:
            if isinstance(each, ScopedEvent):
                if isinstance(each.event, m.MessageStarted) and each.scope_id not in opened:
                    items += self._loops.open(self._loops.by_scope[each.scope_id])
                if isinstance(each.event, m.ScopeOpened):
                    opened.add(each.scope_id)
            items.append(each)
        return items

    def _chat_paused(self, given: Bindings) -> list[DecodedItem]:
        """The chat waits for the call that its end names, if no turn has it, or for those that are open."""
        if self._is_over:
            return []
        items = self._pause_data(given)
        return [*items, *self._rest()] if self._calls.pending else self._finish(given, m.Outcome.COMPLETED)

    def _chat_waiting(self, given: Bindings) -> list[DecodedItem]:
        """The server says that it waits: without a call that asks, nobody could ever answer it."""
        if self._is_over:
            return []
        items = self._pause_data(given)
        if not self._calls.pending:
            raise BackendFailed("the server waits for an answer and has asked nothing")
        return [*items, *self._rest()]

    def _chat_ended(self, given: Bindings) -> list[DecodedItem]:
        """The chat is over; so is the canonical turn, unless an ask is open."""
        outcome = given["outcome"] or m.Outcome.COMPLETED
        if not isinstance(outcome, m.Outcome):
            raise BackendFailed(f"the server ended a chat with the status '{outcome[:40]}'")
        if self._is_over:
            return []
        if outcome is m.Outcome.COMPLETED and self._calls.pending:
            return self._rest()
        return self._finish(given, outcome)

    def _rest(self) -> list[DecodedItem]:
        self._is_resting = True
        return self._end_messages()

    def _finish(self, given: Bindings, outcome: m.Outcome) -> list[DecodedItem]:
        ended = self._ended(given, outcome)
        items = self._end_messages(ended.stop_reason, outcome)
        items += self._calls.give_up()
        items += self._close_loops(ended.stop_reason)
        for part in (self._loops, self._calls, self._turns):
            part.reset()
        self._is_resting, self._is_over, self.fault = False, True, None
        return [*items, ended]

    def _pause_data(self, given: Bindings) -> list[DecodedItem]:
        """The call that waits for a person, if no turn has it."""
        told = given["pause"]
        if self._calls.pending or told is None or told["call"]["id"] is None:
            return []
        turn_id = self._loops.by_scope[m.ROOT].turn_id or f"turn_of_{told['call']['id']}"
        items: list[DecodedItem] = []
        turn = self._loops.turns.get(turn_id)
        if turn is None:
            turn, items = self._turns.open(turn_id, {})
        name = (given["tool"] or "").rpartition(":")[2] or ASK_TOOL
        call = {"id": told["call"]["id"], "status": m.ToolStatus.AWAITING_INPUT}
        return [*items, *self._calls.decode(turn, {"call": call, "name": name, "arguments": told["arguments"]})]

    def _ended(self, given: Bindings, outcome: m.Outcome) -> RemoteTurnEnd:
        result, stop = given["result"], given["stop_reason"]
        stop = stop if isinstance(stop, m.StopReason) else m.StopReason.END_TURN
        fault = self.fault
        if outcome is m.Outcome.INTERRUPTED:
            stop, fault = m.StopReason.INTERRUPTED, None
        elif outcome is m.Outcome.FAILED:
            message = rows().failure.read(result)["message"] if result else None
            fault = fault or m.Fault(code=m.FaultCode.BACKEND, message=message or AGENT_FAILED)
            stop = m.StopReason.TIMEOUT if fault.code is m.FaultCode.TIMEOUT else (
                stop if stop is not m.StopReason.END_TURN else m.StopReason.ERROR)
        else:
            fault = None
        told = rows().value.read(result) if result else None
        output = told["value"] if told is not None and told["schema"] is not None else None
        return RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=fault, result=output)

    def _end_messages(
        self, stop_reason: m.StopReason = m.StopReason.END_TURN, outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> list[DecodedItem]:
        """End all open messages, those of sub-agents first."""
        return [event for loop in reversed(self._loops.by_scope.values())
                for event in self._loops.end_message(loop, stop_reason, outcome=outcome)]

    def _close_loops(self, stop_reason: m.StopReason) -> list[DecodedItem]:
        return [event for loop in reversed(self._loops.by_scope.values()) if loop.is_open and loop.scope_id != m.ROOT
                for event in self._loops.close(loop, stop_reason)]

    # -- the rest -------------------------------------------------------------------------------------------------

    def _failed(self, given: Bindings) -> list[DecodedItem]:
        told = given["fault"]
        code = _known_code(told["code"])
        self.fault = m.Fault(
            code=code, message=told["message"] or AGENT_FAILED, retryable=code.is_retryable, details=told["details"],
        )
        return []

    def _fault_told(self, given: Bindings) -> list[DecodedItem]:
        told = given["fault"]
        return [m.FaultRaised(fault=m.Fault(
            code=_known_code(told["code"]), message=told["message"] or "", details=told["details"],
        ))]

    def _notice(self, given: Bindings) -> list[DecodedItem]:
        level = given["level"]
        return [m.NoticePosted(
            topic=given["topic"] or "notice", title=given["title"] or "", detail=given["detail"],
            level=level if isinstance(level, m.NoticeLevel) else m.NoticeLevel.INFO,
        )]

    def _updated(self, given: Bindings) -> list[DecodedItem]:
        return [m.SessionUpdated(title=given["intent"])] if given["intent"] is not None else []

    def _files(self, given: Bindings) -> list[DecodedItem]:
        return [m.CustomEvent(topic=FILES_CHANGED, payload={"file_path": given["file_path"]})]


AGENT_FAILED = "The server's agent failed."


def _known_code(code: m.FaultCode | str | None) -> m.FaultCode:
    return code if isinstance(code, m.FaultCode) else m.FaultCode.BACKEND


TOLD_OF_A_TURN = ("turn_id", "loop_id", "turn")
TOLD_OF_A_CALL = ("call", "name", "title", "arguments", "result", "reference", *TOLD_OF_A_TURN)
WANTED = {
    "chat.paused": ("pause", "tool", "result", "stop_reason"),
    "chat.waiting": ("pause", "tool"),
    "chat.ended": ("outcome", "result", "stop_reason"),
    "turn.opened": ("turn",),
    "turn.closed": ("turn",),
    "patch.text": ("content", "delta", "index", *TOLD_OF_A_TURN),
    "patch.thinking": ("content", "delta", "index", *TOLD_OF_A_TURN),
    "patch.block": ("type", "content", "call", *TOLD_OF_A_TURN),
    "patch.call": TOLD_OF_A_CALL,
    "patch.result": TOLD_OF_A_CALL,
    "patch.call_status": TOLD_OF_A_CALL,
    "patch.status": TOLD_OF_A_TURN,
    "patch.other": TOLD_OF_A_TURN,
    "fault.fatal": ("fault",),
    "fault.passing": ("fault",),
    "notice": ("topic", "title", "detail", "level"),
    "session.changed": ("intent",),
    "files.changed": ("file_path",),
}
"""What is read of each cue."""


@cache
def frame_decoder() -> FrameDecoder:
    """The frames of Blade as the table reads them."""
    return builtin_blade_table().decoder("socketio", wanted=WANTED)
