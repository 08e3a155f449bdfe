"""The conversation as AG-UI messages, and the request that starts a run."""

import base64
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

import msgspec
import orjson

import gateway.model as m
from gateway.backends.system_text import MEMORIES_HEADING
from gateway.json_values import JsonValue
from gateway.ports import Turn

from .interrupts import JsonObject, RunResume


def run_input(
    turn: Turn, entries: Iterable[m.HistoryEntry], settings: m.Settings, *, thread_id: str, state: object,
    ids: Mapping[str, str], forward: Mapping[str, JsonValue], resume: RunResume = RunResume(),  # noqa: B008  # it is frozen
) -> JsonObject:
    """The body of a request; `settings` name the tools that the agent may call, `ids` the agent's ids of messages."""
    system = settings.system
    system_message = [{"id": "system", "role": "system", "content": system}] if system else []
    return {
        "threadId": thread_id,
        "runId": turn.mint("run"),
        "state": state,
        "messages": [*system_message, *(message for entry in entries for message in entry_messages(entry, ids))],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {"type": "object"}}
            for tool in settings.client_tools
        ],
        "context": [*_context(turn.command), *_memories(turn)] if isinstance(turn.command, m.SendMessage) else [],
        "forwardedProps": {
            **_choices(turn, settings), **forward,
            **({"command": resume.command} if resume.command is not None else {}),
        },
        **({"resume": list(resume.entries)} if resume.entries else {}),
    }


def _choices(turn: Turn, settings: m.Settings) -> JsonObject:
    """The chosen model and options; secrets are not for an agent elsewhere, which has no name for them."""
    model = turn.command.model if isinstance(turn.command, m.SendMessage) else None
    chosen = {"model": model or settings.model, "options": settings.options}
    return {name: value for name, value in chosen.items() if value}


def _memories(turn: Turn) -> list[JsonObject]:
    """The memories that fit the message, each as a context of its own."""
    return [{"description": MEMORIES_HEADING, "value": memory.content} for memory in turn.memories]


def _context(command: m.SendMessage) -> list[JsonObject]:
    context = [{"description": name, "value": value if isinstance(value, str) else _json(value)}
            for name, value in command.variables.items()]
    if command.output_schema is not None:
        context.append({"description": "Answer with JSON only, that fits this JSON Schema.",
                     "value": _json(command.output_schema)})
    return context


def entry_messages(entry: m.HistoryEntry, ids: Mapping[str, str]) -> list[JsonObject]:
    """The messages of one history entry; thinking is sent back only if it is signed."""
    known = ids.get(entry.message_id) or entry.message_id or f"entry-{entry.seq}"
    match entry.role:
        case m.Role.ASSISTANT:
            return [*_thoughts(entry.content, known), *_assistant_message(entry.content, known)]
        case m.Role.TOOL:
            failed = {"error": m.text_of(entry.content)} if entry.is_error else {}
            content = _parts(entry.content)
            return [{"id": f"result-{entry.call_id}", "role": "tool", "toolCallId": entry.call_id, "content": content,
                     **failed}]
        case m.Role.SYSTEM:
            return [{"id": known, "role": "system", "content": m.text_of(entry.content)}]
    return [{"id": known, "role": "user", "content": _parts(entry.content)}]


def _thoughts(content: m.Content, known: str) -> list[JsonObject]:
    signed = [part for part in m.parts_of(content) if isinstance(part, m.ThinkingPart) and part.signature]
    return [{"id": f"{known}-thought-{number}", "role": "reasoning", "content": part.text,
             "encryptedValue": part.signature} for number, part in enumerate(signed, 1)]


def _assistant_message(content: m.Content, known: str) -> list[JsonObject]:
    calls = [part.call for part in m.parts_of(content) if isinstance(part, m.ToolUsePart)]
    text = "".join(_part_as_text(part) for part in m.parts_of(content))
    if not text and not calls:
        return []
    made = [{"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": _json(call.input)}}
            for call in calls]
    return [{"id": known, "role": "assistant", **({"content": text} if text else {}),
             **({"toolCalls": made} if made else {})}]


def _part_as_text(part: m.AnyPart) -> str:
    return (
        part.text if isinstance(part, m.TextPart) else m.image_markdown(part) if isinstance(part, m.ImagePart) else ""
    )


def _parts(content: m.Content) -> str | list[JsonObject]:
    """Text as a string, anything else as parts."""
    if all(isinstance(part, m.TextPart) for part in m.parts_of(content)):
        return m.text_of(content)
    return [encoded for part in m.parts_of(content) if (encoded := _part(part)) is not None]


def _part(part: m.AnyPart) -> JsonObject | None:
    match part:
        case m.TextPart(text=text):
            return {"type": "text", "text": text}
        case m.ImagePart(url=url, media_type=media_type):
            return {"type": "image", "source": _source(url, media_type)}
        case m.FilePart(name=name, url=str() as url, media_type=media_type):
            return {"type": "document", "source": _source(url, media_type), "metadata": {"filename": name}}
        case m.FilePart(name=name, file_id=str() as file_id):
            return {"type": "document", "source": {"type": "file", "value": file_id}, "metadata": {"filename": name}}
    return None


def _source(url: str, media_type: str | None) -> JsonObject:
    if not url.startswith("data:"):
        return {"type": "url", "value": url, **({"mimeType": media_type} if media_type else {})}
    head, _, body = url.removeprefix("data:").partition(",")
    value = body if head.endswith(";base64") else base64.b64encode(unquote_to_bytes(body)).decode()
    kind = head.partition(";")[0] or media_type or "application/octet-stream"
    return {"type": "data", "value": value, "mimeType": kind}


def tool_content(content: object) -> m.Content:
    """The content of a tool result."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else _json(content)
    parts = [part for piece in content if isinstance(piece, dict) and (part := _read(piece)) is not None]
    if all(isinstance(part, m.TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, m.TextPart))
    return tuple(parts)


def _read(piece: JsonObject) -> m.AnyPart | None:
    source = piece.get("source")
    if piece.get("type") == "text":
        return m.TextPart(text=str(piece.get("text", "")))
    if piece.get("type") == "image" and isinstance(source, dict) and source.get("type") in ("url", "data"):
        kind, value = source.get("mimeType"), str(source.get("value"))
        return m.ImagePart(url=value if source["type"] == "url" else f"data:{kind};base64,{value}", media_type=kind)
    return None


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # numbers beyond 64 bits
        return msgspec.json.encode(value).decode()
