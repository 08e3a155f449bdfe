"""Turns the output of a function into valid events: strings become the text of a message."""


import gateway.model as m
from gateway.client import EventWriter
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent, ScopedEvent, Turn


class UnsupportedOutput(BackendFailed):
    """The function emitted something that is neither a string nor an event."""


class ReplyWriter:
    """Strings and events in, events out.

    The first string opens a message, which ends when the function starts another message or asks. If the function has
    a message open, strings become text of that message; if it has a block open, they wait until the block has ended.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn, self._writer = turn, EventWriter(turn)
        self._is_ours = False
        self._block = ""
        self._held: list[str] = []
        self.has_begun = False

    def take(self, item: object) -> list[BackendEvent]:
        """The events for one item of output."""
        if isinstance(item, str):
            return self._write(str.__str__(item))
        if isinstance(item, ScopedEvent):
            return self._pass(item, item.event) if item.scope_id == m.ROOT else self._pass_scoped(item)
        if isinstance(item, m.Event):
            return self._pass(item, item)  # type: ignore[arg-type]  # whether it is a backend's to say, the turn knows
        if isinstance(item, list | tuple):
            return [output for one in item for output in self.take(one)]
        raise UnsupportedOutput(
            f"The agent '{self._turn.agent.name}' sent a value of type {type(item).__name__}; "
            "it may send strings, events, and lists of them."
        )

    def close(self, stop_reason: m.StopReason = m.StopReason.END_TURN) -> list[BackendEvent]:
        """End the message that strings have opened; messages of the function are not ended."""
        if self._held:
            raise m.GrammarError(f"block {self._block} was left open, and another event follows it")
        if self._is_ours:
            self._is_ours = False
            return self._writer.close(stop_reason=stop_reason)
        return self._end_block()

    def call(self, call: m.ToolCall) -> list[BackendEvent]:
        """A call at the end of the message, which is `called` afterwards, so that people can be asked about it."""
        if self._writer.in_message and not self._is_ours:
            raise m.GrammarError(f"message {self._writer.message_id} must be ended before anybody is asked")
        output = [*self._open(), *self._end_block()]
        output += self._writer.call(
            call.name, call.input, origin=call.origin, permission=call.permission, display_name=call.display_name,
            server=call.server,
        )
        return [*output, *self.close(m.StopReason.TOOL_USE)]

    @property
    def called(self) -> m.ToolCall:
        return self._writer.calls[-1]

    @property
    def writer(self) -> EventWriter:
        return self._writer

    # -- strings --------------------------------------------------------------------------------------------------

    def _write(self, text: str) -> list[BackendEvent]:
        if not text:
            return []
        if self._block:
            self._held.append(text)
            return []
        start = [] if self._writer.in_block else [*self._open(), self._writer.start()]
        return [*start, self._writer.delta(text)]

    def _open(self) -> list[BackendEvent]:
        self.has_begun = True
        if self._writer.in_message:
            return []
        self._is_ours = True
        return [self._writer.start_message(model=self._turn.agent.model)]

    def _end_block(self) -> list[BackendEvent]:
        return [self._writer.end()] if self._writer.in_block else []

    # -- events ---------------------------------------------------------------------------------------------------

    def _pass_scoped(self, output: BackendEvent) -> list[BackendEvent]:
        """An event of a sub-agent passes unchanged."""
        self.has_begun = True
        return [output]

    def _pass(self, output: BackendEvent, event: m.Event) -> list[BackendEvent]:
        """The event, after the ends that must come before it."""
        self.has_begun = True
        match event:
            case m.MessageStarted(message_id=message_id):
                ends = self.close()
                self._writer.message_id = message_id
                return [*ends, output]
            case m.MessageEnded():
                ends, self._is_ours = self._end_block(), False
                self._writer.message_id = self._block = ""
                return [*ends, output, *self._write_held()]
            case m.BlockStarted(block_id=block_id):
                ends, self._block = self._end_block(), block_id
                return [*ends, output]
            case m.BlockEnded():
                self._block = ""
                return [output, *self._write_held()]
            case m.MessageAnnotated():
                return [*self._end_block(), output]
            case m.SessionCompacted():
                return [*self.close(), output]
        return [output]

    def _write_held(self) -> list[BackendEvent]:
        """Write the strings that waited for the end of a block."""
        text, self._held = "".join(self._held), []
        return self._write(text)
