"""What may be said of an AG-UI agent in config.yaml, and what is remembered of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.backends.agui import KIND, AguiSettings
from gateway.backends.agui.interrupts import Resume, resume
from gateway.backends.agui.memory import MOST_IDS, Memory
from gateway.backends.agui.wire import Interrupt
from gateway.model import PRIVATE, ContinueTurn, DecidePermission, PermissionAsk, ToolCall
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
    assert str(made.upstream.at("")) == "https://x/agent"


@pytest.mark.parametrize("kept", [None, 7, {"url": 7}, {"url": "https://other", "state": 1}, {"waiting": "x"}])
def test_a_memory_that_is_not_ours_is_none(kept: Any) -> None:
    memory = Memory.of(Turn(metadata={PRIVATE: {"agui": kept}}), "https://x")
    assert (memory.url, memory.thread_id, memory.state) == ("https://x", "sess_1", {})


def test_a_memory_comes_back_as_it_was_kept() -> None:
    turn = Turn(metadata={"mine": 1})
    memory = Memory.of(turn, "https://x")
    memory.learn(thread_id="t", state={"a": 1}, ids={f"ours{n}": f"theirs{n}" for n in range(MOST_IDS + 5)})
    waiting = [None, Interrupt(id="i", response_schema={"type": "boolean"})]
    [told] = memory.kept(turn, waiting)
    turn.record(told)
    again = Memory.of(turn, "https://x")
    assert again == memory
    assert again.waiting == waiting
    assert (len(again.ids), again.ids[f"ours{MOST_IDS + 4}"]) == (MOST_IDS, f"theirs{MOST_IDS + 4}")
    assert again.kept(turn, waiting) == []
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
    ask = PermissionAsk(call=ToolCall(call_id="c", name="pay"))
    waits = Interrupt(id="i", response_schema=schema)
    told = resume([(waits, ask, DecidePermission(request_id="x", granted=granted))])
    assert told == Resume(entries=[{"interruptId": "i", "status": "resolved", "payload": payload}])
    other = resume([(Interrupt(id="i"), ask, ContinueTurn(request_id="x"))])
    assert other == Resume(entries=[{"interruptId": "i", "status": "cancelled"}])
