"""What is said to end well, in which order."""

from gateway.model import (
    ROOT,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Grammar,
    MessageEnded,
    MessageStarted,
    Outcome,
    ScopeOpened,
    StopReason,
    ToolCall,
    ToolReturned,
    TurnStarted,
)
from gateway.model.stream_closer import missing_ends

CALL = ToolCall(call_id="c1", name="clock")


def test_ends_come_from_the_inside_out() -> None:
    grammar = Grammar()
    for scope_id, event in [
        (ROOT, TurnStarted(command_id="x")),
        (ROOT, MessageStarted(message_id="m1")),
        (ROOT, BlockStarted(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE, call=CALL)),
        (ROOT, BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE, call=CALL)),
        ("kid", ScopeOpened(parent=ROOT)),
        ("kid", MessageStarted(message_id="m2")),
        ("kid", BlockStarted(block_id="b2", message_id="m2", kind=BlockKind.THINKING)),
        ("kid", BlockDelta(block_id="b2", message_id="m2", kind=BlockKind.THINKING, delta="so far")),
    ]:
        grammar.check(event, scope_id)
    said = []
    for scope_id, event in missing_ends(grammar, Outcome.INTERRUPTED, StopReason.INTERRUPTED):
        grammar.check(event, scope_id)
        said.append((scope_id, event))
    assert [(scope_id, event.name) for scope_id, event in said] == [
        ("kid", "block.ended"), ("kid", "message.ended"), (ROOT, "message.ended"),
        (ROOT, "tool.status"), (ROOT, "tool.returned"), ("kid", "scope.status"),
    ]
    block, message, returned = said[0][1], said[1][1], said[4][1]
    assert isinstance(block, BlockEnded)
    assert block.text == "so far"
    assert isinstance(message, MessageEnded)
    assert message.outcome is Outcome.INTERRUPTED
    assert isinstance(returned, ToolReturned)
    assert returned.is_error


def test_nothing_open_nothing_said() -> None:
    grammar = Grammar()
    grammar.check(TurnStarted(command_id="x"))
    assert list(missing_ends(grammar, Outcome.COMPLETED, StopReason.END_TURN)) == []
