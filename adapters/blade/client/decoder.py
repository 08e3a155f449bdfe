"""Blade heard: what a server of it says in, words of the house out; no clock, no wire."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.blade.wire import FILES_CHANGED
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteTurnEnd, ScopedEvent
from gateway.ports import Decoder as DecoderPort

from .readers import meanings, optional_text, require_object, text
from .turn_decoder import TurnDecoder

FAULT_NOTICE = "fault"
"""The type of a notification that tells of a fault which ends nothing."""


class Decoder(TurnDecoder, DecoderPort):
    """One session's chats, one after the other; a chat that pauses goes on where it was.

    What is kept of a server is what the house can refer to: ids of calls are the server's, scopes go by the names of
    its loops. Feeding the turns that `GET …/messages` lists, each as a `turn:end`, leads to the same state as having
    heard them live, and says what was missed.
    """

    def __init__(self, mint: Mint) -> None:
        self.fault: m.Fault | None = None
        """What the server said went wrong; the end of the chat should follow."""
        self._resting = False
        self._is_over = False
        super().__init__(mint)

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        step = _STEPS.get(frame.name)
        return step(self, require_object(frame.body, f"a {frame.name}")) if step is not None else []

    def end(self) -> list[DecodedItem]:
        return self._rest()

    @property
    def paused(self) -> bool:
        return self._resting and bool(self._pending)

    # -- chats ----------------------------------------------------------------------------------------------------

    def _chat_start(self, body: dict[str, Any]) -> list[DecodedItem]:
        self._resting = self._is_over = False
        self.fault = None
        return []

    def _turn_start(self, body: dict[str, Any]) -> list[DecodedItem]:
        """A server may forget to say that a chat starts."""
        self._is_over = False
        return self._spoken(self._start(body))

    def _turn_patch(self, body: dict[str, Any]) -> list[DecodedItem]:
        return [] if self._is_over else self._spoken(self._patch(body))

    def _turn_end(self, body: dict[str, Any]) -> list[DecodedItem]:
        return [] if self._is_over else self._spoken(self._end(body))

    def _spoken(self, heard: list[DecodedItem]) -> list[DecodedItem]:
        """What was heard of a turn; a sub-agent that has ended is opened again if its turn goes on."""
        self._resting = self._resting and not heard
        said: list[DecodedItem] = []
        opened: set[str] = set()
        for each in heard:
            if isinstance(each, ScopedEvent):
                if isinstance(each.event, m.MessageStarted) and each.scope_id not in opened:
                    said += self._open(self._voices[each.scope_id])
                if isinstance(each.event, m.ScopeOpened):
                    opened.add(each.scope_id)
            said.append(each)
        return said

    def _chat_end(self, body: dict[str, Any]) -> list[DecodedItem]:
        """The chat is over; so is the turn, unless people are waited for."""
        status, known = optional_text(body.get("status")), meanings()
        outcome = m.Outcome.COMPLETED if status in (None, known.paused) else known.outcome.get(status or "")
        if outcome is None:
            raise BackendFailed(f"the server ended a chat with the status '{str(status)[:40]}'")
        if self._is_over:
            return []
        said = self._pause_data(body) if outcome is m.Outcome.COMPLETED else []
        if outcome is m.Outcome.COMPLETED and self._pending:
            self._resting = True
            return [*said, *self._rest()]
        if status == known.paused:
            raise BackendFailed("the server waits for an answer and has asked nothing")
        ended = self._ended(body, outcome)
        said += [*self._rest(ended.stop_reason, outcome), *self._give_up(), *self._dismiss(ended.stop_reason)]
        self._forget()
        self._resting, self._is_over, self.fault = False, True, None
        return [*said, ended]

    def _pause_data(self, body: dict[str, Any]) -> list[DecodedItem]:
        """What is waited for, where no turn has told it."""
        told = body.get("pause_tool_data")
        if self._pending or not isinstance(told, dict) or not optional_text(told.get("tool_call_id")):
            return []
        name = text(body.get("pause_tool")).rpartition(":")[2]
        turn_id = self._voices[m.ROOT].turn_id or f"turn_of_{told['tool_call_id']}"
        said: list[DecodedItem] = []
        turn = self._turns.get(turn_id)
        if turn is None:
            turn, said = self._new(turn_id, {})
        call = {"id": told["tool_call_id"], "tool_name": name or "AskUserQuestion", "arguments": told.get("arguments"),
                "status": "awaiting_answer"}
        return [*said, *self._told(turn, call)]

    def _ended(self, body: dict[str, Any], outcome: m.Outcome) -> RemoteTurnEnd:
        result = body.get("result")
        stop = meanings().stop_reason.get(text(body.get("finish_reason")), m.StopReason.END_TURN)
        fault = self.fault
        if outcome is m.Outcome.INTERRUPTED:
            stop, fault = m.StopReason.INTERRUPTED, None
        elif outcome is m.Outcome.FAILED:
            told = optional_text(result.get("err_msg")) if isinstance(result, dict) else None
            fault = fault or m.Fault(code=m.FaultCode.BACKEND, message=told or "The server's agent failed.")
            stop = m.StopReason.TIMEOUT if fault.code is m.FaultCode.TIMEOUT else (
                stop if stop is not m.StopReason.END_TURN else m.StopReason.ERROR)
        else:
            fault = None
        asked_for = result.get("output") if isinstance(result, dict) and "schema" in result else None
        return RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=fault, result=asked_for)

    def _rest(
        self, stop_reason: m.StopReason = m.StopReason.END_TURN, outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> list[DecodedItem]:
        """The ends of all messages, those of sub-agents first."""
        return [event for voice in reversed(self._voices.values())
                for event in self._finish(voice, stop_reason, outcome=outcome)]

    def _dismiss(self, stop_reason: m.StopReason) -> list[DecodedItem]:
        return [event for voice in reversed(self._voices.values()) if voice.is_open and voice.scope_id != m.ROOT
                for event in self._close(voice, stop_reason)]

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


_STEPS: dict[str, Callable[[Decoder, dict[str, Any]], list[DecodedItem]]] = {
    "chat:start": Decoder._chat_start,
    "chat:end": Decoder._chat_end,
    "turn:start": Decoder._turn_start,
    "turn:patch": Decoder._turn_patch,
    "turn:end": Decoder._turn_end,
    "system:error": Decoder._error,
    "system:notification": Decoder._notice,
    "session:updated": Decoder._updated,
    "workspace:files_changed": Decoder._files,
}
