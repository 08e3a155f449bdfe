"""What an upstream says when it fails: how long to wait, why, and in which words."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


def seconds_of(wait: str) -> int | None:
    """What a Retry-After asks for: seconds, or a date; nothing where it is neither."""
    if wait.isascii() and wait.isdigit():
        return int(wait[:9])
    try:
        when = parsedate_to_datetime(wait)
    except (ValueError, OverflowError):
        return None
    left = when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)
    return max(0, round(left.total_seconds()))


def reason_of(error: Exception) -> str:
    """Why, in the words of the operating system where there are any."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    return getattr(inner, "strerror", None) or getattr(inner, "verify_message", None) or type(inner).__name__


def words_of(body: Any) -> str:
    """The message of a failure, wherever the usual places have it."""
    for _ in range(3):
        if isinstance(body, str):
            return body
        if not isinstance(body, dict):
            return ""
        body = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
    return body if isinstance(body, str) else ""
