"""A conversation as the body of a chat-completions request."""

from collections.abc import Iterator
from typing import Any

from msgspec.json import encode

import gateway.model as m
from gateway.backends.llm.conversation import (
    ConversationMessage,
    InputMessage,
    OutputMessage,
    content_as_text,
    missing_result,
)
from gateway.backends.llm.service import ModelRequest
from gateway.backends.toolbox import Toolbox
from gateway.json_values import JsonObject

Message = dict[str, Any]


def chat_request(asking: ModelRequest, reasoning_field: str | None = None) -> JsonObject:
    """The body of a streaming request; the sender removes fields that are None."""
    return {
        "model": asking.model,
        "messages": [*_system(asking.system), *(
            message for exchange in asking.exchanges for message in _messages(exchange, asking.toolbox, reasoning_field)
        )],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [*map(_tool, asking.toolbox.specs), *asking.provider_tools] or None,
        "response_format": _format(asking.schema),
    }


def _system(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def _tool(spec: m.ToolSpec) -> JsonObject:
    return {"type": "function", "function": {
        "name": spec.name, "description": spec.description, "parameters": spec.parameters,
    }}


def _format(schema: JsonObject | None) -> JsonObject | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _messages(exchange: ConversationMessage, toolbox: Toolbox, reasoning_field: str | None) -> Iterator[Message]:
    if isinstance(exchange, InputMessage):
        role = "system" if exchange.role is m.Role.SYSTEM else "user"
        yield {"role": role, "content": _content(exchange.parts) if role == "user" else content_as_text(exchange.parts)}
        return
    calls = [call for call in exchange.calls if call.origin is not m.ToolOrigin.PROVIDER]
    text = content_as_text(
        tuple(part for part in exchange.parts if not isinstance(part, m.ThinkingPart | m.ToolUsePart))
    )
    if not text and not calls:
        return
    yield {
        "role": "assistant", "content": text or None, **_reasoning(exchange, reasoning_field, bool(calls)),
        **({"tool_calls": [_call(call, toolbox) for call in calls]} if calls else {}),
    }
    for call in calls:
        yield _result(call, exchange.results.get(call.call_id) or missing_result(call))


def _reasoning(spoken: OutputMessage, field: str | None, called: bool) -> dict[str, str]:
    """The thinking, for services that expect it; with calls such a service needs the field even if it is empty."""
    thoughts = "".join(part.text for part in spoken.parts if isinstance(part, m.ThinkingPart))
    return {field: thoughts} if field and (thoughts or called) else {}


def _call(call: m.ToolCall, toolbox: Toolbox) -> JsonObject:
    return {"id": call.call_id, "type": "function", "function": {
        "name": toolbox.service_name(call.name), "arguments": encode(call.input).decode(),
    }}


def _result(call: m.ToolCall, entry: m.HistoryEntry) -> Message:
    words = content_as_text(entry.content)
    return {"role": "tool", "tool_call_id": call.call_id, "content": f"Error: {words}" if entry.is_error else words}


def _content(parts: tuple[m.AnyPart, ...]) -> str | list[dict[str, Any]]:
    """A string if there is only text: every server accepts that."""
    if not any(isinstance(part, m.ImagePart) for part in parts):
        return content_as_text(parts)
    return [piece for part in parts if (piece := _piece(part)) is not None]


def _piece(part: m.AnyPart) -> JsonObject | None:
    if isinstance(part, m.ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    words = content_as_text((part,))
    return {"type": "text", "text": words} if words else None
