"""Reads values of query strings: whole numbers, and cursors of lists, which are opaque to clients."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from gateway.errors import Invalid


def parse_whole_number(given: str, max_digits: int = 9) -> int | None:
    """The number that these ASCII digits are; None for anything else, and for more digits than allowed."""
    return int(given) if given.isascii() and given.isdigit() and len(given) <= max_digits else None


MAX_ORDINAL = 2**63 - 1
"""The largest position that every log supports."""


def encode_cursor(ordinal: int | None) -> str | None:
    return None if ordinal is None else urlsafe_b64encode(f"o{ordinal}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> int | None:
    """Return the position of a cursor; raises an error if the cursor is not ours."""
    if cursor is None:
        return None
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        if not text.startswith("o") or not 0 <= int(text[1:]) <= MAX_ORDINAL:
            raise ValueError(text)
        return int(text[1:])
    except ValueError:
        raise Invalid(f"'{cursor}' is not a cursor of this list") from None
