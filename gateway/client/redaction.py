"""Removes keys and other secrets from texts of upstream servers."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from gateway.errors import GatewayError
from gateway.ports import RemoteTurnEnd

MIN_SECRET_LENGTH = 6
"""A shorter word is not redacted: it occurs in any text."""
LONG_SECRET_LENGTH = 16
"""A secret of this length is redacted wherever it occurs; a shorter one may be an ordinary word of a response."""
REDACTED = "***"
MAX_QUOTED = 500
"""At most so many characters of a server's error message are quoted."""


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


class Redactor:
    """Removes the secrets that a server was given from what the server sends."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)
        self.long_secrets = long_secrets(self._secrets)

    def message(self, text: str) -> str:
        """An error message without any of the secrets."""
        return redact(text, self._secrets)

    def quote(self, words: object) -> str:
        """The error message of a server in one line, not too long, without any of the secrets."""
        return self.message(" ".join(str(words).split()))[:MAX_QUOTED]

    def body(self, text: str) -> str:
        """A response without the long secrets; a short one may be an ordinary word of the response."""
        for secret in self.long_secrets:
            text = text.replace(secret, REDACTED)
        return text

    def turn_end(self, end: RemoteTurnEnd) -> RemoteTurnEnd:
        """The end of a turn whose fault has no secrets in its message."""
        if end.fault is None:
            return end
        return replace(end, fault=replace(end.fault, message=self.message(end.fault.message)))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the errors of the block without secrets in their messages."""
        try:
            yield
        except GatewayError as error:
            error.message = self.message(error.message)
            error.args = (error.message,)
            raise
