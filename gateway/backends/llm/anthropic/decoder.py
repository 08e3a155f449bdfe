"""Decodes the events of a Messages API response."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

import gateway.model as m
from gateway.backends.llm.service import service_error
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, SseEvent, StreamAssembler, replace_lone_surrogates
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .request import REDACTED_PREFIX

log = structlog.get_logger("dragoman.model")

STOP_REASONS = {
    "end_turn": m.StopReason.END_TURN, "stop_sequence": m.StopReason.END_TURN, "tool_use": m.StopReason.TOOL_USE,
    "pause_turn": m.StopReason.TOOL_USE, "max_tokens": m.StopReason.MAX_TOKENS,
    "model_context_window_exceeded": m.StopReason.MAX_TOKENS, "refusal": m.StopReason.REFUSAL,
}
COUNTS = {
    "input_tokens": "input_tokens", "output_tokens": "output_tokens", "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


class ContentDelta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class ContentBlockDelta(Struct):
    """The most frequent event."""

    delta: ContentDelta
    index: int = 0


_decode_delta = msgspec.json.Decoder(ContentBlockDelta).decode
_decode_object = msgspec.json.Decoder(JsonObject).decode


class MessagesDecoder:
    """See `gateway.backends.llm.service.ResponseDecoder`."""

    def __init__(
        self, assembler: StreamAssembler, toolbox: Toolbox, call_ids: set[str], upstream: HttpClient
    ) -> None:
        self.stop, self.usage = m.StopReason.END_TURN, m.Usage()
        self.has_calls = self.wants_continuation = self.is_complete = self.is_closed = False
        self._assembler, self._toolbox, self._call_ids, self._upstream = assembler, toolbox, call_ids, upstream
        self._inputs: dict[int, JsonObject] = {}
        """The open calls, each with the input that it began with."""

    def feed(self, events: Sequence[SseEvent], output: list[BackendEvent]) -> None:
        for event in events:
            if not self.is_complete:
                output += self._decode(event)
            elif not self.is_closed:
                self.is_closed = event.name == "message_stop"

    def _decode(self, event: SseEvent) -> Sequence[BackendEvent]:
        try:
            if event.name == "content_block_delta":
                return self._grow(_decode_delta(event.data))
            return self._happen(event)
        except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError):
            if not event.data.strip():
                return ()  # an empty event that keeps the connection open
            if (whole := replace_lone_surrogates(event.data)) != event.data:
                return self._decode(SseEvent(event.name, whole, event.id))
            raise BackendFailed(f"{self._upstream.name} sent an event that cannot be read") from None

    def _happen(self, event: SseEvent) -> Sequence[BackendEvent]:
        body = _decode_object(event.data)
        kind = event.name if event.name != "message" else body.get("type")
        if kind == "content_block_delta":
            return self._grow(msgspec.convert(body, ContentBlockDelta))
        happen = _HANDLERS.get(str(kind))
        return happen(self, body) if happen is not None else ()

    # -- the message ----------------------------------------------------------------------------------------------

    def _start(self, body: dict[str, Any]) -> Sequence[BackendEvent]:
        self._count(body["message"].get("usage"))
        return ()

    def _change(self, body: dict[str, Any]) -> Sequence[BackendEvent]:
        self._count(body.get("usage"))
        reason = body["delta"].get("stop_reason")
        if reason is not None:
            if reason not in STOP_REASONS:
                log.warning("unknown_stop_reason", upstream=self._upstream.name, reason=str(reason)[:100])
            self.stop, self.wants_continuation = STOP_REASONS.get(reason, m.StopReason.END_TURN), reason == "pause_turn"
            self.is_complete = True
        return ()

    def _stop(self, body: JsonObject) -> Sequence[BackendEvent]:
        self.is_complete = self.is_closed = True
        return ()

    def _break(self, body: JsonObject) -> Sequence[BackendEvent]:
        raise service_error(body.get("error"), self._upstream)

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Counts are cumulative; a count that is missing stays as it was."""
        given = {ours: usage[theirs] for theirs, ours in COUNTS.items() if usage and usage.get(theirs) is not None}
        thought = ((usage or {}).get("output_tokens_details") or {}).get("thinking_tokens")
        if thought is not None:
            given["thinking_tokens"] = thought
        self.usage = msgspec.convert(msgspec.structs.asdict(self.usage) | given, m.Usage)

    # -- its blocks -----------------------------------------------------------------------------------------------

    def _begin(self, body: dict[str, Any]) -> Sequence[BackendEvent]:
        index, block = body["index"], body["content_block"]
        kind = block["type"]
        if kind == "text":
            return self._assembler.text_delta(index, block.get("text") or "")
        if kind == "thinking":
            signed = self._assembler.sign(index, block["signature"]) if block.get("signature") else []
            return [*signed, *self._assembler.text_delta(index, block.get("thinking") or "", m.BlockKind.THINKING)]
        if kind == "redacted_thinking":
            return self._assembler.sign(index, REDACTED_PREFIX + block["data"])
        if kind.endswith("tool_use"):
            return self._begin_call(index, block, own=kind == "tool_use")
        return self._returned(block) if "tool_use_id" in block else ()

    def _begin_call(self, index: int, block: dict[str, Any], *, own: bool) -> Sequence[BackendEvent]:
        name, id = str(block["name"]), str(block.get("id") or "")
        self._inputs[index] = block.get("input") or {}
        if not own:
            return self._assembler.call(index, m.ToolCall(
                call_id=id, name=name, origin=m.ToolOrigin.PROVIDER, server=block.get("server_name"),
            ))
        self.has_calls = True
        fresh = "" if id in self._call_ids else id  # an id that is in use is replaced
        self._call_ids.add(fresh)
        return self._assembler.call(index, self._toolbox.call(name, fresh))

    def _grow(self, growth: ContentBlockDelta) -> Sequence[BackendEvent]:
        index, piece = growth.index, growth.delta
        if piece.text is not None:
            return self._assembler.text_delta(index, piece.text)
        if piece.partial_json is not None:
            return self._write(index, piece.partial_json)
        if piece.thinking is not None:
            return self._assembler.text_delta(index, piece.thinking, m.BlockKind.THINKING)
        return self._assembler.sign(index, piece.signature) if piece.signature is not None else ()

    def _write(self, index: int, json: str) -> Sequence[BackendEvent]:
        if index not in self._inputs or not json:
            return ()
        self._inputs[index] = {}
        return self._assembler.input_delta(index, json)

    def _end(self, body: dict[str, Any]) -> Sequence[BackendEvent]:
        index = body["index"]
        given = self._inputs.pop(index, None)
        whole = self._assembler.input_delta(index, msgspec.json.encode(given).decode()) if given else []
        return [*whole, *self._assembler.end(index)]

    def _returned(self, block: dict[str, Any]) -> Sequence[BackendEvent]:
        """The result of a provider tool: as text for people, and unchanged for the service."""
        content = block.get("content")
        failed = bool(block.get("is_error")) or (isinstance(content, dict) and "error_code" in content)
        words = m.TextPart(text=result_as_text(content))
        return self._assembler.returned(
            block["tool_use_id"], (words, m.DataPart(type=block["type"], content=block)), is_error=failed)


def result_as_text(content: object) -> str:
    """The readable parts of a result: texts, titles with URLs, the output of a program, or an error code."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(result_as_text, content)))
    if not isinstance(content, dict):
        return ""
    words = [str(content[field]) for field in ("title", "url", "text", "stdout", "stderr", "error_code")
             if content.get(field)]
    return " ".join(words) or result_as_text(content.get("content"))


_HANDLERS: dict[str, Callable[[MessagesDecoder, JsonObject], Sequence[BackendEvent]]] = {
    "message_start": MessagesDecoder._start, "message_delta": MessagesDecoder._change,
    "message_stop": MessagesDecoder._stop, "error": MessagesDecoder._break,
    "content_block_start": MessagesDecoder._begin, "content_block_stop": MessagesDecoder._end,
}
