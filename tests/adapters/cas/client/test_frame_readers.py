"""An event from outside: which it is, what it is called, and whether a stream can be taken up after it."""

import pytest

from adapters.cas.client.decoder import PREVIEW_STEPS
from adapters.cas.client.readers import PREVIEW_TYPES, event_type_of, frame_event_id, is_stored, previewed_event_id
from gateway.ports.remote import ParsedFrame
from tests.support.dialects.cas.reader import PASSING as NEVER_KEPT


@pytest.mark.parametrize(("frame", "type", "id"), [
    (ParsedFrame("a", {"type": "b", "id": "e1"}, "e2"), "b", "e1"), (ParsedFrame("a", {}, "e2"), "a", "e2"),
    (ParsedFrame("a", {"type": 5, "id": 5}, "e2"), "a", "e2"), (ParsedFrame("a", {"id": ""}), "a", ""),
    (ParsedFrame("a", [1], "e2"), "a", "e2"),
])
def test_what_an_event_says_of_itself_goes_before(frame: ParsedFrame, type: str, id: str) -> None:
    assert (event_type_of(frame), frame_event_id(frame)) == (type, id)


def test_a_preview_names_its_event() -> None:
    assert previewed_event_id(ParsedFrame("event_start", {"event": {"id": "e1"}})) == "e1"
    assert previewed_event_id(ParsedFrame("event_delta", {"event_id": "e1"})) == "e1"
    for other in ({}, {"event": {}}, {"event_id": 5}, [1]):
        assert previewed_event_id(ParsedFrame("event_delta", other)) == ""


def test_what_passes_is_not_kept() -> None:
    assert frozenset(NEVER_KEPT) == PREVIEW_TYPES
    assert PREVIEW_STEPS.keys() == PREVIEW_TYPES - {"agent.message_stop"}, "which says nothing that the span does not"
    assert not is_stored(ParsedFrame("event_delta", {})) and is_stored(ParsedFrame("agent.message", {}))
