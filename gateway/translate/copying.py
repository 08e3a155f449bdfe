"""Records that were records before: checked, passed on, and ended where they were cut off."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from gateway.engine import missing_ends
from gateway.model import ROOT, Grammar, Outcome, Record, StopReason, Turn, TurnEnded


class Copy:
    """One session; a turn that was in the middle is closed as an interrupted one."""

    def __init__(self) -> None:
        self._grammar = Grammar()
        self._last: Record | None = None

    @property
    def session_id(self) -> str:
        return self._last.session_id if self._last is not None else ""

    @property
    def runs(self) -> bool:
        return self._grammar.turn is Turn.RUNNING

    def take(self, record: Record) -> Iterator[Record]:
        self._grammar.check(record.event, record.scope_id)
        self._last = record
        yield record

    def rest(self) -> Iterator[Record]:
        """Nothing is held back."""
        yield from ()

    def end(self, at: float) -> Iterator[Record]:
        """The ends of what is open, at the time of the last record."""
        if not self.runs:
            return
        for scope_id, event in missing_ends(self._grammar, Outcome.INTERRUPTED, StopReason.INTERRUPTED):
            yield self._next(event, scope_id)
        yield self._next(TurnEnded(outcome=Outcome.INTERRUPTED, stop_reason=StopReason.INTERRUPTED))

    def _next(self, event: Any, scope_id: str = ROOT) -> Record:
        assert self._last is not None, "something was open"
        self._grammar.check(event, scope_id)
        self._last = replace(self._last, seq=self._last.seq + 1, event=event, scope_id=scope_id)
        return self._last
