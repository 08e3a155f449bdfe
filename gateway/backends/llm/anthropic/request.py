"""A conversation as the body of a Messages API request."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import orjson

import gateway.model as m
from gateway.backends.llm.conversation import InputMessage, OutputMessage, content_as_text, missing_result
from gateway.backends.llm.service import ModelRequest
from gateway.backends.toolbox import Toolbox
from gateway.json_values import JsonObject

Block = dict[str, Any]
REDACTED_PREFIX = "redacted_thinking:"
"""The prefix of a signature whose thinking the service keeps to itself; a signature has no colon."""
PDF = "application/pdf"
EARLIER_PLACEHOLDER, EMPTY_PLACEHOLDER = "(The conversation began before this.)", "(An empty message.)"


def message_request(asking: ModelRequest) -> dict[str, Any]:
    """The body of a streaming request; the sender removes fields that are None."""
    return {
        "model": asking.model,
        "system": "\n\n".join(_system(asking)) or None,
        "messages": _messages(asking),
        "stream": True,
        "tools": [*map(_tool, asking.toolbox.specs), *asking.provider_tools] or None,
    }


def _system(asking: ModelRequest) -> Iterator[str]:
    if asking.system:
        yield asking.system
    for exchange in asking.exchanges:
        if isinstance(exchange, InputMessage) and exchange.role is m.Role.SYSTEM:
            yield content_as_text(exchange.parts)
    if asking.schema is not None:
        schema = orjson.dumps(asking.schema).decode()
        yield f"Answer with JSON only, without a code fence, that fits this JSON Schema:\n{schema}"


def _tool(spec: m.ToolSpec) -> JsonObject:
    return {"name": spec.name, "description": spec.description, "input_schema": {"type": "object", **spec.parameters}}


def _messages(asking: ModelRequest) -> list[dict[str, object]]:
    """Merge messages of the same role that follow each other: roles must alternate."""
    messages: list[dict[str, Any]] = []
    last = len(asking.exchanges) - 1
    for place, exchange in enumerate(asking.exchanges):
        if isinstance(exchange, OutputMessage):
            _add(messages, "assistant", list(_output_blocks(exchange, asking, is_last=place == last)))
            _add(messages, "user", list(_results(exchange)))
        elif exchange.role is not m.Role.SYSTEM:
            _add(messages, "user", list(_input_blocks(exchange.parts)) or [_text(EMPTY_PLACEHOLDER)])
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [_text(EARLIER_PLACEHOLDER)]})
    return messages


def _add(messages: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks})


# -- messages of people -----------------------------------------------------------------------------------------------

def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _input_blocks(parts: tuple[m.AnyPart, ...]) -> Iterator[Block]:
    for part in parts:
        if isinstance(part, m.ImagePart):
            yield {"type": "image", "source": _source(part.url, part.media_type)}
        elif isinstance(part, m.FilePart) and _is_pdf(part):
            yield {"type": "document", "source": _source(part.url or "", PDF), "title": part.name}
        elif (words := content_as_text((part,))).strip():
            yield _text(words)


def _is_pdf(file: m.FilePart) -> bool:
    return bool(file.url) and (file.media_type == PDF or m.decode_data_url(file.url or "")[0] == PDF)


def _source(url: str, media_type: str | None) -> Block:
    kind, data = m.decode_data_url(url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": media_type or kind, "data": base64.b64encode(data).decode()}


# -- messages of the model --------------------------------------------------------------------------------------------

def _output_blocks(spoken: OutputMessage, asking: ModelRequest, *, is_last: bool) -> Iterator[Block]:
    for part in spoken.parts:
        match part:
            case m.ThinkingPart(signature=str() as signature) if spoken.model == asking.model:
                yield _thought(part.text, signature)
            case m.ToolUsePart(call=call) if call.origin is m.ToolOrigin.PROVIDER:
                yield from _provider_call(call, spoken.results.get(call.call_id), is_last=is_last)
            case m.ToolUsePart(call=call):
                yield _call(call, asking.toolbox)
            case m.TextPart() | m.ImagePart():
                if (words := content_as_text((part,))).strip():
                    yield _text(words)


def _thought(text: str, signature: str) -> Block:
    """A thinking block is sent back as it came, or not at all."""
    if signature.startswith(REDACTED_PREFIX):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED_PREFIX)}
    return {"type": "thinking", "thinking": text, "signature": signature}


def _call(call: m.ToolCall, toolbox: Toolbox) -> Block:
    return {"type": "tool_use", "id": _id(call), "name": toolbox.service_name(call.name), "input": call.input}


def _id(call: m.ToolCall) -> str:
    """Replace ids of other agents' calls that the service does not accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call.call_id)


def _provider_call(call: m.ToolCall, result: m.HistoryEntry | None, *, is_last: bool) -> Iterator[Block]:
    """A provider call with its unchanged result; a call whose result is lost is left out."""
    kept = m.parts_of(result.content) if result is not None else ()
    block = next((part.content for part in kept if isinstance(part, m.DataPart)), None)
    if block is None and not (is_last and result is None):
        return
    made = {"id": call.call_id, "name": call.name, "input": call.input}
    if call.server is not None:
        yield {"type": "mcp_tool_use", "server_name": call.server, **made}
    else:
        yield {"type": "server_tool_use", **made}
    if block is not None:
        yield block


def _results(spoken: OutputMessage) -> Iterator[Block]:
    for call in spoken.calls:
        if call.origin is not m.ToolOrigin.PROVIDER:
            entry = spoken.results.get(call.call_id) or missing_result(call)
            yield {
                "type": "tool_result", "tool_use_id": _id(call), "content": _result(entry.content),
                **({"is_error": True} if entry.is_error else {}),
            }


def _result(content: m.Content) -> str | list[Block]:
    return content if isinstance(content, str) else list(_input_blocks(content))
