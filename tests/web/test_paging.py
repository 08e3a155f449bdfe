"""Cursors are opaque, and only ours are taken."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.web import cursor_of, ordinal_of


@given(st.integers(0, 2**62))
def test_a_cursor_comes_back_as_its_place(ordinal: int) -> None:
    cursor = cursor_of(ordinal)
    assert cursor is not None
    assert ordinal_of(cursor) == ordinal
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")


def test_no_cursor_is_no_place() -> None:
    assert cursor_of(None) is None
    assert ordinal_of(None) is None


@pytest.mark.parametrize("cursor", [
    "", "x", "12", "bm90IG91cnM", "\x00", "o12", "é", "b3h4", "bzk5OTk5OTk5OTk5OTk5OTk5OTk5", "by0x",
])
def test_what_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="not a cursor"):
        ordinal_of(cursor)


@given(st.text(max_size=20))
def test_any_text_is_taken_or_refused(cursor: str) -> None:
    with suppress(Invalid):
        assert isinstance(ordinal_of(cursor), int)
