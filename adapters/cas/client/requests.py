"""Makes the events that a CAS server takes: messages and answers of people."""

from collections.abc import Iterable
from typing import Any

import gateway.model as m
from gateway.errors import Unsupported
from gateway.ports import RemoteAsk

EventBody = dict[str, Any]
CANCELLED = "Nobody has answered: it was cancelled, or took too long."
INTERRUPT_EVENT: EventBody = {"type": "user.interrupt"}


def message_event(command: m.SendMessage) -> EventBody:
    return {"type": "user.message", "content": _blocks(command.content)}


def answer_event(asked: RemoteAsk, given: m.Answer) -> EventBody:
    """An ask for leave is confirmed or denied; everything else is answered by the result of a custom tool."""
    if isinstance(asked.ask, m.PermissionAsk | m.ContinuationAsk):
        return {"type": "user.tool_confirmation", "tool_use_id": asked.ref, **_decision(given)}
    return {"type": "user.custom_tool_result", "custom_tool_use_id": asked.ref, **_result(asked, given)}


def _decision(given: m.Answer) -> EventBody:
    if isinstance(given, m.DecidePermission):
        reason = {"deny_message": given.reason} if given.reason and not given.granted else {}
        return {"result": "allow" if given.granted else "deny", **reason}
    if isinstance(given, m.ContinueTurn):
        return {"result": "allow" if given.proceed else "deny"}
    return {"result": "deny", "deny_message": CANCELLED}


def _result(asked: RemoteAsk, given: m.Answer) -> EventBody:
    if isinstance(given, m.ReturnResult):
        return {"content": _blocks(given.content), "is_error": given.is_error}
    if isinstance(given, m.AnswerQuestion) and isinstance(asked.ask, m.QuestionAsk):
        return {"content": _blocks(m.format_answer(asked.ask, given)), "is_error": False}
    if isinstance(given, m.RollBack):
        return {"content": _blocks(given.option or ""), "is_error": False}
    return {"content": _blocks(CANCELLED), "is_error": True}


# -- content ----------------------------------------------------------------------------------------------------------

def _blocks(said: m.Content) -> list[EventBody]:
    return [*_parts((m.TextPart(text=said),) if isinstance(said, str) else said)]


def _parts(parts: Iterable[m.AnyPart]) -> Iterable[EventBody]:
    """Text, images and files; CAS has no other parts."""
    for part in parts:
        if isinstance(part, m.TextPart):
            yield {"type": "text", "text": part.text}
        elif isinstance(part, m.ImagePart):
            yield {"type": "image", "source": _source(part.url, part.media_type)}
        elif isinstance(part, m.FilePart):
            yield _document(part)


def _document(file: m.FilePart) -> EventBody:
    if not file.url:
        raise Unsupported(f"the file '{file.name}' is kept here, and cannot be handed to a server elsewhere")
    return {"type": "document", "title": file.name, "source": _source(file.url, file.media_type)}


def _source(url: str, media_type: str | None) -> EventBody:
    """A `data:` address is taken apart: servers that fetch addresses do not fetch those."""
    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not comma or not head.endswith(";base64"):
        return {"type": "url", "url": url}
    told = head.removeprefix("data:").removesuffix(";base64").partition(";")[0]
    return {"type": "base64", "media_type": told or media_type or "application/octet-stream", "data": body}
