"""Decodes the chunks of a chat-completions response; lenient with what local servers leave out."""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

import gateway.model as m
from gateway.backends.llm.service import service_error
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, SseEvent, StreamAssembler, replace_lone_surrogates
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent

from .chunks import (
    EMPTY_CHUNK,
    CallAssembler,
    CallPiece,
    ChatChunk,
    ChunkChoice,
    ChunkDelta,
    PartialCall,
    chunk_usage,
    decode_chunk,
    text_only_delta,
)

log = structlog.get_logger("dragoman.model")

DONE = "[DONE]"
STOP_REASONS = {
    "stop": m.StopReason.END_TURN, "eos": m.StopReason.END_TURN, "end_turn": m.StopReason.END_TURN,
    "tool_calls": m.StopReason.TOOL_USE, "function_call": m.StopReason.TOOL_USE,
    "length": m.StopReason.MAX_TOKENS, "content_filter": m.StopReason.REFUSAL,
}
ERROR_REASON = "error"
"""The finish reason of a failed response, at services that report nothing else."""


class ChatCompletionsDecoder:
    """See `gateway.backends.llm.service.ResponseDecoder`."""

    def __init__(
        self, assembler: StreamAssembler, toolbox: Toolbox, call_ids: set[str], upstream: HttpClient
    ) -> None:
        self.stop, self.usage = m.StopReason.END_TURN, m.Usage()
        self.has_calls = self.wants_continuation = self.is_complete = self.is_closed = False
        self._assembler, self._toolbox, self._call_ids, self._upstream = assembler, toolbox, call_ids, upstream
        self._block_key = ""
        self._begun = self._refused = False
        self._calls = CallAssembler()

    def feed(self, events: Sequence[SseEvent], output: list[BackendEvent]) -> None:
        words = list[str]()
        try:
            for event in events:
                if self.is_complete:
                    self._read_trailer(event)
                    continue
                if event.data == DONE:
                    self._end()
                    continue
                try:
                    chunk = decode_chunk(event.data)
                except (msgspec.DecodeError, RecursionError):
                    chunk = self._chunk(event.data)
                if chunk.error:
                    raise service_error(chunk.error, self._upstream)
                if self._block_key and (more := text_only_delta(chunk, self._block_key)) is not None:
                    words.append(more)  # nine chunks of ten
                    continue
                if words:
                    output += self._assembler.text_deltas(self._block_key, words)
                    words = []
                output += self._take(chunk)
        finally:
            if words:
                output += self._assembler.text_deltas(self._block_key, words)

    def _end(self) -> None:
        if not self._begun:
            raise BackendFailed(f"{self._upstream.name} ended its answer before it had begun it")
        self.is_complete = self.is_closed = True

    def _take(self, chunk: ChatChunk) -> Sequence[BackendEvent]:
        if chunk.usage is not None:
            self.usage = chunk_usage(chunk.usage)
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        if choice.index:
            return ()
        self._begun = True
        delta = choice.delta or choice.message
        events = self._delta(delta) if delta is not None else ()
        if choice.finish_reason:
            self._finish(choice.finish_reason, choice)
        return events

    def _read_trailer(self, event: SseEvent) -> None:
        if event.data == DONE:
            self.is_closed = True
        elif not self.is_closed and (cost := self._chunk(event.data).usage) is not None:
            self.usage = chunk_usage(cost)

    def _chunk(self, data: str) -> ChatChunk:
        try:
            chunk = decode_chunk(data)
        except (msgspec.DecodeError, RecursionError):
            if not data.strip():
                return EMPTY_CHUNK  # an empty event that keeps the connection open
            if (whole := replace_lone_surrogates(data)) != data:
                return self._chunk(whole)
            raise BackendFailed(f"{self._upstream.name} sent a chunk that cannot be read") from None
        if chunk.error:
            raise service_error(chunk.error, self._upstream)
        return chunk

    def _finish(self, reason: str, choice: ChunkChoice) -> None:
        if reason == ERROR_REASON or choice.error:
            raise service_error(choice.error, self._upstream)
        if choice.usage is not None:
            self.usage = chunk_usage(choice.usage)
        self.is_complete = True
        stop = STOP_REASONS.get(reason)
        if stop is None:
            log.warning("unknown_stop_reason", upstream=self._upstream.name, reason=reason[:100])
        self.stop = m.StopReason.REFUSAL if self._refused else stop or m.StopReason.END_TURN

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _delta(self, delta: ChunkDelta) -> Sequence[BackendEvent]:
        content, thought = delta.content, delta.reasoning_content or delta.reasoning
        events: list[BackendEvent] = []
        if isinstance(thought, str) and thought:
            events += self._words("thinking", thought, m.BlockKind.THINKING)
        if content:
            events += self._content(content)
        if delta.refusal:
            self._refused = True
            events += self._words("text", delta.refusal)
        for piece in delta.tool_calls or ():
            events += self._call(piece)
        return events

    def _content(self, content: str | list[object]) -> list[BackendEvent]:
        """The content: a string, or parts, at services that put thinking between texts."""
        if isinstance(content, str):
            return self._words("text", content)
        events: list[BackendEvent] = []
        for piece in content:
            if isinstance(piece, dict):
                events += self._piece(piece)
        return events

    def _piece(self, piece: Mapping[str, object]) -> list[BackendEvent]:
        if isinstance(text := piece.get("text"), str):
            return self._words("text", text)
        thoughts = piece.get("thinking")
        if isinstance(thoughts, str):
            return self._words("thinking", thoughts, m.BlockKind.THINKING)
        return [event for thought in (thoughts if isinstance(thoughts, list) else ()) if isinstance(thought, dict)
                for event in self._words("thinking", str(thought.get("text") or ""), m.BlockKind.THINKING)]

    def _words(self, key: str, text: str, kind: m.BlockKind = m.BlockKind.TEXT) -> list[BackendEvent]:
        if not text:
            return []
        ended = self._assembler.end(self._block_key) if self._block_key and self._block_key != key else []
        self._block_key = key
        return [*ended, *self._assembler.text_delta(key, text, kind)]

    def _call(self, piece: CallPiece) -> list[BackendEvent]:
        call, arguments, is_new = self._calls.take(piece)
        events = self._begin(call) if is_new else []
        return [*events, *self._assembler.input_delta(call.key, arguments)]

    def _begin(self, call: PartialCall) -> list[BackendEvent]:
        events = self._assembler.end_texts() if self._block_key else []
        self._block_key, self.has_calls = "", True
        fresh = call.id if call.id and call.id not in self._call_ids else ""  # an id that is in use is replaced
        self._call_ids.add(fresh)
        return [*events, *self._assembler.call(call.key, self._toolbox.call(call.name, fresh))]
