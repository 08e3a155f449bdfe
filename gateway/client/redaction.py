"""Removes keys and other secrets from texts of upstream servers."""

from collections.abc import Iterable

MIN_SECRET_LENGTH = 6
"""A shorter word is not redacted: it occurs in any text."""
LONG_SECRET_LENGTH = 16
"""A secret of this length is redacted wherever it occurs; a shorter one may be an ordinary word of a response."""
REDACTED = "***"


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets, and without the beginning of a secret at its end."""
    known = sorted((secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, REDACTED)
    for secret in known:
        for length in range(len(secret) - 1, MIN_SECRET_LENGTH - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length] + REDACTED
    return text


def long_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets that may be removed from responses, too; the longest first."""
    return tuple(sorted((secret for secret in secrets if len(secret) >= LONG_SECRET_LENGTH), key=len, reverse=True))
