"""Keys must not come back: an upstream that repeats them is quoted, and heard, without them."""

from collections.abc import Iterable

SHORTEST = 6
"""Shorter words than this are no secrets, and are found in any text."""
UNMISTAKABLE = 16
"""A word this long is a secret wherever it is found; a shorter one may be a word of somebody's answer."""
BLOT = "***"


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret of some length blotted out, a beginning of one at its end included."""
    known = sorted((secret for secret in secrets if len(secret) >= SHORTEST), key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, BLOT)
    for secret in known:
        for length in range(len(secret) - 1, SHORTEST - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length] + BLOT
    return text


def unmistakable(secrets: Iterable[str]) -> tuple[str, ...]:
    """Those that may be blotted out of an answer too, the longest first."""
    return tuple(sorted((secret for secret in secrets if len(secret) >= UNMISTAKABLE), key=len, reverse=True))
