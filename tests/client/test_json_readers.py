"""Values in the JSON of servers: what is read leniently, and how a malformed value is named."""

from typing import Any

import pytest

from gateway.client import (
    members,
    objects,
    optional_text,
    parse_timestamp,
    require_id,
    require_object,
    require_objects,
    text,
)
from gateway.errors import BackendFailed


@pytest.mark.parametrize("value", [None, 7, True, ["a"], {"a": 1}])
def test_what_is_no_text_is_none(value: Any) -> None:
    assert (text(value), optional_text(value)) == ("", None)


def test_a_text_is_itself() -> None:
    assert (text("a"), optional_text("a"), text(""), optional_text("")) == ("a", "a", "", None)


def test_objects_are_read_and_anything_else_is_passed_over() -> None:
    assert (members({"a": 1}), members([]), members(None)) == ({"a": 1}, {}, {})
    assert objects([{"a": 1}, 2, None, {}]) == [{"a": 1}, {}]
    assert (objects({"a": 1}), objects("ab"), objects(None)) == ([], [], [])


def test_what_must_be_there_is_named_if_it_is_not() -> None:
    assert require_object({"a": 1}, "a turn") == {"a": 1}
    assert require_objects([{"a": 1}], "turns") == [{"a": 1}]
    assert require_objects(None, "turns") == []
    assert require_id({"id": "x"}, "an agent") == "x"
    with pytest.raises(BackendFailed, match=r"^the server sent a turn that is no object$"):
        require_object([], "a turn")
    with pytest.raises(BackendFailed, match=r"^the server sent turns that are no list$"):
        require_objects({}, "turns")
    with pytest.raises(BackendFailed, match=r"^the server sent one of turns that is no object$"):
        require_objects([{}, 3], "turns")
    for body in ({}, {"id": ""}, {"id": 7}):
        with pytest.raises(BackendFailed, match=r"^the server sent an agent that has no id$"):
            require_id(body, "an agent")


@pytest.mark.parametrize(("value", "seconds"), [
    ("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T01:01:00+01:00", 60.0), ("1970-01-01T00:01:00", 60.0),
    ("yesterday", None), (None, None), (60, None),
])
def test_a_time_is_in_utc_unless_it_says_otherwise(value: Any, seconds: float | None) -> None:
    assert parse_timestamp(value) == seconds
