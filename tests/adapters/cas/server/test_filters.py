"""What a query leaves out of a list."""

import pytest
from multidict import MultiDict

from adapters.cas.server.history import ListedEvent
from adapters.cas.server.paging import created_within, event_filter, query_words, read_time
from gateway.errors import Invalid


def test_words_come_in_three_spellings() -> None:
    query = MultiDict([("types", "a,b"), ("types[]", "c"), ("types[]", "d"), ("type", "e"), ("types", ",")])
    assert query_words(query, "type", "types") == {"a", "b", "c", "d", "e"}
    assert query_words(query, "statuses") == frozenset()


@pytest.mark.parametrize(("said", "seconds"), [
    ("1970-01-01T00:00:10Z", 10.0), ("1970-01-01T00:00:10", 10.0), ("1970-01-01T01:00:10 01:00", 10.0),
    ("1970-01-01", 0.0),
])
def test_a_moment_is_read(said: str, seconds: float) -> None:
    assert read_time(said, "created_at[gt]") == seconds


@pytest.mark.parametrize("said", ["", "soon", "10", "1970-13-01"])
def test_what_is_no_moment_is_refused(said: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_time(said, "created_at[gt]")
    assert refused.value.param == "created_at[gt]"


def test_bounds_hold_together() -> None:
    inside = created_within(
        MultiDict({"created_at[gt]": "1970-01-01T00:00:01Z", "created_at[lte]": "1970-01-01T00:00:03Z"})
    )
    assert [float(at) in inside for at in range(5)] == [False, False, True, True, False]
    assert (inside.first, inside.last) == (1.0, 3.0)
    assert 0.0 in created_within(MultiDict())


def test_events_are_kept_by_type_and_time() -> None:
    told = ListedEvent(1, "evt_1", "agent.message", 2.0)
    assert event_filter(MultiDict())(told)
    assert event_filter(MultiDict({"types[]": "agent.message"}))(told)
    assert not event_filter(MultiDict({"type": "agent.thinking"}))(told)
    assert not event_filter(MultiDict({"created_at[gte]": "1970-01-01T00:00:03Z"}))(told)
