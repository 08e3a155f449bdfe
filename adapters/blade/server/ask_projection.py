"""What people are asked, told as tool calls that wait; and what became of them when somebody answered."""

from dataclasses import dataclass

import gateway.model as m
from adapters.blade import asks
from adapters.blade.wire import BlockType

from .turn_projection import Cue, Cues, TurnProjection
from .turn_state import QuestionReference, TurnCall, TurnEntry, wire_call_id


@dataclass(slots=True)
class ShownAsk:
    """An open ask: the call that shows it, and what was answered."""

    ask: m.AnyAsk
    call: TurnCall
    turn: TurnEntry
    scope_id: str
    is_synthetic: bool
    """Whether the call was made for the asking only."""
    answer: m.Answer | None = None
    resolution: m.Resolution | None = None


class AskProjection(TurnProjection):
    """The asks of one session."""

    def __init__(self) -> None:
        super().__init__()
        self._asks: dict[str, ShownAsk] = {}

    def _requested(self, record: m.Record, event: m.InputRequested) -> Cues:
        key = event.call_id or ""
        made = self._calls.get(key)
        if made is not None and isinstance(event.ask, m.QuestionAsk) and made.status is m.ToolStatus.AWAITING_INPUT:
            asked = ShownAsk(event.ask, made, self._callers[key], record.scope_id, False)
        else:
            turn = self._callers.get(key)
            if turn is None or turn.closed:
                turn = self._entry(event.request_id, record, m.Role.ASSISTANT)
                turn.message_outcome, self._turns[event.request_id] = m.Outcome.COMPLETED, turn
                yield Cue("turn.opened", turn)
            call = TurnCall(
                wire_call_id(event.request_id), asks.ASK_TOOL, questions=asks.questions_of(event.ask),
                loop=self._child(record.scope_id), status=m.ToolStatus.AWAITING_INPUT,
            )
            yield from self._make(turn, event.request_id, call)
            asked = ShownAsk(event.ask, call, turn, record.scope_id, True)
        self._asks[event.request_id] = asked
        yield from self._bubble(asked)

    def _bubble(self, asked: ShownAsk) -> Cues:
        """Whoever called the sub-agent that asks waits with it, up to the agent itself."""
        loop = self._loops.get(asked.scope_id)
        while loop is not None and loop.loop_id != m.ROOT:
            reference = QuestionReference(loop.loop_id, asked.call.id, loop.title)
            yield from self._set(loop.call_id, m.ToolStatus.AWAITING_INPUT, reference)
            loop = self._loops.get(loop.parent)

    def _sink(self, asked: ShownAsk) -> Cues:
        """And goes on with it."""
        loop = self._loops.get(asked.scope_id)
        while loop is not None and loop.loop_id != m.ROOT:
            yield from self._set(loop.call_id, m.ToolStatus.PENDING)
            loop = self._loops.get(loop.parent)

    def _withdrawn(self, asked: ShownAsk) -> Cues:
        """Nobody will answer any more."""
        asked.call.over, asked.call.status = True, m.ToolStatus.CANCELLED
        yield from self._patch("patch.call_status", asked.turn, call=asked.call)

    def _answered(self, request_id: str) -> Cues:
        """An ask is settled: a call made for it has its result, and those who waited go on."""
        asked = self._asks.pop(request_id, None)
        if asked is None:
            return
        picks = asks.picks_of_answer(asked.ask, asked.answer) if asked.answer is not None else None
        if asked.is_synthetic and not asked.call.over:
            if picks is None:
                yield from self._withdrawn(asked)
            else:
                asked.call.over, asked.call.status = True, m.ToolStatus.DONE
                asked.call.content = asks.picks_in_words(asked.call.questions or (), *picks)
                yield from self._about_call("patch.result", asked.turn, asked.call, BlockType.TOOL_RESULT)
        yield from self._sink(asked)
        if asked.is_synthetic and not asked.turn.waiting and asked.turn.state is m.SessionStatus.SUSPENDED:
            yield from self._complete(asked.turn)
