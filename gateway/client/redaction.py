"""Removes keys and other secrets from texts of upstream servers, also from texts that arrive in pieces."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
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


MIN_MATCH = 4
"""A text is searched for a secret once it contains so many first characters of it; fewer occur in any text."""


class _Tail(Struct):
    """The end of what a block has passed on, and the text that is held because it may be the beginning of a secret."""

    kind: m.BlockKind
    passed: str = ""
    held: str = ""


class SecretFilter:
    """Filters the deltas of several blocks, each known by its key.

    Deltas pass unchanged; only text that begins like a secret is held until it is known whether it is one.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = long_secrets(secrets)
        self._heads = tuple(secret[:MIN_MATCH] for secret in self._secrets)
        self._tails: dict[Hashable, _Tail] = {}

    @property
    def keys(self) -> list[Hashable]:
        """The keys of the blocks that were filtered and not released."""
        return list(self._tails)

    def feed(self, key: Hashable, delta: str, kind: m.BlockKind) -> str:
        """As much of the delta, and of the text held before it, as may pass now."""
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _Tail(kind)
        text = f"{tail.passed}{tail.held}{delta}"
        for head in self._heads:
            if head in text:
                return self._search(tail, text)
        start, tail.passed, tail.held = len(tail.passed), text[1 - MIN_MATCH:], ""
        return text[start:]

    def passes_all(self, key: Hashable, deltas: Sequence[str]) -> bool:
        """Whether the deltas of a known block pass as they are; then they count as passed."""
        tail = self._tails.get(key)
        if tail is None or tail.held:
            return False
        text = tail.passed + "".join(deltas)
        if any(head in text for head in self._heads):
            return False
        tail.passed = text[1 - MIN_MATCH:]
        return True

    def release(self, key: Hashable) -> tuple[str, m.BlockKind] | None:
        """The block has ended: the text that was held, redacted if it may be a secret; None if no text was held."""
        tail = self._tails.pop(key, None)
        if tail is None or not tail.held:
            return None
        return REDACTED if len(tail.held) >= MIN_SECRET_LENGTH else tail.held, tail.kind

    def _search(self, tail: _Tail, text: str) -> str:
        start = len(tail.passed)
        for secret in self._secrets:
            while (at := text.find(secret)) >= 0:
                text = f"{text[:max(at, start)]}{REDACTED}{text[at + len(secret):]}"
        end = max(start, len(text) - self._begun_length(text))
        tail.passed, tail.held = text[max(0, end - MIN_MATCH + 1):end], text[end:]
        return text[start:end]

    def _begun_length(self, text: str) -> int:
        """How many characters at the end of the text are the beginning of a secret."""
        return max((length for secret in self._secrets for length in range(MIN_MATCH, len(secret))
                    if text.endswith(secret[:length])), default=0)
