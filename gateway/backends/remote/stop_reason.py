"""The stop reason of the server's turn, as the stop reason of the last message."""

from collections.abc import Sequence

from msgspec.structs import replace

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import DecodedItem, RemoteTurnEnd, ScopedEvent

ORDINARY_REASONS = (m.StopReason.END_TURN, m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
"""Reasons that do not say why a turn ended early."""
INDEPENDENT_EVENTS = (ScopedEvent, m.SessionUpdated, m.NoticePosted, m.CustomEvent, m.FaultRaised)
"""Events that may pass while the end of a message is held."""


class StopReasonFilter:
    """Holds the end of a message that may be the turn's last, until it is known why the turn ends.

    A backend has no other way to report the stop reason of a turn. Only the end of a message is held, and only until
    something follows it; text never is.
    """

    is_holding = False  # an end is not urgent: something always follows it

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._held: m.MessageEnded | None = None
        self._last_reason = m.StopReason.END_TURN

    def feed(self, items: Sequence[DecodedItem]) -> list[DecodedItem]:
        passed: list[DecodedItem] = []
        for item in items:
            if isinstance(item, RemoteTurnEnd):
                passed += [*self._amended(item), item]
            elif isinstance(item, m.MessageEnded):
                passed += self.release()
                self._last_reason = item.stop_reason
                if item.stop_reason is m.StopReason.END_TURN and item.outcome is m.Outcome.COMPLETED:
                    self._held = item
                else:
                    passed.append(item)
            else:
                if self._held is not None and not isinstance(item, INDEPENDENT_EVENTS):
                    passed += self.release()
                passed.append(item)
        return passed

    def release(self) -> list[DecodedItem]:
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _amended(self, end: RemoteTurnEnd) -> list[DecodedItem]:
        """The held end with the turn's reason; if the last message has ended already, an empty one with the reason."""
        reason, held = end.stop_reason, self._held
        if end.outcome is not m.Outcome.COMPLETED or reason in ORDINARY_REASONS or reason is self._last_reason:
            return self.release()
        if held is not None:
            self._held = None
            return [replace(held, stop_reason=reason)]
        if self._last_reason not in ORDINARY_REASONS:
            return []
        message_id = self._mint("msg")
        return [m.MessageStarted(message_id=message_id, role=m.Role.ASSISTANT),
                m.MessageEnded(message_id=message_id, stop_reason=reason)]
