"""An answer of a chat-completions service, chunk by chunk; lenient with what local servers leave out."""

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog

from gateway.backends.loop_faults import fault_of
from gateway.backends.loop_tools import Toolbox
from gateway.errors import BackendFailed
from gateway.model import BlockKind, StopReason, Usage
from gateway.ports import Said
from gateway.speech import Scribe
from gateway.upstream import SseEvent, Upstream, mended

from .calls import Calls, OpenCall
from .chunks import NOTHING, CallPiece, Choice, Chunk, Delta, decoded, only_words, usage_of

log = structlog.get_logger("dragoman.model")

DONE = "[DONE]"
STOPS = {
    "stop": StopReason.END_TURN, "eos": StopReason.END_TURN, "end_turn": StopReason.END_TURN,
    "tool_calls": StopReason.TOOL_USE, "function_call": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL,
}
BROKEN = "error"
"""The finish reason of an answer that broke, at services that tell no more of it."""


class ChatReading:
    """See `gateway.backends.loop_service.Reading`."""

    def __init__(self, scribe: Scribe, toolbox: Toolbox, call_ids: set[str], upstream: Upstream) -> None:
        self.stop, self.usage = StopReason.END_TURN, Usage()
        self.called = self.paused = self.finished = self.over = False
        self._scribe, self._toolbox, self._call_ids, self._upstream = scribe, toolbox, call_ids, upstream
        self._voice = ""
        self._begun = self._refused = False
        self._calls = Calls()

    def hear(self, events: Sequence[SseEvent], said: list[Said]) -> None:
        words = list[str]()
        try:
            for event in events:
                if self.finished:
                    self._hear_after(event)
                    continue
                if event.data == DONE:
                    self._end()
                    continue
                chunk = self._chunk(event.data)
                if self._voice and (more := only_words(chunk, self._voice)) is not None:
                    words.append(more)  # nine chunks of ten
                    continue
                if words:
                    said += self._scribe.more(self._voice, words)
                    words = []
                said += self._take(chunk)
        finally:
            if words:
                said += self._scribe.more(self._voice, words)

    def _end(self) -> None:
        if not self._begun:
            raise BackendFailed(f"{self._upstream.name} ended its answer before it had begun it")
        self.finished = self.over = True

    def _take(self, chunk: Chunk) -> Sequence[Said]:
        if chunk.usage is not None:
            self.usage = usage_of(chunk.usage)
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        if choice.index:
            return ()
        self._begun = True
        delta = choice.delta or choice.message
        said = self._delta(delta) if delta is not None else ()
        if choice.finish_reason:
            self._finish(choice.finish_reason, choice)
        return said

    def _hear_after(self, event: SseEvent) -> None:
        if event.data == DONE:
            self.over = True
        elif not self.over and (cost := self._chunk(event.data).usage) is not None:
            self.usage = usage_of(cost)

    def _chunk(self, data: str) -> Chunk:
        try:
            chunk = decoded(data)
        except (msgspec.DecodeError, RecursionError):
            if not data.strip():
                return NOTHING  # an event without words, which some send to keep the line open
            if (whole := mended(data)) != data:
                return self._chunk(whole)
            raise BackendFailed(f"{self._upstream.name} sent a chunk that cannot be read") from None
        if chunk.error:
            raise fault_of(chunk.error, self._upstream)
        return chunk

    def _finish(self, reason: str, choice: Choice) -> None:
        if reason == BROKEN or choice.error:
            raise fault_of(choice.error, self._upstream)
        if choice.usage is not None:
            self.usage = usage_of(choice.usage)
        self.finished = True
        stop = STOPS.get(reason)
        if stop is None:
            log.warning("unknown finish reason", upstream=self._upstream.name, reason=reason[:100])
        self.stop = StopReason.REFUSAL if self._refused else stop or StopReason.END_TURN

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> Sequence[Said]:
        content, thought = delta.content, delta.reasoning_content or delta.reasoning
        said: list[Said] = []
        if isinstance(thought, str) and thought:
            said += self._words("thinking", thought, BlockKind.THINKING)
        if content:
            said += self._content(content)
        if delta.refusal:
            self._refused = True
            said += self._words("text", delta.refusal)
        for piece in delta.tool_calls or ():
            said += self._call(piece)
        return said

    def _content(self, content: str | list[Any]) -> list[Said]:
        """Words; or pieces of them, as some services have it that think between their words."""
        if isinstance(content, str):
            return self._words("text", content)
        said: list[Said] = []
        for piece in content:
            if isinstance(piece, dict):
                said += self._piece(piece)
        return said

    def _piece(self, piece: dict[str, Any]) -> list[Said]:
        if isinstance(text := piece.get("text"), str):
            return self._words("text", text)
        thoughts = piece.get("thinking")
        if isinstance(thoughts, str):
            return self._words("thinking", thoughts, BlockKind.THINKING)
        return [event for thought in (thoughts if isinstance(thoughts, list) else ()) if isinstance(thought, dict)
                for event in self._words("thinking", str(thought.get("text") or ""), BlockKind.THINKING)]

    def _words(self, key: str, text: str, kind: BlockKind = BlockKind.TEXT) -> list[Said]:
        if not text:
            return []
        ended = self._scribe.end(self._voice) if self._voice and self._voice != key else []
        self._voice = key
        return [*ended, *self._scribe.words(key, text, kind)]

    def _call(self, piece: CallPiece) -> list[Said]:
        call, arguments, is_new = self._calls.take(piece)
        said = self._begin(call) if is_new else []
        return [*said, *self._scribe.arguments(call.key, arguments)]

    def _begin(self, call: OpenCall) -> list[Said]:
        said = self._scribe.end_words() if self._voice else []
        self._voice, self.called = "", True
        fresh = call.id if call.id and call.id not in self._call_ids else ""  # one that is taken is exchanged
        self._call_ids.add(fresh)
        return [*said, *self._scribe.call(call.key, self._toolbox.call(call.name, fresh))]
