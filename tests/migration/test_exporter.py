"""What of a session is exported: its messages, without what no protocol takes."""

import gateway.model as m
from gateway.migration import history_of
from gateway.migration.exporter import PIECES, SUBAGENTS, TIMES


def test_messages_calls_and_results_are_exported_and_the_rest_is_named() -> None:
    call = m.ToolUsePart(call=m.ToolCall(call_id="c", name="calc"))
    view = m.SessionView(session_id="s", entries=[
        m.HistoryEntry(role=m.Role.USER, content="hi", seq=1, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content=(call, m.DataPart(type="plan")), seq=2, at=0.0),
        m.HistoryEntry(role=m.Role.TOOL, content="", call_id="c", seq=3, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content=(m.DataPart(type="plan"),), seq=4, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content="psst", seq=5, at=0.0, scope_id="child"),
    ])
    messages, unseen = history_of(view)
    assert [(message.role, message.content, message.call_id) for message in messages] == [
        (m.Role.USER, "hi", None), (m.Role.ASSISTANT, (call,), None), (m.Role.TOOL, "", "c")]
    assert unseen == (TIMES, PIECES, SUBAGENTS)
