"""Lawful events from loose facts: blocks may be in the making side by side, and are told one after the other."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode
from msgspec.structs import replace

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import BackendEvent

from .event_writer import NO_USAGE, EventWriter

BlockKey = Hashable
"""How the teller of the facts knows a block: an index, an id, whatever stays the same."""


@dataclass(frozen=True)
class _MintedIds:
    mint: Mint


class _OpenBlock:
    """A block that has begun and was not told to its end."""

    __slots__ = ("call", "ended", "held", "kind", "said", "signature")

    def __init__(self, kind: m.BlockKind, call: m.ToolCall | None = None) -> None:
        self.kind, self.call = kind, call
        self.held: list[str] = []
        self.said = 0
        self.ended = False
        self.signature: str | None = None


class StreamAssembler:
    """One scope's voice. Every method takes a fact and gives the events to say now, of which there may be none.

    The first block that began is told as it grows; what others gain meanwhile is kept until it has ended. A message is
    begun where none is open. A result is told once, and only of a call that was told.
    """

    def __init__(self, mint: Mint, scope_id: str = m.ROOT) -> None:
        self.writer = EventWriter(_MintedIds(mint), scope_id)
        self.open_calls: dict[str, m.ToolCall] = {}
        """The calls that were made and have not come back, in order."""
        self.broken_calls: list[m.ToolCall] = []
        """The calls of the last message that never became whole."""
        self._making: dict[BlockKey, _OpenBlock] = {}
        self._mint = mint

    # -- messages -------------------------------------------------------------------------------------------------

    def begin(self, *, model: str | None = None, context_window: int | None = None) -> list[BackendEvent]:
        """A new message; one that is open is ended first."""
        ends = self.finish()
        self.broken_calls = []
        return [*ends, self.writer.start_message(model=model, context_window=context_window)]

    def finish(
        self, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED,
    ) -> list[BackendEvent]:
        """The ends of whatever is open; nothing where nothing is."""
        said = [event for key in list(self._making) for event in self.end(key)]
        if self.writer.in_message:
            said.append(self.writer.end_message(stop_reason=stop_reason, usage=usage, outcome=outcome))
        return said

    # -- words ----------------------------------------------------------------------------------------------------

    def text_delta(self, key: BlockKey, delta: str, kind: m.BlockKind = m.BlockKind.TEXT) -> list[BackendEvent]:
        """A text or a thought grows; an empty delta begins nothing."""
        if not delta:
            return []
        return self._grow(key, delta, kind)

    def text_deltas(self, key: BlockKey, deltas: Sequence[str]) -> list[BackendEvent]:
        """A text or a thought in the making grows by several deltas at once."""
        if key in self._making and self._is_first(key):
            self._making[key].said += sum(map(len, deltas))
            return self.writer.deltas([delta for delta in deltas if delta])
        return [event for delta in deltas for event in self.text_delta(key, delta)]

    def text_so_far(self, key: BlockKey, whole: str, kind: m.BlockKind = m.BlockKind.TEXT) -> list[BackendEvent]:
        """A text or a thought is now so long; what was said of it stays said."""
        making = self._making.get(key)
        return self.text_delta(key, whole[making.said if making else 0:], kind)

    def sign(self, key: BlockKey, signature: str) -> list[BackendEvent]:
        """A thought is signed; the signature is told with its end."""
        making = self._making.get(key)
        if making is None:
            said = self._begin(key, _OpenBlock(m.BlockKind.THINKING))
            self._making[key].signature = signature
            return said
        making.signature = (making.signature or "") + signature
        return []

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, key: BlockKey, call: m.ToolCall) -> list[BackendEvent]:
        """A call begins whose input is written by `arguments`; an id that is taken is exchanged for a new one."""
        taken = {making.call.call_id for making in self._making.values() if making.call} | self.open_calls.keys()
        if not call.call_id or call.call_id in taken:
            call = replace(call, call_id=self._mint("call"))
        return self._begin(key, _OpenBlock(m.BlockKind.TOOL_USE, replace(call, input={})))

    def input_delta(self, key: BlockKey, fragment: str) -> list[BackendEvent]:
        """A piece of the JSON of a call's input; nothing happens where no call is in the making under this key."""
        return self._grow(key, fragment, m.BlockKind.TOOL_USE) if fragment and key in self._making else []

    def whole_call(self, key: BlockKey, call: m.ToolCall) -> list[BackendEvent]:
        """A call that came in one piece."""
        said = [*self.call(key, call), *self.input_delta(key, encode(call.input).decode())]
        return [*said, *self.end(key)]

    def status(self, call_id: str, status: m.ToolStatus) -> list[BackendEvent]:
        if call_id not in self.open_calls:
            return []
        return [self.writer.emit(m.ToolStatusChanged(call_id=call_id, status=status))]

    def output(self, call_id: str, delta: str) -> list[BackendEvent]:
        """A piece of what a running tool prints."""
        if call_id not in self.open_calls or not delta:
            return []
        return [self.writer.emit(m.ToolOutput(call_id=call_id, delta=delta))]

    def returned(
        self, call_id: str, content: m.Content = "", *, is_error: bool = False, duration_ms: int | None = None,
        meta: dict[str, Any] | None = None,
    ) -> list[BackendEvent]:
        """A call came back; told once."""
        call = self.open_calls.pop(call_id, None)
        if call is None:
            return []
        return [self.writer.emit(m.ToolReturned(
            call_id=call_id, content=content, is_error=is_error, origin=call.origin, duration_ms=duration_ms,
            meta=meta,
        ))]

    # -- other blocks ---------------------------------------------------------------------------------------------

    def image(self, image: m.ImagePart) -> list[BackendEvent]:
        """A picture; whatever was in the making is ended first."""
        return [*self._between(), *self.writer.image(image.url, image.media_type)]

    def data(self, data: m.DataPart) -> list[BackendEvent]:
        return [*self._between(), *self.writer.data(data.type, data.content, data.call_id)]

    # -- ends -----------------------------------------------------------------------------------------------------

    def end(self, key: BlockKey) -> list[BackendEvent]:
        """A block has all it will have; nothing happens where none has this key."""
        making = self._making.get(key)
        if making is None:
            return []
        making.ended = True
        if self._is_first(key):
            return self._advance()
        # It is told later; whoever uses the key again means another block.
        self._making = {making if one is making else other: one for other, one in self._making.items()}
        return []

    def end_texts(self) -> list[BackendEvent]:
        """Texts and thoughts have all they will have; calls go on."""
        words = [key for key, making in self._making.items() if making.call is None]
        return [event for key in words for event in self.end(key)]

    # -- the order of telling -------------------------------------------------------------------------------------

    def _is_first(self, key: BlockKey) -> bool:
        return next(iter(self._making)) == key

    def _grow(self, key: BlockKey, delta: str, kind: m.BlockKind) -> list[BackendEvent]:
        making = self._making.get(key)
        said: list[BackendEvent] = []
        if making is None:
            making = _OpenBlock(kind)
            said = self._begin(key, making)
        making.said += len(delta)
        if self._is_first(key):
            said.append(self.writer.delta(delta))
        else:
            making.held.append(delta)
        return said

    def _begin(self, key: BlockKey, making: _OpenBlock) -> list[BackendEvent]:
        said = [] if self.writer.in_message else self.begin()
        said += self.end(key)
        self._making[key] = making
        return [*said, self._start(making)] if self._is_first(key) else said

    def _start(self, making: _OpenBlock) -> BackendEvent:
        call = making.call
        if call is None:
            return self.writer.start(making.kind)
        return self.writer.start_call(
            call.name, call_id=call.call_id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )

    def _advance(self) -> list[BackendEvent]:
        """End the first block, and tell what the next ones have had meanwhile, up to one that has not ended."""
        said: list[BackendEvent] = []
        while self._making:
            key, first = next(iter(self._making.items()))
            if not first.ended:
                break
            said.append(self._close(first))
            del self._making[key]
            said += self._take_up()
        return said

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
        said = [] if self.writer.in_message else self.begin()
        return [*said, *(event for key in list(self._making) for event in self.end(key))]
