"""Frames of a Blade server in, canonical events out. No clock, no socket."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from adapters.blade.wire import FILES_CHANGED
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd, ScopedEvent

from .call_decoder import CallDecoder
from .loops import Loops
from .readers import meanings, optional_text, require_object, text
from .turn_decoder import TurnDecoder

FAULT_NOTICE = "fault"
"""The type of a notification about a fault that ends nothing."""


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
        self._steps: dict[str, Callable[[dict[str, Any]], list[DecodedItem]]] = {
            "chat:start": self._chat_start,
            "chat:end": self._chat_end,
            "turn:start": self._turn_start,
            "turn:patch": self._turn_patch,
            "turn:end": self._turn_end,
            "system:error": self._error,
            "system:notification": self._notice,
            "session:updated": self._updated,
            "workspace:files_changed": self._files,
        }

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        step = self._steps.get(frame.name)
        return step(require_object(frame.body, f"a {frame.name}")) if step is not None else []

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

    def _chat_start(self, body: dict[str, Any]) -> list[DecodedItem]:
        self._is_resting = self._is_over = False
        self.fault = None
        return []

    def _turn_start(self, body: dict[str, Any]) -> list[DecodedItem]:
        """A server may leave out the start of a chat."""
        self._is_over = False
        return self._reopen_loops(self._turns.start(body))

    def _turn_patch(self, body: dict[str, Any]) -> list[DecodedItem]:
        return [] if self._is_over else self._reopen_loops(self._turns.patch(body))

    def _turn_end(self, body: dict[str, Any]) -> list[DecodedItem]:
        return [] if self._is_over else self._reopen_loops(self._turns.end(body))

    def _reopen_loops(self, decoded: list[DecodedItem]) -> list[DecodedItem]:
        """Open a sub-agent that has ended once more, if a turn of it goes on."""
        self._is_resting = self._is_resting and not decoded
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

    def _chat_end(self, body: dict[str, Any]) -> list[DecodedItem]:
        """The chat is over; so is the canonical turn, unless an ask is open."""
        status, known = optional_text(body.get("status")), meanings()
        outcome = m.Outcome.COMPLETED if status in (None, known.paused) else known.outcome.get(status or "")
        if outcome is None:
            raise BackendFailed(f"the server ended a chat with the status '{str(status)[:40]}'")
        if self._is_over:
            return []
        items = self._pause_data(body) if outcome is m.Outcome.COMPLETED else []
        if outcome is m.Outcome.COMPLETED and self._calls.pending:
            self._is_resting = True
            return [*items, *self._end_messages()]
        if status == known.paused:
            raise BackendFailed("the server waits for an answer and has asked nothing")
        ended = self._ended(body, outcome)
        items += self._end_messages(ended.stop_reason, outcome)
        items += self._calls.give_up()
        items += self._close_loops(ended.stop_reason)
        for part in (self._loops, self._calls, self._turns):
            part.reset()
        self._is_resting, self._is_over, self.fault = False, True, None
        return [*items, ended]

    def _pause_data(self, body: dict[str, Any]) -> list[DecodedItem]:
        """The call that waits for a person, if no turn has it."""
        data = body.get("pause_tool_data")
        if self._calls.pending or not isinstance(data, dict) or not optional_text(data.get("tool_call_id")):
            return []
        name = text(body.get("pause_tool")).rpartition(":")[2]
        turn_id = self._loops.by_scope[m.ROOT].turn_id or f"turn_of_{data['tool_call_id']}"
        items: list[DecodedItem] = []
        turn = self._loops.turns.get(turn_id)
        if turn is None:
            turn, items = self._turns.open(turn_id, {})
        call = {"id": data["tool_call_id"], "tool_name": name or ASK_TOOL, "arguments": data.get("arguments"),
                "status": "awaiting_answer"}
        return [*items, *self._calls.decode(turn, call)]

    def _ended(self, body: dict[str, Any], outcome: m.Outcome) -> RemoteTurnEnd:
        result = body.get("result")
        stop = meanings().stop_reason.get(text(body.get("finish_reason")), m.StopReason.END_TURN)
        fault = self.fault
        if outcome is m.Outcome.INTERRUPTED:
            stop, fault = m.StopReason.INTERRUPTED, None
        elif outcome is m.Outcome.FAILED:
            message = optional_text(result.get("err_msg")) if isinstance(result, dict) else None
            fault = fault or m.Fault(code=m.FaultCode.BACKEND, message=message or "The server's agent failed.")
            stop = m.StopReason.TIMEOUT if fault.code is m.FaultCode.TIMEOUT else (
                stop if stop is not m.StopReason.END_TURN else m.StopReason.ERROR)
        else:
            fault = None
        output = result.get("output") if isinstance(result, dict) and "schema" in result else None
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

    def _error(self, body: dict[str, Any]) -> list[DecodedItem]:
        code = meanings().fault.get(str(body.get("code")), m.FaultCode.BACKEND)
        details = body.get("detail")
        self.fault = m.Fault(
            code=code, message=optional_text(body.get("message")) or "The server's agent failed.",
            retryable=code.is_retryable, details=details if isinstance(details, dict) else None,
        )
        return []

    def _notice(self, body: dict[str, Any]) -> list[DecodedItem]:
        topic, title, detail = text(body.get("notification_type")), text(body.get("title")), body.get("detail")
        level = meanings().level.get(text(body.get("status")), m.NoticeLevel.INFO)
        if topic == FAULT_NOTICE and level is m.NoticeLevel.ERROR:
            details = detail if isinstance(detail, dict) else None
            code = meanings().fault.get(str(body.get("code")), m.FaultCode.BACKEND)
            return [m.FaultRaised(fault=m.Fault(code=code, message=title, details=details))]
        return [m.NoticePosted(topic=topic or "notice", title=title, level=level, detail=detail)]

    def _updated(self, body: dict[str, Any]) -> list[DecodedItem]:
        intent = body.get("intent")
        return [m.SessionUpdated(title=intent)] if isinstance(intent, str) else []

    def _files(self, body: dict[str, Any]) -> list[DecodedItem]:
        return [m.CustomEvent(topic=FILES_CHANGED, payload={"file_path": body.get("file_path")})]
