"""Messages of Blade's clients in, commands out, live or from a recording. No clock, no socket."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mimetypes import guess_type
from typing import Any

from pydantic import ValidationError

import gateway.model as m
from adapters.blade import wire
from adapters.blade.asks import answer_bindings, picks_from_words, questions_of
from adapters.blade.wire import ChatSend, FilePartIn
from gateway.errors import Invalid, NotPending, Unsupported
from gateway.json_values import JsonObject
from gateway.ports import DialectTable, ParsedFrame

from .turn_state import wire_call_id

MESSAGES = (
    "chat.message", "answer.question", "answer.permission", "answer.client_tool", "answer.continuation",
    "answer.rollback", "chat.stop", "chat.compact",
)
"""The client messages that the table spells."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file inside a message."""

    name: str
    media_type: str
    content: bytes


def has_content(body: wire.ChatSend) -> bool:
    """Whether a message has text, parts or an answer."""
    return bool(body.message) or body.askuser_answer is not None


# -- an answer --------------------------------------------------------------------------------------------------------
def answer_of(body: wire.ChatSend, view: m.SessionView, table: DialectTable) -> m.AnyCommand:
    """The command that settles the ask the answer is for; a refusal if there is none, or it does not fit."""
    fields = table.read_message("answer.question", {**_sent(body), "message": _words(body.message)})
    found = pending_ask(fields["request_id"], view)
    selections = fields["selections"] or {}
    custom = {number: words for number, words in (fields["custom"] or {}).items() if words}
    if fields["answer"] is not None:
        selections, custom = picks_from_words(questions_of(found.ask), fields["answer"])
    for number, picks in selections.items():
        if len(set(picks)) < len(picks):
            raise Invalid(f"question {number} names a choice twice: {list(picks)}")
    given = answer_bindings(found, selections, custom)
    if found.ask.kind == "question":
        given["message"] = fields["message"]
    return table.command(f"answer.{found.ask.kind}", request_id=found.request_id, **given)


def pending_ask(tool_call_id: str, view: m.SessionView) -> m.OpenAsk:
    """The open ask that this call shows, or is about."""
    asked = {wire_call_id(ask.request_id): ask for ask in view.asks.values()}
    called = {wire_call_id(ask.call_id): ask for ask in view.asks.values() if ask.call_id}
    found = asked.get(tool_call_id) or called.get(tool_call_id)
    if found is None:
        raise NotPending(f"tool call '{tool_call_id}' does not wait for an answer")
    return found


def _words(message: str | list[Any]) -> str:
    return message if isinstance(message, str) else "".join(p.text for p in message if isinstance(p, wire.TextPartIn))


# -- a message --------------------------------------------------------------------------------------------------------
def message_of(
    body: wire.ChatSend, files: Sequence[m.FilePart], env: dict[str, str], card: m.AgentCard, table: DialectTable,
) -> m.AnyCommand:
    """The command of a message, with stored files in the place of their data."""
    fields = table.read_message("chat.message", _sent(body))
    fields["content"] = content_of(fields["content"], files, card)
    fields["variables"] = env | fields["variables"]
    return table.command("chat.message", **fields)


def _sent(body: wire.ChatSend) -> JsonObject:
    """The message as it was sent, after it was validated."""
    message, answer = body.message, body.askuser_answer
    parts = message if isinstance(message, str) else [part.model_dump() for part in message]
    return {**body.__dict__, "message": parts, "askuser_answer": None if answer is None else answer.__dict__}


def image_addresses(message: str | list[Any]) -> Iterator[tuple[str, str]]:
    """The addresses of images among the parts, each with its field."""
    for number, part in enumerate(message if not isinstance(message, str) else ()):
        if isinstance(part, wire.ImagePartIn):
            yield f"message.{number}.image_url.url", part.image_url.url


def uploads_of(message: str | list[Any]) -> Iterator[Upload]:
    """The files among the parts, decoded."""
    for part in message if not isinstance(message, str) else ():
        if isinstance(part, wire.FilePartIn):
            yield Upload(part.name, guess_type(part.name)[0] or "application/octet-stream", _decoded(part))


def _decoded(part: wire.FilePartIn) -> bytes:
    data = part.data.partition(";base64,")[2] if part.data.startswith("data:") else part.data
    try:
        return b64decode(data, validate=True)
    except (NotBase64, ValueError):
        raise Invalid(f"file '{part.name}': data is not base64", param="message") from None


def content_of(content: m.Content, files: Sequence[m.FilePart], card: m.AgentCard) -> m.Content:
    """The parts, with stored files in the place of those that were sent; a bare string stays one."""
    if isinstance(content, str):
        return content
    stored = iter(files)
    return tuple(next(stored) if isinstance(part, m.FilePart) else _accepted(part, card) for part in content)


def _accepted(part: m.AnyPart, card: m.AgentCard) -> m.AnyPart:
    """The part, if the agent takes its image."""
    if isinstance(part, m.ImagePart) and not card.takes_image(part.url):
        raise Unsupported(f"agent '{card.name}' does not take images by {card.image_kind(part.url)} address")
    return part


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    """The commands of a recorded frame, from a socket or over HTTP."""
    body = frame.body if isinstance(frame.body, dict) else {}
    if frame.name == "chat:send" or (frame.name.startswith("POST ") and frame.name.endswith("/chat")):
        return _recorded_message(body, view, table)
    if frame.name == "chat:stop" or (frame.name.startswith("POST ") and frame.name.endswith("/stop")):
        return [m.Interrupt()]
    return _recorded_turn(body, table) if frame.name == "turn:start" and body.get("role") == "user" else ()


def _recorded_message(body: JsonObject, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    try:
        sent = ChatSend.model_validate(body)
    except ValidationError:
        return ()  # it was refused
    if sent.askuser_answer is not None:
        return [answer_of(sent, view, table)]
    parts = sent.message if not isinstance(sent.message, str) else []
    files = [m.FilePart(name=part.name) for part in parts if isinstance(part, FilePartIn)]
    return [message_of(sent, files, {}, m.ANY_AGENT, table)] if has_content(sent) else ()


def _recorded_turn(turn: dict[str, Any], table: DialectTable) -> Sequence[m.AnyCommand]:
    blocks = turn.get("blocks") if isinstance(turn.get("blocks"), list) else []
    words = [block.get("content") for block in blocks or () if isinstance(block, dict) and block.get("type") == "text"]
    text = "\n".join(word for word in words if isinstance(word, str))
    return [message_of(ChatSend(message=text), (), {}, m.ANY_AGENT, table)] if text else ()
