"""Blade, overheard: what people said, read out of what their page sent, or out of the turns a server tells of them."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from gateway.model import AgentCard, AnyCommand, Capabilities, FilePart, Interrupt, SessionView
from gateway.upstream import Frame
from mappings.language import Table

from . import inbound
from .wire import ChatSend, FilePartIn

CARD = AgentCard(name="", capabilities=Capabilities(images=("http", "data")))
"""Whatever the agent was, it has taken what was sent."""


def overheard(frame: Frame, view: SessionView, table: Table) -> Sequence[AnyCommand]:
    """The same over a socket and over HTTP."""
    body = frame.body if isinstance(frame.body, dict) else {}
    if frame.name == "chat:send" or (frame.name.startswith("POST ") and frame.name.endswith("/chat")):
        return _sent(body, view, table)
    if frame.name == "chat:stop" or (frame.name.startswith("POST ") and frame.name.endswith("/stop")):
        return [Interrupt()]
    return _told(body, table) if frame.name == "turn:start" and body.get("role") == "user" else ()


def _sent(body: dict[str, Any], view: SessionView, table: Table) -> Sequence[AnyCommand]:
    try:
        sent = ChatSend.model_validate(body)
    except ValidationError:
        return ()  # it was refused
    if sent.askuser_answer is not None:
        return [inbound.answer_of(sent, view, table)]
    parts = sent.message if not isinstance(sent.message, str) else []
    files = [FilePart(name=part.name) for part in parts if isinstance(part, FilePartIn)]
    content = inbound.content_of(sent.message, files, CARD)
    return [inbound.message_of(sent, content, {}, table)] if inbound.is_said(sent) else ()


def _told(turn: dict[str, Any], table: Table) -> Sequence[AnyCommand]:
    blocks = turn.get("blocks") if isinstance(turn.get("blocks"), list) else []
    words = [block.get("content") for block in blocks or () if isinstance(block, dict) and block.get("type") == "text"]
    text = "\n".join(word for word in words if isinstance(word, str))
    return [inbound.message_of(ChatSend(message=text), text, {}, table)] if text else ()
