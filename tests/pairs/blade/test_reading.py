"""The reader of Blade reads what the documents of Blade show, and nothing else."""

from typing import Any

import orjson
import pytest

from tests.support.dialects.blade.pair_reader import PairReader

TURN = {"turn_id": "t", "role": "assistant", "loop_id": "root", "kind": "message", "parent_fork_tool_call_id": None}


def blade(*patches: tuple[str, dict[str, Any]], **end: Any) -> PairReader:
    reading = PairReader()
    reading.hear("turn:start", TURN)
    for kind, data in patches:
        reading.hear("turn:patch", {"turn_id": "t", "patch_type": kind, "data": data})
    whole = {"blocks": [], "tool_calls": [], "usage": None, "memory_refs": None, "status": "completed", **end}
    reading.hear("turn:end", {**TURN, **whole})
    return reading


def test_blade_text_is_what_the_patches_add_up_to() -> None:
    patches = [("add_content", {"type": "text", "text_delta": word}) for word in ("法国", "的首都是", "巴黎。")]
    said = [{"type": "text", "content": "法国的首都是巴黎。"}]
    assert blade(*patches, blocks=said).facts()["text"] == "法国的首都是巴黎。"
    with pytest.raises(AssertionError, match="add up"):
        blade(*patches[:2], blocks=said)


def test_blade_asks_with_a_call_that_waits() -> None:
    asked = {"questions": [{"question": "选择部署环境", "options": [{"label": "staging"}]}], "source_loop": None}
    call = {"id": "tc", "tool_name": "AskUserQuestion", "arguments": orjson.dumps(asked).decode(),
            "status": "awaiting_answer"}
    reading = blade(("add_tool_call", call), tool_calls=[call])
    assert reading.facts()["questions"] == [[("选择部署环境", False, ["staging"])]]
    assert [*reading.waiting] == ["tc"]
