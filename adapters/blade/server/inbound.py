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
from gateway.ports import DialectTable, ParsedFrame

from .turn_state import wire_call_id

MESSAGES = {
    "chat.message": ("content", "model", "mode", "headless", "schema", "variables"),
    "answer.question": ("request_id", "selections", "custom", "message"),
    "answer.permission": ("request_id", "granted", "reason"),
    "answer.client_tool": ("request_id", "content"),
    "answer.continuation": ("request_id", "proceed"),
    "answer.rollback": ("request_id", "option"),
    "chat.stop": (),
    "chat.compact": (),
}


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
    answer = body.askuser_answer
    assert answer is not None
    found = pending_ask(answer.tool_call_id, view)
    selections = {number: tuple(picks) for number, picks in answer.selections.items()}
    custom = {number: said for number, said in answer.custom.items() if said}
    if answer.answer is not None:
        selections, custom = picks_from_words(questions_of(found.ask), answer.answer)
    for number, picks in selections.items():
        if len(set(picks)) < len(picks):
            raise Invalid(f"question {number} names a choice twice: {list(picks)}")
    given = answer_bindings(found, selections, custom)
    if found.ask.kind == "question":
        given["message"] = _words(body.message)
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
def message_of(body: wire.ChatSend, content: m.Content, env: dict[str, str], table: DialectTable) -> m.AnyCommand:
    return table.command(
        "chat.message", content=content, model=body.model, mode=body.mode, headless=bool(body.headless),
        schema=body.output_schema, variables=env | body.runtime_env,
    )


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


def content_of(message: str | list[Any], files: list[m.FilePart], card: m.AgentCard) -> m.Content:
    """The parts, with stored files in the place of their data; a bare string stays one."""
    if isinstance(message, str):
        return message
    stored = iter(files)
    return tuple(_part(part, stored, card) for part in message)


def _part(part: Any, stored: Iterator[m.FilePart], card: m.AgentCard) -> m.AnyPart:
    if isinstance(part, wire.TextPartIn):
        return m.TextPart(text=part.text)
    if isinstance(part, wire.FilePartIn):
        return next(stored)
    if not card.takes_image(part.image_url.url):
        kind = card.image_kind(part.image_url.url)
        raise Unsupported(f"agent '{card.name}' does not take images by {kind} address")
    return m.ImagePart(url=part.image_url.url)


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    """The commands of a recorded frame, from a socket or over HTTP."""
    body = frame.body if isinstance(frame.body, dict) else {}
    if frame.name == "chat:send" or (frame.name.startswith("POST ") and frame.name.endswith("/chat")):
        return _recorded_message(body, view, table)
    if frame.name == "chat:stop" or (frame.name.startswith("POST ") and frame.name.endswith("/stop")):
        return [m.Interrupt()]
    return _recorded_turn(body, table) if frame.name == "turn:start" and body.get("role") == "user" else ()


def _recorded_message(body: dict[str, Any], view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    try:
        sent = ChatSend.model_validate(body)
    except ValidationError:
        return ()  # it was refused
    if sent.askuser_answer is not None:
        return [answer_of(sent, view, table)]
    parts = sent.message if not isinstance(sent.message, str) else []
    files = [m.FilePart(name=part.name) for part in parts if isinstance(part, FilePartIn)]
    content = content_of(sent.message, files, m.ANY_AGENT)
    return [message_of(sent, content, {}, table)] if has_content(sent) else ()


def _recorded_turn(turn: dict[str, Any], table: DialectTable) -> Sequence[m.AnyCommand]:
    blocks = turn.get("blocks") if isinstance(turn.get("blocks"), list) else []
    words = [block.get("content") for block in blocks or () if isinstance(block, dict) and block.get("type") == "text"]
    text = "\n".join(word for word in words if isinstance(word, str))
    return [message_of(ChatSend(message=text), text, {}, table)] if text else ()
