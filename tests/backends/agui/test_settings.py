"""What may be said of an AG-UI agent in config.yaml, and what is remembered of it."""

from typing import Any

import pytest
from pydantic import ValidationError

import gateway.model as m
from gateway.backends.agui import KIND, AguiSettings
from gateway.backends.agui.interrupts import RunResume, run_resume
from gateway.backends.agui.turn import MAX_MESSAGE_IDS, AguiSessionState
from gateway.backends.agui.wire import RunInterrupt
from tests.support.backends.agui_server import Turn


def test_an_address_is_an_address_and_a_key_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KIND.settings is AguiSettings
    with pytest.raises(ValidationError, match="begins with http"):
        AguiSettings(url="ftp://x")
    monkeypatch.setenv("AGUI_KEY_FOR_TESTS", "swordfish")
    given = {"url": "https://x/agent", "key": "$AGUI_KEY_FOR_TESTS", "headers": {"X": "halibut"}}
    made = AguiSettings.model_validate(given)
    assert "swordfish" not in repr(made)
    assert made.secrets == ("swordfish", "halibut")
    assert str(made.upstream.url_for("")) == "https://x/agent"


@pytest.mark.parametrize("kept", [None, 7, {"url": 7}, {"url": "https://other", "state": 1}, {"waiting": "x"}])
def test_a_memory_that_is_not_ours_is_none(kept: Any) -> None:
    memory = AguiSessionState.of(Turn(metadata={m.PRIVATE: {"agui": kept}}), "https://x")
    assert (memory.url, memory.thread_id, memory.state) == ("https://x", "sess_1", {})


def test_a_memory_comes_back_as_it_was_kept() -> None:
    turn = Turn(metadata={"mine": 1})
    memory = AguiSessionState.of(turn, "https://x")
    memory.update(thread_id="t", state={"a": 1}, ids={f"ours{n}": f"theirs{n}" for n in range(MAX_MESSAGE_IDS + 5)})
    waiting = [None, RunInterrupt(id="i", response_schema={"type": "boolean"})]
    [told] = memory.metadata_update(turn, waiting)
    turn.record(told)
    again = AguiSessionState.of(turn, "https://x")
    assert again == memory
    assert again.waiting == waiting
    assert (len(again.ids), again.ids[f"ours{MAX_MESSAGE_IDS + 4}"]) == (
        MAX_MESSAGE_IDS,
        f"theirs{MAX_MESSAGE_IDS + 4}",
    )
    assert again.metadata_update(turn, waiting) == []
    assert turn.metadata["mine"] == 1


@pytest.mark.parametrize(("schema", "granted", "payload"), [
    (None, True, {"approved": True}),
    ({"type": "boolean"}, False, False),
    ({"type": "object", "properties": {"ok": {"type": "boolean"}, "note": {}}}, True, {"ok": True}),
    ({"type": "object", "properties": {"decision": {"enum": ["approve", "reject"]}}}, False, {"decision": "reject"}),
    ({"type": "object", "properties": {"decision": {"enum": ["approve", "reject"]}}}, True, {"decision": "approve"}),
    ({"type": "object", "properties": {"words": {"type": "string"}}}, True, {"approved": True}),
    ({"type": "object"}, True, {"approved": True}),
])
def test_a_decision_in_the_words_the_agent_wants(schema: Any, granted: bool, payload: Any) -> None:
    ask = m.PermissionAsk(call=m.ToolCall(call_id="c", name="pay"))
    waits = RunInterrupt(id="i", response_schema=schema)
    told = run_resume([(waits, ask, m.DecidePermission(request_id="x", granted=granted))])
    assert told == RunResume(entries=[{"interruptId": "i", "status": "resolved", "payload": payload}])
    other = run_resume([(RunInterrupt(id="i"), ask, m.ContinueTurn(request_id="x"))])
    assert other == RunResume(entries=[{"interruptId": "i", "status": "cancelled"}])
