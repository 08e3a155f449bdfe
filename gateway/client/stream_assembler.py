"""Assembles a valid event stream from deltas of blocks that may grow in parallel."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from msgspec.json import encode
from msgspec.structs import replace

import gateway.model as m
from gateway.ids import Mint
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .event_writer import NO_USAGE, EventWriter
from .redaction import SecretFilter

BlockKey = Hashable
"""How the caller identifies a block: an index, an id, or anything else that stays the same."""


@dataclass(frozen=True)
class _MintedIds:
    mint: Mint


class _OpenBlock:
    """A block whose end was not emitted yet."""

    __slots__ = ("call", "ended", "held", "kind", "signature")

    def __init__(self, kind: m.BlockKind, call: m.ToolCall | None = None) -> None:
        self.kind, self.call = kind, call
        self.held: list[str] = []
        self.ended = False
        self.signature: str | None = None


class StreamAssembler:
    """Makes the events of one scope. Every method takes one fact and returns the events to emit now, if any.

    The block that began first is emitted as it grows; deltas of other blocks are held until it has ended. A message
    starts if none is open. A result is emitted once, and only for a call that was emitted. With a `secret_filter`, no
    delta contains a secret.
    """

    def __init__(
        self, mint: Mint, scope_id: str = m.ROOT, *, secret_filter: SecretFilter | None = None
    ) -> None:
        self.writer = EventWriter(_MintedIds(mint), scope_id)
        self.open_calls: dict[str, m.ToolCall] = {}
        """The calls without a result, in order."""
        self.broken_calls: list[m.ToolCall] = []
        """The calls of the last message whose input is no valid JSON object."""
        self._making: dict[BlockKey, _OpenBlock] = {}
        self._mint, self._secret_filter = mint, secret_filter

    # -- messages -------------------------------------------------------------------------------------------------

    def begin(self, *, model: str | None = None, context_window: int | None = None) -> list[BackendEvent]:
        """Start a message; an open message is ended first."""
        ends = self.finish()
        self.broken_calls = []
        return [*ends, self.writer.start_message(model=model, context_window=context_window)]

    def finish(
        self, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> list[BackendEvent]:
        """End all that is open."""
        events = [event for key in self._secret_filter.keys for event in self.end(key)] if self._secret_filter else []
        events += [event for key in list(self._making) for event in self.end(key)]
        if self.writer.in_message:
            events.append(self.writer.end_message(stop_reason=stop_reason, usage=usage, outcome=outcome))
        return events

    # -- words ----------------------------------------------------------------------------------------------------

    def text_delta(self, key: BlockKey, delta: str, kind: m.BlockKind = m.BlockKind.TEXT) -> list[BackendEvent]:
        """Append to a block of text or thinking; an empty delta starts no block."""
        if self._secret_filter is not None:
            delta = self._secret_filter.feed(key, delta, kind)
        return self._grow(key, delta, kind) if delta else []

    def text_deltas(self, key: BlockKey, deltas: Sequence[str]) -> list[BackendEvent]:
        """Append several deltas that arrived in one read."""
        passes = self._secret_filter is None or self._secret_filter.passes_all(key, deltas)
        if passes and key in self._making and self._is_first(key):
            return self.writer.deltas([delta for delta in deltas if delta])
        if passes:
            return [event for delta in deltas if delta for event in self._grow(key, delta, m.BlockKind.TEXT)]
        return [event for delta in deltas for event in self.text_delta(key, delta)]

    def sign(self, key: BlockKey, signature: str) -> list[BackendEvent]:
        """Add a piece of a thinking block's signature, which is emitted with the end of the block."""
        making = self._making.get(key)
        if making is None:
            events = [*self.end(key), *self._begin(key, _OpenBlock(m.BlockKind.THINKING))]
            self._making[key].signature = signature
            return events
        making.signature = (making.signature or "") + signature
        return []

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, key: BlockKey, call: m.ToolCall) -> list[BackendEvent]:
        """Start a call whose input follows as `input_delta`s; an id that is in use is replaced by a new one."""
        taken = {making.call.call_id for making in self._making.values() if making.call} | self.open_calls.keys()
        if not call.call_id or call.call_id in taken:
            call = replace(call, call_id=self._mint("call"))
        ended = self.end(key)
        return [*ended, *self._begin(key, _OpenBlock(m.BlockKind.TOOL_USE, replace(call, input={})))]

    def input_delta(self, key: BlockKey, fragment: str) -> list[BackendEvent]:
        """Append to the JSON of a call's input; ignored if no block has this key."""
        if key not in self._making:
            return []
        if self._secret_filter is not None:
            fragment = self._secret_filter.feed(key, fragment, m.BlockKind.TOOL_USE)
        return self._grow(key, fragment, m.BlockKind.TOOL_USE) if fragment else []

    def whole_call(self, key: BlockKey, call: m.ToolCall) -> list[BackendEvent]:
        """A call whose input is known."""
        events = [*self.call(key, call), *self.input_delta(key, encode(call.input).decode())]
        return [*events, *self.end(key)]

    def status(self, call_id: str, status: m.ToolStatus) -> list[BackendEvent]:
        if call_id not in self.open_calls:
            return []
        return [self.writer.emit(m.ToolStatusChanged(call_id=call_id, status=status))]

    def output(self, call_id: str, delta: str) -> list[BackendEvent]:
        """Output of a running tool."""
        if call_id not in self.open_calls or not delta:
            return []
        return [self.writer.emit(m.ToolOutput(call_id=call_id, delta=delta))]

    def returned(
        self, call_id: str, content: m.Content = "", *, is_error: bool = False, duration_ms: int | None = None,
        meta: JsonObject | None = None,
    ) -> list[BackendEvent]:
        """The result of a call; ignored if the call is not open."""
        call = self.open_calls.pop(call_id, None)
        if call is None:
            return []
        return [self.writer.emit(m.ToolReturned(
            call_id=call_id, content=content, is_error=is_error, origin=call.origin, duration_ms=duration_ms,
            meta=meta,
        ))]

    # -- other blocks ---------------------------------------------------------------------------------------------

    def image(self, image: m.ImagePart) -> list[BackendEvent]:
        """An image; all open blocks are ended first."""
        return [*self._between(), *self.writer.image(image.url, image.media_type)]

    def data(self, data: m.DataPart) -> list[BackendEvent]:
        return [*self._between(), *self.writer.data(data.type, data.content, data.call_id)]

    # -- ends -----------------------------------------------------------------------------------------------------

    def end(self, key: BlockKey) -> list[BackendEvent]:
        """The block is complete; ignored if no block has this key."""
        released = self._secret_filter.release(key) if self._secret_filter is not None else None
        events = self._grow(key, *released) if released and self._may_grow(key, released[1]) else []
        making = self._making.get(key)
        if making is None:
            return events
        making.ended = True
        if self._is_first(key):
            return [*events, *self._advance()]
        # The end is emitted later; from now on the key stands for another block.
        self._making = {making if one is making else other: one for other, one in self._making.items()}
        return events

    def _may_grow(self, key: BlockKey, kind: m.BlockKind) -> bool:
        return kind is not m.BlockKind.TOOL_USE or key in self._making

    def end_texts(self) -> list[BackendEvent]:
        """End all blocks of text and thinking; calls stay open."""
        texts = [key for key, making in self._making.items() if making.call is None]
        return [event for key in texts for event in self.end(key)]

    # -- the order of blocks --------------------------------------------------------------------------------------

    def _is_first(self, key: BlockKey) -> bool:
        return next(iter(self._making)) == key

    def _grow(self, key: BlockKey, delta: str, kind: m.BlockKind) -> list[BackendEvent]:
        making = self._making.get(key)
        events: list[BackendEvent] = []
        if making is None:
            making = _OpenBlock(kind)
            events = self._begin(key, making)
        if self._is_first(key):
            events.append(self.writer.delta(delta))
        else:
            making.held.append(delta)
        return events

    def _begin(self, key: BlockKey, making: _OpenBlock) -> list[BackendEvent]:
        events = [] if self.writer.in_message else self.begin()
        self._making[key] = making
        return [*events, self._start(making)] if self._is_first(key) else events

    def _start(self, making: _OpenBlock) -> BackendEvent:
        call = making.call
        if call is None:
            return self.writer.start(making.kind)
        return self.writer.start_call(
            call.name, call_id=call.call_id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )

    def _advance(self) -> list[BackendEvent]:
        """End the first block and emit the held deltas of the next ones, up to a block that has not ended."""
        events: list[BackendEvent] = []
        while self._making:
            key, first = next(iter(self._making.items()))
            if not first.ended:
                break
            events.append(self._close(first))
            del self._making[key]
            events += self._take_up()
        return events

    def _take_up(self) -> list[BackendEvent]:
        for making in self._making.values():
            held, making.held = "".join(making.held), []
            return [self._start(making), *([self.writer.delta(held)] if held else [])]
        return []

    def _close(self, making: _OpenBlock) -> BackendEvent:
        before = len(self.writer.calls)
        event = self.writer.end(signature=making.signature)
        if making.call is not None:
            if len(self.writer.calls) > before:
                self.open_calls[making.call.call_id] = self.writer.calls[-1]
            else:
                self.broken_calls.append(making.call)
        return event

    def _between(self) -> list[BackendEvent]:
        events = [] if self.writer.in_message else self.begin()
        return [*events, *(event for key in list(self._making) for event in self.end(key))]
