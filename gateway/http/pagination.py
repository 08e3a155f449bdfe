"""Cursors of lists: opaque to clients; inside, a position in the order of creation."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from gateway.errors import Invalid

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
