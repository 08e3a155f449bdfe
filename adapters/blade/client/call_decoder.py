"""Tool calls heard: made once, changed by whatever is told of them, asked about, and come back once."""

from typing import Any

import orjson

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from gateway.ids import Mint
from gateway.json_values import read_exact_json
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk

from .ask_readers import guess_ask, read_questions
from .loops import DecodedCall, DecodedTurn, Loops, LoopState
from .readers import meanings, optional_number, optional_text, read_result, require_name, text

CANCELLED = "Tool call cancelled"
UNKNOWN_RESULT = "The server ended the chat and did not say what became of this call."
_FACTS = ("tool_name", "display_name", "arguments", "status", "result", "duration_ms", "pending_question_ref")


class CallDecoder(Loops):
    """The calls of one chat, and what people are asked."""

    def __init__(self, mint: Mint) -> None:
        super().__init__(mint)
        self._pending: dict[str, RemoteAsk] = {}

    def _forget(self) -> None:
        super()._forget()
        self._pending = {}

    def _told(self, turn: DecodedTurn, told: dict[str, Any], *, final: bool = False) -> list[DecodedItem]:
        """Something is told of a call, by itself or as part of a turn; what was told before changes nothing."""
        wire_id = require_name(told.get("id") or told.get("tool_call_id"), "a tool call")
        call = turn.calls.get(wire_id)
        if call is None and not told.get("tool_name"):
            call = self._call_by_id(wire_id)
        if call is None:
            call = turn.calls[wire_id] = DecodedCall(wire_id, turn)
        call.facts |= {key: told[key] for key in _FACTS if told.get(key) is not None}
        status = meanings().tool_status.get(text(call.facts.get("status")), m.ToolStatus.RUNNING)
        said: list[DecodedItem] = [] if call.made else self._make(call, status, final)
        return [*said, *self._changed(call, status)] if call.made and not call.is_over else said

    # -- making ---------------------------------------------------------------------------------------------------

    def _make(self, call: DecodedCall, status: m.ToolStatus, final: bool) -> list[DecodedItem]:
        """A call is told when its arguments are whole, or nothing more can come; never one without a name."""
        name = optional_text(call.facts.get("tool_name"))
        given = _read_arguments(call.facts.get("arguments"))
        if name is None or (given is None and status is m.ToolStatus.RUNNING and not final):
            return []
        title = optional_text(call.facts.get("display_name"))
        call.made = m.ToolCall(
            call_id=self._free_id(call.wire_id), name=name, input=_without_source_loop(name, given or {}),
            display_name=title if title != name else None,
        )
        if status is m.ToolStatus.AWAITING_INPUT and name == ASK_TOOL:
            call.ask = guess_ask(self._questions(call), call.made, self._waiting(call.turn.voice))
            call.is_ask_only = not isinstance(call.ask, m.QuestionAsk)
        return [] if call.is_ask_only else self._tell(call, given is None)

    def _tell(self, call: DecodedCall, is_torn: bool) -> list[DecodedItem]:
        turn, voice, made = call.turn, call.turn.voice, call.made
        assert made is not None
        turn.growing, turn.is_calling = None, True
        said: list[DecodedItem] = [*voice.assembler.end_texts()]
        key, raw = ("call", turn.turn_id, call.wire_id), call.facts.get("arguments")
        if is_torn and isinstance(raw, str) and raw.strip():
            call.is_over = True  # nobody could carry it out, and nothing is told of it
            return [
                *said,
                *voice.assembler.call(key, made),
                *voice.assembler.input_delta(key, raw),
                *voice.assembler.end(key),
            ]
        return [*said, *voice.assembler.whole_call(key, made)]

    def _free_id(self, wire_id: str) -> str:
        """The server's own id, unless another call goes by it that has not come back."""
        taken = any(wire_id in voice.assembler.open_calls for voice in self._voices.values())
        return self._mint("call") if taken else wire_id

    # -- changes --------------------------------------------------------------------------------------------------

    def _changed(self, call: DecodedCall, status: m.ToolStatus) -> list[DecodedItem]:
        match status:
            case m.ToolStatus.AWAITING_INPUT:
                return self._wait(call)
            case m.ToolStatus.DONE | m.ToolStatus.ERROR:
                content, meta = read_result(call.facts.get("result"))
                call.meta = meta
                return self._over(call, content=content, meta=meta, is_error=status is m.ToolStatus.ERROR)
            case m.ToolStatus.CANCELLED:
                told = [] if call.is_ask_only else self._status(call, status)
                return [*told, *self._over(call, content=CANCELLED, is_error=True)]
        return self._go_on(call, is_running=True)

    def _over(self, call: DecodedCall, **result: Any) -> list[DecodedItem]:
        said: list[DecodedItem] = [*self._go_on(call), *(
            event for voice in self._forked(call) for event in self._close(voice)
        )]
        call.is_over = True
        made, scribe = call.made, call.turn.voice.assembler
        if call.is_ask_only or made is None:
            return said
        duration = optional_number(call.facts.get("duration_ms"))
        return [*said, *scribe.returned(made.call_id, duration_ms=duration, **result)]

    def _status(self, call: DecodedCall, status: m.ToolStatus) -> list[BackendEvent]:
        """The status of a call; that of one made for the asking only is that of the call it is about."""
        about = m.call_of(call.ask) if call.is_ask_only and call.ask is not None else call.made
        return call.turn.voice.assembler.status(about.call_id, status) if about is not None else []

    def _go_on(self, call: DecodedCall, *, is_running: bool = False) -> list[DecodedItem]:
        """What was waited for has come, or nobody waits for it any more."""
        if not call.is_waiting:
            return []
        call.is_waiting = False
        self._pending.pop(call.wire_id, None)
        children = [event for voice in self._forked(call) for event in self._block(voice, False)]
        return [*children, *(self._status(call, m.ToolStatus.RUNNING) if is_running else [])]

    # -- asking ---------------------------------------------------------------------------------------------------

    def _wait(self, call: DecodedCall) -> list[DecodedItem]:
        """A call waits for a person: because of what it asks itself, or because a sub-agent of it does."""
        if call.is_waiting:
            return []
        call.is_waiting = True
        said: list[DecodedItem] = [*self._status(call, m.ToolStatus.AWAITING_INPUT)]
        children = self._forked(call)
        if children or isinstance(call.facts.get("pending_question_ref"), dict):
            return [*said, *(event for voice in children for event in self._block(voice, True))]
        asked = RemoteAsk(ask=self._ask(call), ref=call.wire_id, scope_id=call.turn.voice.scope_id)
        self._pending[call.wire_id] = asked
        return [*said, asked]

    def _ask(self, call: DecodedCall) -> m.AnyAsk:
        return call.ask or m.QuestionAsk(questions=self._questions(call), call=call.made)

    def _questions(self, call: DecodedCall) -> tuple[m.Question, ...]:
        assert call.made is not None
        return read_questions(
            _read_arguments(call.facts.get("arguments")) or {}, call.made.display_name or call.made.name
        )

    def _waiting(self, voice: LoopState) -> list[m.ToolCall]:
        """The calls that a person may have to be asked about: they have not come back, and nobody was asked yet."""
        about = {made.call_id for asked in self._pending.values() if (made := m.call_of(asked.ask)) is not None}
        return [
            made for made in voice.assembler.open_calls.values() if made.name != ASK_TOOL and made.call_id not in about
        ]

    def _give_up(self) -> list[DecodedItem]:
        """The chat is over: calls that did not come back never will."""
        said: list[DecodedItem] = []
        for voice in reversed(self._voices.values()):
            for call_id in list(voice.assembler.open_calls):
                said += voice.assembler.status(call_id, m.ToolStatus.CANCELLED)
                said += voice.assembler.returned(call_id, UNKNOWN_RESULT, is_error=True)
        return said


def _read_arguments(given: Any) -> dict[str, Any] | None:
    """The arguments, which are the JSON of an object; None where they are not."""
    if isinstance(given, dict):
        return given
    try:
        found = read_exact_json(given) if isinstance(given, str) else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _without_source_loop(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Which loop a question comes from is the server's addition."""
    return {key: value for key, value in given.items() if name != ASK_TOOL or key != "source_loop"}

