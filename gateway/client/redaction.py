"""Keys must not come back: an upstream that repeats them is quoted, and heard, without them."""

from collections.abc import Iterable

MIN_SECRET_LENGTH = 6
"""Shorter words than this are no secrets, and are found in any text."""
LONG_SECRET_LENGTH = 16
"""A word this long is a secret wherever it is found; a shorter one may be a word of somebody's answer."""
REDACTED = "***"


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret of some length blotted out, a beginning of one at its end included."""
    known = sorted((secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, REDACTED)
    for secret in known:
        for length in range(len(secret) - 1, MIN_SECRET_LENGTH - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length] + REDACTED
    return text


def long_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    """Those that may be blotted out of an answer too, the longest first."""
    return tuple(sorted((secret for secret in secrets if len(secret) >= LONG_SECRET_LENGTH), key=len, reverse=True))
