"""A stream assembler that leaves secrets out, in however many pieces a service repeats them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import BackendEvent

from .event_writer import NO_USAGE
from .redaction import MIN_SECRET_LENGTH, REDACTED, long_secrets
from .stream_assembler import StreamAssembler

MIN_MATCH = 4
"""So many letters of a secret make one look twice; fewer are found in any text."""


class _HeldText(Struct):
    """What a block has said last, and what is held back because it may be the beginning of a secret."""

    kind: m.BlockKind
    said: str = ""
    held: str = ""


class RedactingAssembler(StreamAssembler):
    """Words and inputs pass as they come; only what begins like a secret is held until it is known to be none."""

    def __init__(self, mint: Mint, secrets: Iterable[str]) -> None:
        super().__init__(mint)
        self._secrets = long_secrets(secrets)
        self._heads = tuple(secret[:MIN_MATCH] for secret in self._secrets)
        self._tails: dict[object, _HeldText] = {}

    def text_delta(self, key: object, delta: str, kind: m.BlockKind = m.BlockKind.TEXT) -> list[BackendEvent]:
        if not self._heads:
            return super().text_delta(key, delta, kind)
        passed = self._passed(key, delta, kind)
        if key in self._making:
            return super().text_delta(key, passed, kind)
        tail = self._tails.pop(key)  # to begin a block is to end the one that had its key; this is not its tail
        said = super().text_delta(key, passed, kind)
        self._tails[key] = tail
        return said

    def text_deltas(self, key: object, deltas: Sequence[str]) -> list[BackendEvent]:
        if not self._heads:
            return super().text_deltas(key, deltas)
        tail = self._tails.get(key)
        if tail is not None and not tail.held and key in self._making and self._is_first(key):
            text = tail.said + "".join(deltas)
            if not any(head in text for head in self._heads):
                tail.said = text[1 - MIN_MATCH:]
                return super().text_deltas(key, deltas)
        return [event for delta in deltas for event in self.text_delta(key, delta)]

    def input_delta(self, key: object, fragment: str) -> list[BackendEvent]:
        return super().input_delta(key, self._passed(key, fragment, m.BlockKind.TOOL_USE) if self._heads else fragment)

    def end(self, key: object) -> list[BackendEvent]:
        tail = self._tails.pop(key, None)
        if tail is None or not tail.held:
            return super().end(key)
        held = REDACTED if len(tail.held) >= MIN_SECRET_LENGTH else tail.held
        if tail.kind is m.BlockKind.TOOL_USE:
            return [*super().input_delta(key, held), *super().end(key)]
        return [*super().text_delta(key, held, tail.kind), *super().end(key)]

    def finish(
        self, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> list[BackendEvent]:
        held = [event for key in list(self._tails) for event in self.end(key)]
        return [*held, *super().finish(stop_reason, usage, outcome)]

    def _passed(self, key: object, delta: str, kind: m.BlockKind) -> str:
        """As much of the delta, and of what was held before it, as may be said now."""
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _HeldText(kind)
        text = f"{tail.said}{tail.held}{delta}"
        for head in self._heads:
            if head in text:
                return self._looked_at(tail, text)
        start, tail.said, tail.held = len(tail.said), text[1 - MIN_MATCH:], ""
        return text[start:]

    def _looked_at(self, tail: _HeldText, text: str) -> str:
        start = len(tail.said)
        for secret in self._secrets:
            while (at := text.find(secret)) >= 0:
                text = f"{text[:max(at, start)]}{REDACTED}{text[at + len(secret):]}"
        end = max(start, len(text) - self._beginning(text))
        tail.said, tail.held = text[max(0, end - MIN_MATCH + 1):end], text[end:]
        return text[start:end]

    def _beginning(self, text: str) -> int:
        """How many letters at the end of the text are the beginning of a secret."""
        return max((length for secret in self._secrets for length in range(MIN_MATCH, len(secret))
                    if text.endswith(secret[:length])), default=0)
