"""Projects asks: tool calls that wait for a person, and their results when somebody has answered."""

from dataclasses import dataclass

import gateway.model as m
from adapters.blade import asks
from adapters.blade.wire import BlockType

from .turn_projection import TurnProjection
from .turn_state import OpenTurns, QuestionReference, TurnBlock, TurnCall, TurnEntry, wire_call_id


@dataclass(slots=True)
class ShownAsk:
    """An open ask: the call that shows it, and its answer."""

    ask: m.AnyAsk
    call: TurnCall
    turn: TurnEntry
    scope_id: str
    is_synthetic: bool
    """Whether the call was made here, for the ask only."""
    answer: m.Answer | None = None
    resolution: m.Resolution | None = None


class AskProjection:
    """The asks of one session."""

    def __init__(self, open_turns: OpenTurns, turns: TurnProjection) -> None:
        self._open = open_turns
        self._turns = turns
        self.shown: dict[str, ShownAsk] = {}

    def requested(self, record: m.Record, event: m.InputRequested) -> None:
        key = event.call_id or ""
        made, turn = self._open.calls.get(key), self._open.callers.get(key)
        if (
            made is not None and turn is not None
            and isinstance(event.ask, m.QuestionAsk) and made.status is m.ToolStatus.AWAITING_INPUT
        ):
            shown = ShownAsk(event.ask, made, turn, record.scope_id, False)
        else:
            if turn is None or turn.closed:
                turn = self._turns.open_entry(event.request_id, record)
            call = TurnCall(
                wire_call_id(event.request_id), asks.ASK_TOOL, questions=asks.questions_of(event.ask),
                loop=self._turns.child_loop(record.scope_id), status=m.ToolStatus.AWAITING_INPUT,
            )
            self._turns.add_call(turn, event.request_id, call)
            shown = ShownAsk(event.ask, call, turn, record.scope_id, True)
        self.shown[event.request_id] = shown
        self._suspend_callers(shown)

    def _suspend_callers(self, shown: ShownAsk) -> None:
        """Every caller of the sub-agent that asks waits with it, up to the agent itself."""
        loop = self._open.loops.get(shown.scope_id)
        while loop is not None and loop.loop_id != m.ROOT:
            reference = QuestionReference(loop.loop_id, shown.call.id, loop.title)
            self._turns.set_call_status(loop.call_id, m.ToolStatus.AWAITING_INPUT, reference)
            loop = self._open.loops.get(loop.parent)

    def _resume_callers(self, shown: ShownAsk) -> None:
        loop = self._open.loops.get(shown.scope_id)
        while loop is not None and loop.loop_id != m.ROOT:
            self._turns.set_call_status(loop.call_id, m.ToolStatus.PENDING)
            loop = self._open.loops.get(loop.parent)

    def reply_blocks(self, command: m.AnyCommand) -> list[TurnBlock]:
        """The blocks of a person's turn that answers an ask; none if the command answers nothing that is shown."""
        if not isinstance(command, m.Answer):
            return []
        shown = self.shown.get(command.request_id)
        picks = asks.picks_of_answer(shown.ask, command) if shown is not None else None
        if shown is None or picks is None:
            return []
        answer = {"tool_call_id": shown.call.id, "selections": picks[0], "custom": picks[1]}
        text = getattr(command, "message", "")
        return [TurnBlock(BlockType.ASK_USER_ANSWER, answer), *([TurnBlock(BlockType.TEXT, text)] if text else [])]

    def withdrawn(self, shown: ShownAsk) -> None:
        """Cancel the call of an ask that nobody will answer."""
        shown.call.over, shown.call.status = True, m.ToolStatus.CANCELLED
        self._turns.patch("patch.call_status", shown.turn, call=shown.call)

    def answered(self, request_id: str) -> None:
        """Give the call of a settled ask its result, and let the callers go on."""
        shown = self.shown.pop(request_id, None)
        if shown is None:
            return
        picks = asks.picks_of_answer(shown.ask, shown.answer) if shown.answer is not None else None
        if shown.is_synthetic and not shown.call.over:
            if picks is None:
                self.withdrawn(shown)
            else:
                shown.call.over, shown.call.status = True, m.ToolStatus.DONE
                shown.call.content = asks.picks_in_words(shown.call.questions or (), *picks)
                self._turns.patch_call("patch.result", shown.turn, shown.call, BlockType.TOOL_RESULT)
        self._resume_callers(shown)
        if shown.is_synthetic and not shown.turn.is_waiting and shown.turn.state is m.SessionStatus.SUSPENDED:
            self._turns.complete(shown.turn)
