"""What is said to end well, in which order."""

import gateway.model as m
from gateway.model.stream_closer import missing_ends

CALL = m.ToolCall(call_id="c1", name="clock")


def test_ends_come_from_the_inside_out() -> None:
    grammar = m.Grammar()
    for scope_id, event in [
        (m.ROOT, m.TurnStarted(command_id="x")),
        (m.ROOT, m.MessageStarted(message_id="m1")),
        (m.ROOT, m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL)),
        (m.ROOT, m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL)),
        ("kid", m.ScopeOpened(parent=m.ROOT)),
        ("kid", m.MessageStarted(message_id="m2")),
        ("kid", m.BlockStarted(block_id="b2", message_id="m2", kind=m.BlockKind.THINKING)),
        ("kid", m.BlockDelta(block_id="b2", message_id="m2", kind=m.BlockKind.THINKING, delta="so far")),
    ]:
        grammar.check(event, scope_id)
    said = []
    for scope_id, event in missing_ends(grammar, m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED):
        grammar.check(event, scope_id)
        said.append((scope_id, event))
    assert [(scope_id, event.name) for scope_id, event in said] == [
        ("kid", "block.ended"), ("kid", "message.ended"), (m.ROOT, "message.ended"),
        (m.ROOT, "tool.status"), (m.ROOT, "tool.returned"), ("kid", "scope.status"),
    ]
    block, message, returned = said[0][1], said[1][1], said[4][1]
    assert isinstance(block, m.BlockEnded)
    assert block.text == "so far"
    assert isinstance(message, m.MessageEnded)
    assert message.outcome is m.Outcome.INTERRUPTED
    assert isinstance(returned, m.ToolReturned)
    assert returned.is_error


def test_nothing_open_nothing_said() -> None:
    grammar = m.Grammar()
    grammar.check(m.TurnStarted(command_id="x"))
    assert list(missing_ends(grammar, m.Outcome.COMPLETED, m.StopReason.END_TURN)) == []
