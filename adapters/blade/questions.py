"""What people are asked, told as tool calls that wait; and what became of them when somebody answered."""

from dataclasses import dataclass

from gateway.model import (
    ROOT,
    Answer,
    AnyAsk,
    InputRequested,
    Outcome,
    QuestionAsk,
    Record,
    Resolution,
    Role,
    SessionStatus,
    ToolStatus,
)

from . import asking
from .telling import Cue, Cues, Telling
from .turns import Call, Reference, Turn, call_id_of
from .wire import BlockType


@dataclass(slots=True)
class Asked:
    """An open ask: the call that shows it, and what was answered."""

    ask: AnyAsk
    call: Call
    turn: Turn
    scope_id: str
    own: bool
    """Whether the call was made for the asking only."""
    answer: Answer | None = None
    resolution: Resolution | None = None


class Questions(Telling):
    """The asks of one session."""

    def __init__(self) -> None:
        super().__init__()
        self._asks: dict[str, Asked] = {}

    def _requested(self, record: Record, event: InputRequested) -> Cues:
        key = event.call_id or ""
        made = self._calls.get(key)
        if made is not None and isinstance(event.ask, QuestionAsk) and made.status is ToolStatus.AWAITING_INPUT:
            asked = Asked(event.ask, made, self._callers[key], record.scope_id, False)
        else:
            turn = self._callers.get(key)
            if turn is None or turn.closed:
                turn = self._entry(event.request_id, record, Role.ASSISTANT)
                turn.spoken, self._turns[event.request_id] = Outcome.COMPLETED, turn
                yield Cue("turn.opened", turn)
            call = Call(
                call_id_of(event.request_id), asking.TOOL, questions=asking.questions_of(event.ask),
                loop=self._child(record.scope_id), status=ToolStatus.AWAITING_INPUT,
            )
            yield from self._make(turn, event.request_id, call)
            asked = Asked(event.ask, call, turn, record.scope_id, True)
        self._asks[event.request_id] = asked
        yield from self._bubble(asked)

    def _bubble(self, asked: Asked) -> Cues:
        """Whoever called the sub-agent that asks waits with it, up to the agent itself."""
        loop = self._loops.get(asked.scope_id)
        while loop is not None and loop.loop_id != ROOT:
            reference = Reference(loop.loop_id, asked.call.id, loop.title)
            yield from self._set(loop.call_id, ToolStatus.AWAITING_INPUT, reference)
            loop = self._loops.get(loop.parent)

    def _sink(self, asked: Asked) -> Cues:
        """And goes on with it."""
        loop = self._loops.get(asked.scope_id)
        while loop is not None and loop.loop_id != ROOT:
            yield from self._set(loop.call_id, ToolStatus.PENDING)
            loop = self._loops.get(loop.parent)

    def _withdrawn(self, asked: Asked) -> Cues:
        """Nobody will answer any more."""
        asked.call.over, asked.call.status = True, ToolStatus.CANCELLED
        yield from self._patch("patch.call_status", asked.turn, call=asked.call)

    def _answered(self, request_id: str) -> Cues:
        """An ask is settled: a call made for it has its result, and those who waited go on."""
        asked = self._asks.pop(request_id, None)
        if asked is None:
            return
        picks = asking.picks_of(asked.ask, asked.answer) if asked.answer is not None else None
        if asked.own and not asked.call.over:
            if picks is None:
                yield from self._withdrawn(asked)
            else:
                asked.call.over, asked.call.status = True, ToolStatus.DONE
                asked.call.content = asking.in_words(asked.call.questions or (), *picks)
                yield from self._about_call("patch.result", asked.turn, asked.call, BlockType.TOOL_RESULT)
        yield from self._sink(asked)
        if asked.own and not asked.turn.waiting and asked.turn.state is SessionStatus.SUSPENDED:
            yield from self._complete(asked.turn)
