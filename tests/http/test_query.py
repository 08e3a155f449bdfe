"""Values of query strings and paths are read strictly."""

import pytest

from gateway.http import parse_whole_number


@pytest.mark.parametrize(("given", "number"), [
    ("0", 0), ("007", 7), ("123456789", 123456789), ("1234567890", None), ("", None), ("-1", None), ("+1", None),
    ("1.0", None), ("٩", None), ("²", None), (" 1", None), ("9" * 5000, None),
])
def test_whole_numbers(given: str, number: int | None) -> None:
    assert parse_whole_number(given) == number


def test_more_digits_are_read_where_they_are_allowed() -> None:
    assert parse_whole_number("1234567890", 15) == 1234567890
