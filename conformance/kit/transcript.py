"""The wire transcript: everything sent and received in one case, with its time, without its secrets."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from conformance.kit.secrets import Redactor

LONGEST = 16_384


@dataclass(frozen=True)
class Entry:
    """One thing that crossed the wire, or a remark about it."""

    at: float
    mark: str
    text: str
    is_shared: bool = False
    """Whether it passed once, for several cases, and is shown in the transcript of each."""

    def __str__(self) -> str:
        return f"{self.at:9.3f} {self.mark} " + self.text.replace("\n", f"\n{'':9} {self.mark} ")


class Transcript:
    """Entries in the order they happened; secrets are struck out before anything is kept."""

    def __init__(self, redactor: Redactor | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._redactor = redactor or Redactor()
        self._clock = clock
        self._start = clock()
        self.entries: list[Entry] = []
        self.returned: list[str] = []
        """The secrets that were first seen in an answer."""
        self.left: list[str] = []
        """What the case has made and could not delete."""
        self.bodiless = 0
        """How many answers were heads whose bodies never came."""

    def sent(self, text: str) -> None:
        self._keep(">", self._redactor.text(text, is_sent=True))

    def sent_request(self, first: str, headers: Mapping[str, str], body: str | None = None) -> None:
        self._keep(">", self._redactor.message(first, headers.items(), body, is_sent=True))

    def received(self, text: str) -> None:
        before = self._redactor.count
        self._keep("<", self._redactor.text(text))
        self._note_news(before)

    def received_head(self, first: str, headers: Iterable[tuple[str, str]]) -> None:
        before = self._redactor.count
        self._keep("<", self._redactor.message(first, headers, None) + "\n")
        self._note_news(before)

    def remark(self, text: str) -> None:
        self._keep("*", self.redact(text))

    def show_shared(self, what: str, entries: Iterable[Entry]) -> None:
        """Show what passed once for several cases; the times are those of that exchange."""
        self.remark(f"observed once, for several cases: {what}")
        self.entries += [replace(entry, is_shared=True) for entry in entries]
        self.remark(f"observed: {what}")

    @property
    def has_shared(self) -> bool:
        """Whether it shows what passed once for several cases."""
        return any(entry.is_shared for entry in self.entries)

    @property
    def has_answer(self) -> bool:
        """Whether anything came back that is more than the head of an answer without its body."""
        return sum(entry.mark == "<" for entry in self.entries) > self.bodiless

    def count(self, pattern: re.Pattern[str]) -> int:
        """How many of the things that were sent match; what is shown for several cases counts where it passed."""
        sent = (entry for entry in self.entries if entry.mark == ">" and not entry.is_shared)
        return sum(pattern.search(entry.text) is not None for entry in sent)

    @property
    def last_answer(self) -> str:
        """What came back last; nothing if nothing did."""
        return next((entry.text for entry in reversed(self.entries) if entry.mark == "<"), "")

    def redact(self, text: str) -> str:
        """The text with every secret struck out, also one that was cut in two, and nothing that no file could hold."""
        return _storable(self._redactor.shown(text))

    def _note_news(self, before: int) -> None:
        """Note which secrets the server itself gave away."""
        if self._redactor.count > before:
            self.returned += self._redactor.learned[before:]

    def _keep(self, mark: str, text: str) -> None:
        self.entries.append(Entry(self._clock() - self._start, mark, _shortened(_storable(text))))

    def __str__(self) -> str:
        return self._redactor.again("\n".join(str(entry) for entry in self.entries))


class Incoming:
    """Bytes that arrive in pieces, kept by lines or as a whole, so that a secret cut in two is still struck out."""

    def __init__(self, transcript: Transcript, *, is_whole: bool = False) -> None:
        self._transcript = transcript
        self._is_whole = is_whole
        self._rest: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        lines, end, left = piece.rpartition(b"\n") if not self._is_whole else (b"", b"", piece)
        if end:
            whole = b"".join([*self._rest, lines])
            self._rest = []
            self._transcript.received("\n".join(_text(line) for line in whole.split(b"\n")))
        if left:
            self._rest.append(left)

    def close(self) -> None:
        if self._rest:
            self._transcript.received("\n".join(_text(line) for line in b"".join(self._rest).split(b"\n")))
        self._rest = []


def _storable(text: str) -> str:
    """The text in letters that a file can hold: headers may be any bytes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST} more characters)"
