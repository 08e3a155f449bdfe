"""What a person must settle."""

from gateway.model import ASKS, ClientToolAsk, ContinuationAsk, ToolCall, call_of


def test_some_asks_are_about_a_call() -> None:
    call = ToolCall(call_id="c", name="t")
    assert call_of(ClientToolAsk(call=call)) is call
    assert call_of(ContinuationAsk(turn=1, message="more?")) is None


def test_every_kind_of_ask_has_its_word() -> None:
    assert [ask.kind for ask in ASKS] == ["question", "permission", "client_tool", "continuation", "rollback"]
