"""The session as its turns, its recovery and its import see it: a state, a grammar, and a way to append events."""

from collections.abc import Sequence
from typing import Protocol

import gateway.model as m

from .runtime import Runtime


class SessionWriter(Protocol):
    """Appends events to the log of one session."""

    runtime: Runtime
    view: m.SessionView
    grammar: m.Grammar
    stored_seq: int
    changed_seq: int

    def append(self, event: m.AnyEvent, scope_id: str = ..., turn_id: str | None = ...) -> m.Record:
        """Check the event against the grammar, number it, and append it to the log."""
    def append_delta(self, event: m.BlockDelta, turn_id: str) -> None:
        """Append one delta of the agent itself."""
    def append_deltas(self, deltas: Sequence[m.BlockDelta], turn_id: str) -> None:
        """Append several deltas that arrived together."""
    def turn_ended(self, turn_id: str, ended: m.TurnEnded) -> None:
        """The turn has ended, and its last record is appended."""
