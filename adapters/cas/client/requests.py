"""Makes the events that a CAS server takes, messages and answers of people, in the words of the dialect's table."""

import gateway.model as m
from adapters.cas.bodies import Base64SourceBody, DocumentBlockBody, ImageBlockBody, UrlSourceBody
from gateway.errors import Unsupported
from gateway.json_values import JsonObject
from gateway.ports import RemoteAsk

from .readers import CAS

EventBody = JsonObject
CANCELLED = "Nobody has answered: it was cancelled, or took too long."
DEFAULT_MEDIA_TYPE = "application/octet-stream"


def message_event(command: m.SendMessage) -> EventBody:
    return _event("user.message", content=_blocks(command.content))


def interrupt_event() -> EventBody:
    return _event("user.interrupt")


def answer_event(asked: RemoteAsk, given: m.Answer) -> EventBody:
    """An ask for leave is confirmed or denied; everything else is answered by the result of a custom tool."""
    if isinstance(asked.ask, m.PermissionAsk | m.ContinuationAsk):
        granted, reason = _decision(given)
        return _event("user.tool_confirmation", request_id=asked.ref, granted=granted, reason=reason)
    content, is_error = _result(asked, given)
    return _event("user.custom_tool_result", request_id=asked.ref, content=_blocks(content), is_error=is_error)


def _event(message: str, **bindings: object) -> EventBody:
    made: EventBody = CAS.table.message(message, **bindings)
    return made


def _decision(given: m.Answer) -> tuple[bool, str | None]:
    """Whether something may go on, and why not."""
    if isinstance(given, m.DecidePermission):
        return given.granted, None if given.granted else given.reason or None
    return (given.proceed, None) if isinstance(given, m.ContinueTurn) else (False, CANCELLED)


def _result(asked: RemoteAsk, given: m.Answer) -> tuple[m.Content, bool]:
    """The content of a result, and whether it is an error."""
    if isinstance(given, m.ReturnResult):
        return given.content, given.is_error
    if isinstance(given, m.AnswerQuestion) and isinstance(asked.ask, m.QuestionAsk):
        return m.format_answer(asked.ask, given), False
    return (given.option or "", False) if isinstance(given, m.RollBack) else (CANCELLED, True)


# -- content ----------------------------------------------------------------------------------------------------------

def _blocks(content: m.Content) -> list[object]:
    """Text, images and files; CAS has no other parts."""
    return [_block(part) for part in m.parts_of(content) if isinstance(part, m.TextPart | m.ImagePart | m.FilePart)]


def _block(part: m.TextPart | m.ImagePart | m.FilePart) -> object:
    if isinstance(part, m.TextPart):
        return part
    if isinstance(part, m.ImagePart):
        return CAS.spell(ImageBlockBody(source=_source(part.url, part.media_type)))
    if not part.url:
        raise Unsupported(f"the file '{part.name}' is kept here, and cannot be handed to a server elsewhere")
    return CAS.spell(DocumentBlockBody(title=part.name, source=_source(part.url, part.media_type)))


def _source(url: str, media_type: str | None) -> JsonObject:
    """A `data:` address is taken apart: servers that fetch addresses do not fetch those."""
    if (held := m.base64_of(url)) is None:
        return CAS.spell(UrlSourceBody(url=url))
    return CAS.spell(Base64SourceBody(media_type=held[0] or media_type or DEFAULT_MEDIA_TYPE, data=held[1]))
