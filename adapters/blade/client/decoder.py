"""Frames of a Blade server in, canonical events out. No clock, no socket."""

from functools import cache

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from adapters.blade.wire import FILES_CHANGED
from gateway.client import cue_handlers, decodes, read_names
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DecodedItem, ParsedFrame, RemoteTurnEnd, ScopedEvent
from gateway.ports import Decoder as DecoderPort
from mappings.language import Bindings, FrameDecoder, UnreadableBody

from .call_decoder import CallDecoder
from .loops import Loops
from .readers import BLADE, read
from .turn_decoder import PATCH_NAMES, PATCHES, TurnDecoder


class Decoder(DecoderPort):
    """Decodes the chats of one session, one after the other; a chat that was paused goes on where it was.

    Its events refer to the server's own names: calls have the server's ids, scopes the names of its loops. Feeding the
    turns that `GET …/messages` lists, each as a `turn:end`, leads to the same state as decoding the live frames did,
    and gives the events that were missed. Repeated frames lead to the same state.
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

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        try:
            cue, given = self._read(frame.name, frame.body) or ("", {})
            if cue in PATCHES:
                return [] if self._is_over else self._reopen_loops(self._turns.patch(cue, given))
            return [*HANDLERS[cue](self, given)] if cue in HANDLERS else []
        except UnreadableBody as error:
            raise BackendFailed(f"a {frame.name} of the server cannot be understood: {error}") from None

    def feed_turn(self, turn: JsonObject) -> list[DecodedItem]:
        """A turn as `GET …/messages` lists it: what of it was missed."""
        try:
            return self._turn_end(turn)
        except UnreadableBody as error:
            raise BackendFailed(f"a turn of the server cannot be understood: {error}") from None

    def end_chat(self) -> list[DecodedItem]:
        """The chat is over, though the server does not say so."""
        return self._chat_ended(None, None, None)

    def end(self) -> list[DecodedItem]:
        return self._end_messages()

    @property
    def paused(self) -> bool:
        return self._is_resting and bool(self._calls.pending)

    # -- chats ----------------------------------------------------------------------------------------------------

    @decodes("chat.started")
    def _chat_start(self) -> list[DecodedItem]:
        self._is_resting = self._is_over = False
        self.fault = None
        return []

    @decodes("turn.opened")
    def _turn_start(self, turn: JsonValue) -> list[DecodedItem]:
        """A server may leave out the start of a chat."""
        self._is_over = False
        return self._reopen_loops(self._turns.start(turn))

    @decodes("turn.closed")
    def _turn_end(self, turn: JsonValue) -> list[DecodedItem]:
        return [] if self._is_over else self._reopen_loops(self._turns.end(turn))

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

    @decodes("chat.paused")
    def _chat_paused(
        self, pause: Bindings | None, tool: str | None, result: JsonValue, stop_reason: m.StopReason | None,
    ) -> list[DecodedItem]:
        """The chat waits for the call that its end names, if no turn has it, or for those that are open."""
        if self._is_over:
            return []
        items = self._pause_data(pause, tool)
        waits = bool(self._calls.pending)
        return [*items, *self._rest()] if waits else self._finish(result, stop_reason, m.Outcome.COMPLETED)

    @decodes("chat.waiting")
    def _chat_waiting(self, pause: Bindings | None, tool: str | None) -> list[DecodedItem]:
        """The server says that it waits: without a call that asks, nobody could ever answer it."""
        if self._is_over:
            return []
        items = self._pause_data(pause, tool)
        if not self._calls.pending:
            raise BackendFailed("the server waits for an answer and has asked nothing")
        return [*items, *self._rest()]

    @decodes("chat.ended")
    def _chat_ended(
        self, outcome: m.Outcome | str | None, result: JsonValue, stop_reason: m.StopReason | None,
    ) -> list[DecodedItem]:
        """The chat is over; so is the canonical turn, unless an ask is open."""
        outcome = outcome or m.Outcome.COMPLETED
        if not isinstance(outcome, m.Outcome):
            raise BackendFailed(f"the server ended a chat with the status '{outcome[:40]}'")
        if self._is_over:
            return []
        if outcome is m.Outcome.COMPLETED and self._calls.pending:
            return self._rest()
        return self._finish(result, stop_reason, outcome)

    def _rest(self) -> list[DecodedItem]:
        self._is_resting = True
        return self._end_messages()

    def _finish(self, result: JsonValue, stop_reason: m.StopReason | None, outcome: m.Outcome) -> list[DecodedItem]:
        ended = self._ended(result, stop_reason or m.StopReason.END_TURN, outcome)
        items = self._end_messages(ended.stop_reason, outcome)
        items += self._calls.give_up()
        items += self._close_loops(ended.stop_reason)
        for part in (self._loops, self._calls, self._turns):
            part.reset()
        self._is_resting, self._is_over, self.fault = False, True, None
        return [*items, ended]

    def _pause_data(self, bindings: Bindings | None, tool: str | None) -> list[DecodedItem]:
        """The call that waits for a person, if no turn has it."""
        if self._calls.pending or bindings is None or bindings["call"]["id"] is None:
            return []
        turn_id = self._loops.by_scope[m.ROOT].turn_id or f"turn_of_{bindings['call']['id']}"
        items: list[DecodedItem] = []
        turn = self._loops.turns.get(turn_id)
        if turn is None:
            turn, items = self._turns.open(turn_id, {})
        name = (tool or "").rpartition(":")[2] or ASK_TOOL
        call = {"id": bindings["call"]["id"], "status": m.ToolStatus.AWAITING_INPUT}
        return [*items, *self._calls.decode(turn, {"call": call, "name": name, "arguments": bindings["arguments"]})]

    def _ended(self, result: JsonValue, stop: m.StopReason, outcome: m.Outcome) -> RemoteTurnEnd:
        fault = self.fault
        if outcome is m.Outcome.INTERRUPTED:
            stop, fault = m.StopReason.INTERRUPTED, None
        elif outcome is m.Outcome.FAILED:
            message = read("answer.failed", result)["message"] if result else None
            fault = fault or m.Fault(code=m.FaultCode.BACKEND, message=message or AGENT_FAILED)
            stop = m.StopReason.TIMEOUT if fault.code is m.FaultCode.TIMEOUT else (
                stop if stop is not m.StopReason.END_TURN else m.StopReason.ERROR)
        else:
            fault = None
        fields = read("answer.schema", result) if result else None
        output = fields["value"] if fields is not None and fields["schema"] is not None else None
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

    @decodes("fault.fatal")
    def _failed(self, fault: Bindings) -> list[DecodedItem]:
        code, message = fault["code"] or m.FaultCode.BACKEND, fault["message"] or AGENT_FAILED
        self.fault = m.Fault(code=code, message=message, retryable=code.is_retryable, details=fault["details"])
        return []

    @decodes("fault.passing")
    def _fault_raised(self, fault: Bindings) -> list[DecodedItem]:
        code, message = fault["code"] or m.FaultCode.BACKEND, fault["message"] or ""
        return [m.FaultRaised(fault=m.Fault(code=code, message=message, details=fault["details"]))]

    @decodes("notice")
    def _notice(
        self, topic: str | None, title: str | None, detail: JsonValue, level: m.NoticeLevel | None,
    ) -> list[DecodedItem]:
        level = level or m.NoticeLevel.INFO
        return [m.NoticePosted(topic=topic or "notice", title=title or "", detail=detail, level=level)]

    @decodes("session.changed")
    def _updated(self, intent: str | None) -> list[DecodedItem]:
        return [m.SessionUpdated(title=intent)] if intent is not None else []

    @decodes("files.changed")
    def _files(self, file_path: JsonValue) -> list[DecodedItem]:
        return [m.CustomEvent(topic=FILES_CHANGED, payload={"file_path": file_path})]


AGENT_FAILED = "The server's agent failed."


HANDLERS = cue_handlers(Decoder)


@cache
def frame_decoder() -> FrameDecoder:
    """The frames of Blade as the table reads them."""
    patched = {cue: (*names, *PATCH_NAMES) for cue, names in read_names(PATCHES).items()}
    return BLADE.frames({**read_names(HANDLERS), **patched})
