"""The wire transcript: everything sent and received in one case, with its time, without its secrets."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

LONGEST = 16_384
REDACTED = "[redacted]"


@dataclass(frozen=True)
class Entry:
    """One thing that crossed the wire, or a remark about it."""

    at: float
    mark: str
    text: str

    def __str__(self) -> str:
        first, *rest = self.text.split("\n")
        return "\n".join([f"{self.at:9.3f} {self.mark} {first}", *(f"{'':9} {self.mark} {line}" for line in rest)])


class Transcript:
    """Entries in the order they happened; secrets are struck out before anything is kept."""

    def __init__(self, secrets: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._spellings = sorted({form for secret in secrets for form in _spellings(secret)}, key=len, reverse=True)
        self._clock = clock
        self._start = clock()
        self.entries: list[Entry] = []

    def sent(self, text: str) -> None:
        self._keep(">", text)

    def received(self, text: str) -> None:
        self._keep("<", text)

    def remark(self, text: str) -> None:
        self._keep("*", text)

    @property
    def has_answer(self) -> bool:
        """Whether anything came back."""
        return any(entry.mark == "<" for entry in self.entries)

    @property
    def last_answer(self) -> str:
        """What came back last; nothing if nothing did."""
        return next((entry.text for entry in reversed(self.entries) if entry.mark == "<"), "")

    def redact(self, text: str) -> str:
        """The text with every secret struck out, and nothing in it that no file could hold."""
        for form in self._spellings:
            text = text.replace(form, REDACTED)
        return text.encode("utf-8", "backslashreplace").decode()  # headers may be any bytes

    def _keep(self, mark: str, text: str) -> None:
        self.entries.append(Entry(self._clock() - self._start, mark, _shortened(self.redact(text))))

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self.entries)


class Incoming:
    """Bytes that arrive in pieces, kept line by line so that a secret cut in two is still struck out."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._rest: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        lines, end, left = piece.rpartition(b"\n")
        if end:
            whole = b"".join([*self._rest, lines])
            self._rest = []
            self._transcript.received("\n".join(_text(line) for line in whole.split(b"\n")))
        if left:
            self._rest.append(left)

    def close(self) -> None:
        if self._rest:
            self._transcript.received(_text(b"".join(self._rest)))
        self._rest = []


def _spellings(secret: str) -> set[str]:
    """The secret as it may appear on the wire: plain, in JSON, in an address."""
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe="")} if secret else set()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST} more characters)"
