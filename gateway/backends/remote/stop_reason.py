"""Why the server's turn ended, told by the message that ended it: a turn here has no other way to say so."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ids import Mint
from gateway.ports import DecodedItem, RemoteTurnEnd, ScopedEvent

ORDINARY_REASONS = (m.StopReason.END_TURN, m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
"""Reasons that say nothing of why a turn ended early."""
INDEPENDENT_EVENTS = (ScopedEvent, m.SessionUpdated, m.NoticePosted, m.CustomEvent, m.FaultRaised)
"""What may be said while the end of a message is still held back."""


async def with_stop_reason(stream: AsyncGenerator[DecodedItem, None], mint: Mint) -> AsyncGenerator[DecodedItem, None]:
    """The stream, in which the agent's last message ends for the reason that its turn ends for.

    Only the end of a message is held back, and only until something follows it; words never are.
    """
    last = StopReasonFilter(mint)
    async with aclosing(stream):
        try:
            async for heard in stream:
                for one in last.hear(heard):
                    yield one
        except GatewayError:
            for one in last.release():
                yield one
            raise
    for one in last.release():
        yield one


class StopReasonFilter:
    """The end of the message that may be the turn's last."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._held: m.MessageEnded | None = None
        self._told = m.StopReason.END_TURN

    def hear(self, heard: DecodedItem) -> list[DecodedItem]:
        if isinstance(heard, RemoteTurnEnd):
            return [*self._amended(heard), heard]
        if isinstance(heard, m.MessageEnded):
            before, self._told = self.release(), heard.stop_reason
            if heard.stop_reason is not m.StopReason.END_TURN or heard.outcome is not m.Outcome.COMPLETED:
                return [*before, heard]
            self._held = heard
            return before
        return [heard] if isinstance(heard, INDEPENDENT_EVENTS) else [*self.release(), heard]

    def release(self) -> list[DecodedItem]:
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _amended(self, ended: RemoteTurnEnd) -> list[DecodedItem]:
        """Where other things came after the last message, one that says nothing else tells the reason."""
        reason = ended.stop_reason
        if ended.outcome is not m.Outcome.COMPLETED or reason in ORDINARY_REASONS or reason is self._told:
            return self.release()
        if self._held is not None:
            return [replace(one, stop_reason=reason) for one in self.release() if isinstance(one, m.MessageEnded)]
        if self._told not in ORDINARY_REASONS:
            return []
        message_id = self._mint("msg")
        return [m.MessageStarted(message_id=message_id, role=m.Role.ASSISTANT),
                m.MessageEnded(message_id=message_id, stop_reason=reason)]
