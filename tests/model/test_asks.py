"""What a person must settle."""

import gateway.model as m


def test_some_asks_are_about_a_call() -> None:
    call = m.ToolCall(call_id="c", name="t")
    assert m.call_of(m.ClientToolAsk(call=call)) is call
    assert m.call_of(m.ContinuationAsk(turn=1, message="more?")) is None


def test_every_kind_of_ask_has_its_word() -> None:
    assert [ask.kind for ask in m.ASKS] == ["question", "permission", "client_tool", "continuation", "rollback"]
