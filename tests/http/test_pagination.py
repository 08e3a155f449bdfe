"""Cursors are opaque, and only ours are taken."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.http import decode_cursor, encode_cursor


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
