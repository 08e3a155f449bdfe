"""What a function says becomes lawful events: strings are the text of a message that opens and closes by itself."""

from typing import Any

import gateway.model as m
from gateway.client import EventWriter
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent, ScopedEvent, Turn


class UnsupportedOutput(BackendFailed):
    """The function said something that is neither words nor an event."""


class ReplyWriter:
    """Strings and events in, events out; a message of its own ends where the function begins another, or asks.

    Strings that come while the function has a message open are text of that message; while it has a block open they
    wait until the block has ended.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn, self._pen = turn, EventWriter(turn)
        self._is_ours = False
        self._block = ""
        self._held: list[str] = []
        self.has_begun = False

    def take(self, item: Any) -> list[BackendEvent]:
        """The events that say it."""
        if isinstance(item, str):
            return self._write(str.__str__(item))
        if isinstance(item, ScopedEvent):
            return self._pass(item, item.event) if item.scope_id == m.ROOT else self._beside(item)
        if isinstance(item, m.Event):
            return self._pass(item, item)  # type: ignore[arg-type]  # whether it is a backend's to say, the turn knows
        if isinstance(item, list | tuple):
            return [said for one in item for said in self.take(one)]
        raise UnsupportedOutput(
            f"The agent '{self._turn.agent.name}' said something of type {type(item).__name__}; "
            "it may say strings, events, and lists of them."
        )

    def close(self, stop_reason: m.StopReason = m.StopReason.END_TURN) -> list[BackendEvent]:
        """End what was opened by itself; what the function has opened is the function's to end."""
        if self._held:
            raise m.GrammarError(f"block {self._block} was left open, and more was said after it")
        if self._is_ours:
            self._is_ours = False
            return self._pen.close(stop_reason=stop_reason)
        return self._end_block()

    def call(self, name: str, input: dict[str, Any], permission: m.Permission, title: str | None) -> list[BackendEvent]:
        """A call at the end of the message, for asking somebody about it; `called` is then what to ask about."""
        if self._pen.in_message and not self._is_ours:
            raise m.GrammarError(f"message {self._pen.message_id} must be ended before anybody is asked")
        said = [*self._open(), *self._end_block()]
        said += self._pen.call(name, input, permission=permission, display_name=title)
        return [*said, *self.close(m.StopReason.TOOL_USE)]

    @property
    def called(self) -> m.ToolCall:
        return self._pen.calls[-1]

    @property
    def pen(self) -> EventWriter:
        return self._pen

    # -- strings --------------------------------------------------------------------------------------------------

    def _write(self, text: str) -> list[BackendEvent]:
        if not text:
            return []
        if self._block:
            self._held.append(text)
            return []
        start = [] if self._pen.in_block else [*self._open(), self._pen.start()]
        return [*start, self._pen.delta(text)]

    def _open(self) -> list[BackendEvent]:
        self.has_begun = True
        if self._pen.in_message:
            return []
        self._is_ours = True
        return [self._pen.start_message(model=self._turn.agent.model)]

    def _end_block(self) -> list[BackendEvent]:
        return [self._pen.end()] if self._pen.in_block else []

    # -- events ---------------------------------------------------------------------------------------------------

    def _beside(self, said: BackendEvent) -> list[BackendEvent]:
        """What a sub-agent says is its own affair."""
        self.has_begun = True
        return [said]

    def _pass(self, said: BackendEvent, event: m.Event) -> list[BackendEvent]:
        """The event, after what must have ended before it."""
        self.has_begun = True
        match event:
            case m.MessageStarted(message_id=message_id):
                ends = self.close()
                self._pen.message_id = message_id
                return [*ends, said]
            case m.MessageEnded():
                ends, self._is_ours = self._end_block(), False
                self._pen.message_id = self._block = ""
                return [*ends, said, *self._let_out()]
            case m.BlockStarted(block_id=block_id):
                ends, self._block = self._end_block(), block_id
                return [*ends, said]
            case m.BlockEnded():
                self._block = ""
                return [said, *self._let_out()]
            case m.MessageAnnotated():
                return [*self._end_block(), said]
            case m.SessionCompacted():
                return [*self.close(), said]
        return [said]

    def _let_out(self) -> list[BackendEvent]:
        """The strings that waited for the end of a block."""
        text, self._held = "".join(self._held), []
        return self._write(text)
