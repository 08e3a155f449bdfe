"""An event from outside: which it is, what it is called, and whether a stream can be taken up after it."""

import pytest

from adapters.cas.hearing import PREVIEWS
from adapters.cas.hearing_frames import PASSING, event_id_of, final_id_of, is_kept, type_of
from gateway.upstream import Frame
from tests.support.adapters.cas_reader import PASSING as NEVER_KEPT


@pytest.mark.parametrize(("frame", "type", "id"), [
    (Frame("a", {"type": "b", "id": "e1"}, "e2"), "b", "e1"), (Frame("a", {}, "e2"), "a", "e2"),
    (Frame("a", {"type": 5, "id": 5}, "e2"), "a", "e2"), (Frame("a", {"id": ""}), "a", ""),
    (Frame("a", [1], "e2"), "a", "e2"),
])
def test_what_an_event_says_of_itself_goes_before(frame: Frame, type: str, id: str) -> None:
    assert (type_of(frame), event_id_of(frame)) == (type, id)


def test_a_preview_names_its_event() -> None:
    assert final_id_of(Frame("event_start", {"event": {"id": "e1"}})) == "e1"
    assert final_id_of(Frame("event_delta", {"event_id": "e1"})) == "e1"
    for other in ({}, {"event": {}}, {"event_id": 5}, [1]):
        assert final_id_of(Frame("event_delta", other)) == ""


def test_what_passes_is_not_kept() -> None:
    assert frozenset(NEVER_KEPT) == PASSING
    assert PREVIEWS.keys() == PASSING - {"agent.message_stop"}, "which says nothing that the span does not"
    assert not is_kept(Frame("event_delta", {})) and is_kept(Frame("agent.message", {}))
