"""Turns and asks, each part by itself: which cues it writes, and when."""

from collections.abc import Mapping
from typing import Any

import gateway.model as m
from adapters.blade.server.ask_projection import AskProjection
from adapters.blade.server.turn_projection import FORK_TOOL, NO_NAMES, TurnProjection
from adapters.blade.server.turn_state import OpenTurns, TurnEntry

CALL = m.ToolCall(call_id="call_1", name="calc")


class Written:
    """Keeps what is written: the cue, the patches of its turn so far, and the names that it binds."""

    def __init__(self) -> None:
        self.cues: list[tuple[str, int | None, dict[str, Any]]] = []

    def write(
        self, cue: str, turn: TurnEntry | None = None, names: Mapping[str, Any] = NO_NAMES, seq: int = 0,
    ) -> None:
        self.cues.append((cue, turn.patches if turn else None, dict(names)))

    def take(self) -> list[str]:
        names, self.cues = [cue for cue, _, _ in self.cues], []
        return names


class Parts:
    """The projections of turns and of asks over one state."""

    def __init__(self) -> None:
        self.open, self.written = OpenTurns(), Written()
        self.turns = TurnProjection(self.open, self.written)
        self.asks = AskProjection(self.open, self.turns)
        self.seq = 0

    def record(self, event: m.Event, scope_id: str = m.ROOT) -> m.Record:
        self.seq += 1
        return m.Record(seq=self.seq, at=float(self.seq), session_id="sess_1", scope_id=scope_id, event=event)  # type: ignore[arg-type]

    def start(self, message_id: str = "msg_1") -> TurnEntry:
        event = m.MessageStarted(message_id=message_id, role=m.Role.ASSISTANT)
        self.turns.message_started(self.record(event), event)
        return self.open.turns[message_id]

    def grow(self, text: str) -> None:
        event = m.BlockDelta(block_id="b", message_id="msg_1", kind=m.BlockKind.TEXT, delta=text)
        self.turns.delta(self.record(event), event)

    def call(self, made: m.ToolCall = CALL) -> None:
        event = m.BlockEnded(block_id="c", message_id="msg_1", kind=m.BlockKind.TOOL_USE, call=made)
        self.turns.block_ended(self.record(event), event)

    def end(self) -> None:
        event = m.MessageEnded(message_id="msg_1", outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.TOOL_USE)
        self.turns.message_ended(self.record(event), event)

    def return_(self, call_id: str = "call_1") -> None:
        event = m.ToolReturned(call_id=call_id, content="4")
        self.turns.returned(self.record(event), event)


def test_a_cue_is_written_before_its_turn_changes_further() -> None:
    parts = Parts()
    parts.start()
    parts.grow("two ")
    parts.call()
    assert [(cue, patches) for cue, patches, _ in parts.written.cues] == [
        ("turn.opened", 0), ("patch.text", 1), ("patch.call", 2)]


def test_little_text_of_a_long_turn_waits_until_it_is_due() -> None:
    parts = Parts()
    turn = parts.start()
    parts.grow("word " * 200)
    assert parts.written.take() == ["turn.opened", "patch.text"]
    parts.grow("more")
    assert (parts.written.take(), parts.open.holding) == ([], [turn])
    parts.turns.flush(turn.due)
    assert (parts.written.take(), parts.open.holding) == (["patch.text"], [])


def test_a_turn_ends_when_its_message_and_its_calls_have() -> None:
    parts = Parts()
    parts.start()
    parts.call()
    parts.end()
    assert parts.written.take() == ["turn.opened", "patch.call"]
    parts.return_()
    assert parts.written.take() == ["patch.result", "turn.closed"]


def test_a_sub_agent_that_no_call_started_has_a_call_made_here() -> None:
    parts = Parts()
    event = m.ScopeOpened(parent=m.ROOT, agent="scout")
    parts.turns.scope_opened(parts.record(event, "scope_1"), event)
    assert parts.written.take() == ["turn.opened", "patch.call"]
    [call] = parts.open.calls.values()
    assert (call.name, call.input, call.is_synthetic) == (FORK_TOOL, {"description": "scout"}, True)
    ended = m.ScopeStatusChanged(status=m.ScopeStatus.ENDED)
    parts.turns.scope_status_changed(parts.record(ended, "scope_1"), ended)
    assert parts.written.take() == ["patch.result", "turn.closed"]


def test_an_ask_is_a_call_that_waits_until_it_is_answered() -> None:
    parts = Parts()
    parts.start()
    event = m.InputRequested(request_id="ask_1", ask=m.PermissionAsk(call=CALL))
    parts.asks.requested(parts.record(event), event)
    assert parts.written.take() == ["turn.opened", "turn.opened", "patch.call"]
    answer = m.DecidePermission(request_id="ask_1", granted=True)
    assert [block.type for block in parts.asks.reply_blocks(answer)] == ["ask_user_answer"]
    assert parts.asks.reply_blocks(m.SendMessage(content="hi")) == []
    parts.asks.shown["ask_1"].answer = answer
    parts.asks.answered("ask_1")
    assert (parts.written.take(), parts.asks.shown) == (["patch.result"], {})


def test_an_ask_that_nobody_answers_is_cancelled() -> None:
    parts = Parts()
    event = m.InputRequested(request_id="ask_1", ask=m.QuestionAsk(questions=(m.Question(question="?"),)))
    parts.asks.requested(parts.record(event), event)
    parts.written.take()
    parts.asks.answered("ask_1")
    [(cue, _, names)] = parts.written.cues
    assert (cue, names["call"].status) == ("patch.call_status", m.ToolStatus.CANCELLED)


def test_state_of_a_canonical_turn_ends_with_it() -> None:
    parts = Parts()
    parts.start()
    parts.call()
    parts.open.reset()
    assert (parts.open.turns, parts.open.calls, parts.open.callers, [*parts.open.loops]) == ({}, {}, {}, [m.ROOT])
    assert (parts.open.entries, parts.open.positions) == (1, [1])
