"""Values of query strings and paths are read strictly; cursors are opaque, and only ours are taken."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.http import decode_cursor, encode_cursor, parse_whole_number


@pytest.mark.parametrize(("text", "number"), [
    ("0", 0), ("007", 7), ("123456789", 123456789), ("1234567890", None), ("", None), ("-1", None), ("+1", None),
    ("1.0", None), ("٩", None), ("²", None), (" 1", None), ("9" * 5000, None),
])
def test_whole_numbers(text: str, number: int | None) -> None:
    assert parse_whole_number(text) == number


def test_more_digits_are_read_where_they_are_allowed() -> None:
    assert parse_whole_number("1234567890", 15) == 1234567890


@given(st.integers(0, 2**62))
def test_a_cursor_comes_back_as_its_place(ordinal: int) -> None:
    cursor = encode_cursor(ordinal)
    assert cursor is not None
    assert decode_cursor(cursor) == ordinal
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")


def test_no_cursor_is_no_place() -> None:
    assert encode_cursor(None) is None
    assert decode_cursor(None) is None


@pytest.mark.parametrize("cursor", [
    "", "x", "12", "bm90IG91cnM", "\x00", "o12", "é", "b3h4", "bzk5OTk5OTk5OTk5OTk5OTk5OTk5", "by0x",
])
def test_what_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="not a cursor"):
        decode_cursor(cursor)


@given(st.text(max_size=20))
def test_any_text_is_taken_or_refused(cursor: str) -> None:
    with suppress(Invalid):
        assert isinstance(decode_cursor(cursor), int)
