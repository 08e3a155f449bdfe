"""Which names can be used where, and what is known of them."""

from typing import Any

import pytest

import gateway.model as m
from mappings.language import Vocabulary
from mappings.language.scopes import (
    EVENT_CUES,
    PART_TYPES,
    NameSource,
    cue_scope,
    event_scope,
    known_attributes,
    part_scope,
)


def test_a_frame_knows_the_record_the_event_and_what_the_dialect_adds() -> None:
    added = Vocabulary(names={"turn.ended": ("index",), "turn.ended.failed": ("result",)})
    scope = event_scope(m.TurnEnded, "failed", added)
    assert {"seq", "at", "session_id", "turn_id", "scope_id", "event_id"} <= scope.keys()
    assert "event" not in scope
    assert scope["stop_reason"].source is NameSource.SUBJECT
    assert scope["index"].source is scope["result"].source is NameSource.EXTRA
    assert event_scope(m.TurnEnded, "", added)["result"].source is NameSource.SUBJECT


def test_a_variant_knows_which_ask_it_is() -> None:
    assert event_scope(m.InputRequested, "continuation", Vocabulary())["ask"].type is m.ContinuationAsk
    assert known_attributes(event_scope(m.InputRequested, "", Vocabulary())["ask"].type) == {"kind": str}


def test_a_cue_knows_what_it_binds_and_the_record() -> None:
    words = Vocabulary(cues={"mood.changed": ("mood", "at")}, names={"*": ("out_seq",)})
    scope = cue_scope("mood.changed", words)
    assert scope["mood"].source is scope["at"].source is NameSource.EXTRA
    assert scope["seq"].source is NameSource.RECORD


def test_a_name_can_be_bound_everywhere() -> None:
    words = Vocabulary(cues={"mood.changed": ()}, names={"*": ("out_seq",)})
    assert "out_seq" in cue_scope("mood.changed", words)
    assert "out_seq" in event_scope(m.TurnEnded, "failed", words)


def test_every_kind_of_part_has_names() -> None:
    assert set(PART_TYPES) == {"text", "thinking", "tool_use", "image", "file", "data"}
    assert set(part_scope(PART_TYPES["image"])) == {"url", "media_type"}


@pytest.mark.parametrize(("hint", "known"), [
    (Any, None),
    (dict[str, Any], None),
    (dict[str, Any] | None, None),
    (str, {}),
    (tuple[str, ...], {}),
])
def test_what_can_follow_a_dot(hint: Any, known: dict[str, Any] | None) -> None:
    assert known_attributes(hint) == known


def test_the_fields_of_a_struct_can_follow_a_dot() -> None:
    assert "display_name" in (known_attributes(m.ToolCall | None) or {})


def test_every_event_and_variant_is_a_cue() -> None:
    assert {"turn.started", "block.ended.torn", "input.accepted.roll_back", "tool.returned.client"} <= EVENT_CUES.keys()
