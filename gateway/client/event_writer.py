"""The event writer of a backend: it mints ids, tracks what is open, and ends every block with its whole content."""

import time
import warnings
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import msgspec

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import BackendEvent, BackendOutput, Clock, ScopedEvent

BackendEvents = AsyncGenerator[BackendEvent, None]
"""The events of a backend."""
BackendOutputs = AsyncGenerator[BackendOutput, None]
"""The events of a backend; events that arrived together may come as one list."""

INPUT_FRAGMENT_LENGTH = 24
"""A call's input is written in deltas of so many characters."""

NO_USAGE = m.Usage()


class IdSource(Protocol):
    """Mints ids; a turn is an id source."""

    def mint(self, prefix: str) -> str: ...


def events_of(output: BackendOutput) -> Sequence[BackendEvent]:
    """The events of one output, which is an event or a list of events."""
    return output if isinstance(output, list) else (output,)


class EventWriter:
    """Writes the events of one scope: every method returns events to yield, or raises `GrammarError`."""

    __slots__ = ("_block_id", "_call", "_clock", "_deltas", "_kind", "_since", "_turn",
                 "calls", "message_id", "scope_id", "texts")

    def __init__(self, turn: IdSource, scope_id: str = m.ROOT, *, clock: Clock = time.monotonic) -> None:
        self.scope_id = scope_id
        self.message_id = ""
        self.calls: list[m.ToolCall] = []
        """The calls of the last message, in order, without torn ones."""
        self.texts: list[tuple[m.BlockKind, str]] = []
        """The text and thinking blocks of the last message."""
        self._turn, self._clock, self._since = turn, clock, 0.0
        self._block_id, self._kind = "", m.BlockKind.TEXT
        self._call: m.ToolCall | None = None
        self._deltas: list[str] = []

    @property
    def in_message(self) -> bool:
        return bool(self.message_id)

    @property
    def in_block(self) -> bool:
        return bool(self._block_id)

    def emit(self, event: m.AnyEvent) -> BackendEvent:
        """Any event, in the scope of this writer."""
        return event if self.scope_id == m.ROOT else ScopedEvent(self.scope_id, event)

    def say(self, event: m.AnyEvent) -> BackendEvent:
        """The old name of `emit`, for classes of users."""
        warnings.warn("EventWriter.say is called emit now; the old name will be removed", FutureWarning, 2)
        return self.emit(event)

    # -- messages -------------------------------------------------------------------------------------------------

    def start_message(
        self, *, model: str | None = None, context_window: int | None = None, role: m.Role = m.Role.ASSISTANT,
    ) -> BackendEvent:
        if self.message_id:
            raise m.GrammarError(f"message {self.message_id} is still open")
        self.message_id, self._since = self._turn.mint("msg"), self._clock()
        self.calls, self.texts = [], []
        return self.emit(m.MessageStarted(
            message_id=self.message_id, role=role, model=model, context_window=context_window,
        ))

    def annotate(self, topic: m.AnnotationTopic, content: Any) -> BackendEvent:
        self._between_blocks()
        return self.emit(m.MessageAnnotated(message_id=self.message_id, topic=topic, content=content))

    def end_message(
        self, *, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> BackendEvent:
        self._between_blocks()
        message_id, self.message_id = self.message_id, ""
        duration = max(0, round((self._clock() - self._since) * 1000))
        return self.emit(m.MessageEnded(
            message_id=message_id, outcome=outcome, stop_reason=stop_reason, usage=usage, duration_ms=duration,
        ))

    def close(
        self, *, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE
    ) -> list[BackendEvent]:
        """End the open block and the open message, if any."""
        ends = [self.end()] if self._block_id else []
        return [*ends, self.end_message(stop_reason=stop_reason, usage=usage)] if self.message_id else ends

    # -- blocks in deltas -----------------------------------------------------------------------------------------

    def start(self, kind: m.BlockKind = m.BlockKind.TEXT) -> BackendEvent:
        if kind is not m.BlockKind.TEXT and kind is not m.BlockKind.THINKING:
            raise m.GrammarError(f"a block of {kind} is not written by start()")
        return self._start(kind)

    def start_call(
        self, name: str, *, call_id: str | None = None, origin: m.ToolOrigin = m.ToolOrigin.BUILTIN,
        permission: m.Permission = m.Permission.ALLOW, display_name: str | None = None, server: str | None = None,
    ) -> BackendEvent:
        """Start a call; the deltas that follow are the JSON of its input."""
        return self._start(m.BlockKind.TOOL_USE, m.ToolCall(
            call_id=call_id or self._turn.mint("call"), name=name, origin=origin, permission=permission,
            display_name=display_name, server=server,
        ))

    def delta(self, text: str) -> BackendEvent:
        if not self._block_id:
            raise m.GrammarError("a delta needs an open block")
        self._deltas.append(text)
        event = m.BlockDelta(block_id=self._block_id, message_id=self.message_id, kind=self._kind, delta=text)
        return event if self.scope_id == m.ROOT else ScopedEvent(self.scope_id, event)

    def deltas(self, texts: Sequence[str]) -> list[BackendEvent]:
        """Append several deltas that arrived in one read."""
        if not self._block_id:
            raise m.GrammarError("a delta needs an open block")
        self._deltas += texts
        block_id, message_id, kind, scope_id = self._block_id, self.message_id, self._kind, self.scope_id
        events = [m.BlockDelta(block_id=block_id, message_id=message_id, kind=kind, delta=text) for text in texts]
        return list(events) if scope_id == m.ROOT else [ScopedEvent(scope_id, event) for event in events]

    def end(self, *, signature: str | None = None) -> BackendEvent:
        """End the block with all its deltas; a call whose input is no JSON object ends as torn."""
        if not self._block_id:
            raise m.GrammarError("there is no block to end")
        received = "".join(self._deltas)
        if self._call is not None:
            return self._end_call(received, self._call)
        self.texts.append((self._kind, received))
        return self._end(text=received, signature=signature)

    # -- whole blocks ---------------------------------------------------------------------------------------------

    def text(self, whole: str) -> list[BackendEvent]:
        return [self.start(), self.delta(whole), self.end()]

    def think(self, whole: str, signature: str | None = None) -> list[BackendEvent]:
        return [self.start(m.BlockKind.THINKING), self.delta(whole), self.end(signature=signature)]

    def call(
        self, name: str, input: JsonObject | None = None, *, call_id: str | None = None,
        origin: m.ToolOrigin = m.ToolOrigin.BUILTIN, permission: m.Permission = m.Permission.ALLOW,
        display_name: str | None = None, server: str | None = None,
    ) -> list[BackendEvent]:
        """A whole call, which is `calls[-1]` afterwards."""
        start = self.start_call(
            name, call_id=call_id, origin=origin, permission=permission, display_name=display_name, server=server,
        )
        json = msgspec.json.encode(input or {}).decode()
        pieces = [self.delta(json[at:at + INPUT_FRAGMENT_LENGTH]) for at in range(0, len(json), INPUT_FRAGMENT_LENGTH)]
        return [start, *pieces, self.end()]

    def image(self, url: str, media_type: str | None = None) -> list[BackendEvent]:
        return [self._start(m.BlockKind.IMAGE), self._end(image=m.ImagePart(url=url, media_type=media_type))]

    def data(self, type: str, content: JsonValue = None, call_id: str | None = None) -> list[BackendEvent]:
        return [self._start(m.BlockKind.DATA), self._end(data=m.DataPart(type=type, content=content, call_id=call_id))]

    # -- state ----------------------------------------------------------------------------------------------------

    def _between_blocks(self) -> None:
        if not self.message_id:
            raise m.GrammarError("no message is open")
        if self._block_id:
            raise m.GrammarError(f"block {self._block_id} is still open")

    def _start(self, kind: m.BlockKind, call: m.ToolCall | None = None) -> BackendEvent:
        self._between_blocks()
        self._block_id, self._kind, self._call, self._deltas = self._turn.mint("blk"), kind, call, []
        return self.emit(m.BlockStarted(block_id=self._block_id, message_id=self.message_id, kind=kind, call=call))

    def _end_call(self, received: str, call: m.ToolCall) -> BackendEvent:
        try:
            whole = msgspec.structs.replace(call, input=msgspec.json.decode(received or "{}", type=JsonObject))
        except (msgspec.DecodeError, RecursionError):
            return self._end(call=call, torn=True)
        self.calls.append(whole)
        return self._end(call=whole)

    def _end(self, **whole: Any) -> BackendEvent:
        block_id, self._block_id, self._call = self._block_id, "", None
        return self.emit(m.BlockEnded(block_id=block_id, message_id=self.message_id, kind=self._kind, **whole))
