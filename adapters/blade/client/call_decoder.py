"""Decodes tool calls: each is made once, changes with every frame about it, may be an ask, and returns once."""

from typing import Any

import orjson

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from gateway.client import optional_count
from gateway.ids import Mint
from gateway.json_values import JsonObject, JsonValue, read_exact_json
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk
from mappings.language import Bindings

from .loops import DecodedCall, DecodedTurn, Loops, LoopState
from .readers import guess_ask, read, read_call_questions, read_result

CANCELLED = "Tool call cancelled"
UNKNOWN_RESULT = "The server ended the chat and did not say what became of this call."
_FACTS = ("name", "title", "arguments", "result", "reference")


class CallDecoder:
    """The calls of one chat, and the asks that wait for people."""

    def __init__(self, loops: Loops, mint: Mint) -> None:
        self._loops = loops
        self._mint = mint
        self.pending: dict[str, RemoteAsk] = {}

    def reset(self) -> None:
        self.pending = {}

    def decode(self, turn: DecodedTurn, given: Bindings, *, final: bool = False) -> list[DecodedItem]:
        """Decode a frame about a call, alone or within a turn; a fact that is known already changes nothing."""
        call_fields = given["call"]
        wire_id = call_fields["id"]
        call = turn.calls.get(wire_id)
        if call is None and not given.get("name"):
            call = self._loops.find_call(wire_id)
        if call is None:
            call = turn.calls[wire_id] = DecodedCall(wire_id, turn)
        facts = {name: given.get(name) for name in _FACTS}
        facts |= {"status": call_fields.get("status"), "duration_ms": call_fields.get("duration_ms")}
        call.facts |= {name: value for name, value in facts.items() if value is not None}
        status: m.ToolStatus = call.facts.get("status", m.ToolStatus.RUNNING)
        items: list[DecodedItem] = [] if call.made else self._make(call, status, final)
        return [*items, *self._changed(call, status)] if call.made and not call.is_over else items

    # -- making ---------------------------------------------------------------------------------------------------

    def _make(self, call: DecodedCall, status: m.ToolStatus, final: bool) -> list[DecodedItem]:
        """Make a call that has a name, when its arguments are complete or nothing more can come."""
        name = call.facts.get("name")
        given = _read_arguments(call.facts.get("arguments"))
        if name is None or (given is None and status is m.ToolStatus.RUNNING and not final):
            return []
        title = call.facts.get("title")
        call.made = m.ToolCall(
            call_id=self._free_id(call.wire_id), name=name, input=_without_source_loop(name, given or {}),
            display_name=title if title != name else None,
        )
        if status is m.ToolStatus.AWAITING_INPUT and name == ASK_TOOL:
            call.ask = guess_ask(self._questions(call), call.made, self._calls_without_ask(call.turn.loop))
            call.is_ask_only = not isinstance(call.ask, m.QuestionAsk)
        return [] if call.is_ask_only else self._emit(call, given is None)

    def _emit(self, call: DecodedCall, is_torn: bool) -> list[DecodedItem]:
        turn, loop, made = call.turn, call.turn.loop, call.made
        assert made is not None
        turn.growing, turn.is_calling = None, True
        items: list[DecodedItem] = [*loop.assembler.end_texts()]
        key, raw = ("call", turn.turn_id, call.wire_id), call.facts.get("arguments")
        if is_torn and isinstance(raw, str) and raw.strip():
            call.is_over = True  # nobody could run it, so it has no status and no result
            return [
                *items,
                *loop.assembler.call(key, made),
                *loop.assembler.input_delta(key, raw),
                *loop.assembler.end(key),
            ]
        return [*items, *loop.assembler.whole_call(key, made)]

    def _free_id(self, wire_id: str) -> str:
        """The server's own id, unless an open call has it already."""
        taken = any(wire_id in loop.assembler.open_calls for loop in self._loops.by_scope.values())
        return self._mint("call") if taken else wire_id

    # -- changes --------------------------------------------------------------------------------------------------

    def _changed(self, call: DecodedCall, status: m.ToolStatus) -> list[DecodedItem]:
        match status:
            case m.ToolStatus.AWAITING_INPUT:
                return self._wait(call)
            case m.ToolStatus.DONE | m.ToolStatus.ERROR:
                content, meta = read_result(call.facts.get("result"))
                call.meta = meta
                return self._return(call, content=content, meta=meta, is_error=status is m.ToolStatus.ERROR)
            case m.ToolStatus.CANCELLED:
                cancelled = [] if call.is_ask_only else self._status(call, status)
                return [*cancelled, *self._return(call, content=CANCELLED, is_error=True)]
        return self._go_on(call, is_running=True)

    def _return(self, call: DecodedCall, **result: Any) -> list[DecodedItem]:
        items: list[DecodedItem] = [*self._go_on(call), *(
            event for loop in self._loops.forked_by(call) for event in self._loops.close(loop)
        )]
        call.is_over = True
        made, assembler = call.made, call.turn.loop.assembler
        if call.is_ask_only or made is None:
            return items
        duration = optional_count(call.facts.get("duration_ms"))
        return [*items, *assembler.returned(made.call_id, duration_ms=duration, **result)]

    def _status(self, call: DecodedCall, status: m.ToolStatus) -> list[BackendEvent]:
        """The status of a call; if it was made for an ask only, the status of the call that the ask is about."""
        about = m.call_of(call.ask) if call.is_ask_only and call.ask is not None else call.made
        return call.turn.loop.assembler.status(about.call_id, status) if about is not None else []

    def _go_on(self, call: DecodedCall, *, is_running: bool = False) -> list[DecodedItem]:
        """The answer has come, or nobody waits for it any more."""
        if not call.is_waiting:
            return []
        call.is_waiting = False
        self.pending.pop(call.wire_id, None)
        children = [event for loop in self._loops.forked_by(call) for event in self._loops.block(loop, False)]
        return [*children, *(self._status(call, m.ToolStatus.RUNNING) if is_running else [])]

    # -- asking ---------------------------------------------------------------------------------------------------

    def _wait(self, call: DecodedCall) -> list[DecodedItem]:
        """A call waits for a person: because of its own ask, or because of the ask of a sub-agent."""
        if call.is_waiting:
            return []
        call.is_waiting = True
        items: list[DecodedItem] = [*self._status(call, m.ToolStatus.AWAITING_INPUT)]
        children = self._loops.forked_by(call)
        if children or "reference" in call.facts:
            return [*items, *(event for loop in children for event in self._loops.block(loop, True))]
        asked = RemoteAsk(ask=self._ask(call), ref=call.wire_id, scope_id=call.turn.loop.scope_id)
        self.pending[call.wire_id] = asked
        return [*items, asked]

    def _ask(self, call: DecodedCall) -> m.AnyAsk:
        return call.ask or m.QuestionAsk(questions=self._questions(call), call=call.made)

    def _questions(self, call: DecodedCall) -> tuple[m.Question, ...]:
        assert call.made is not None
        return read_call_questions(
            _read_arguments(call.facts.get("arguments")) or {}, call.made.display_name or call.made.name
        )

    def _calls_without_ask(self, loop: LoopState) -> list[m.ToolCall]:
        """The open calls that no ask is about yet: a person may have to be asked about them."""
        about = {made.call_id for asked in self.pending.values() if (made := m.call_of(asked.ask)) is not None}
        return [
            made for made in loop.assembler.open_calls.values() if made.name != ASK_TOOL and made.call_id not in about
        ]

    def give_up(self) -> list[DecodedItem]:
        """Cancel the open calls, because the chat is over."""
        items: list[DecodedItem] = []
        for loop in reversed(self._loops.by_scope.values()):
            for call_id in list(loop.assembler.open_calls):
                items += loop.assembler.status(call_id, m.ToolStatus.CANCELLED)
                items += loop.assembler.returned(call_id, UNKNOWN_RESULT, is_error=True)
        return items


def _read_arguments(given: JsonValue) -> dict[str, Any] | None:
    """The arguments, which are the JSON of an object; None if they are not."""
    if isinstance(given, dict):
        return given
    try:
        found = read_exact_json(given) if isinstance(given, str) else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _without_source_loop(name: str, given: JsonObject) -> dict[str, Any]:
    """The server adds to a question which loop it comes from."""
    inner: dict[str, Any] = read("arguments.given", given)["input"] if name == ASK_TOOL else given
    return inner

