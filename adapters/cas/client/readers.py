"""Reads values of CAS events safely; a shape that the protocol does not have is a failure of the server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.ports import ParsedFrame
from mappings.language import Table, builtin_table

EnumWord = TypeVar("EnumWord", bound=StrEnum)
RETRYING = "retrying"
"""The server tries again by itself."""


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """One event of a server: its type, its id, and its fields."""

    type: str
    id: str
    body: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A field that is a string where it is there at all."""
        found = self.body.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.malformed(f"'{name}' is no string")
        return found

    def object(self, name: str) -> Mapping[str, Any]:
        """A field that is an object where it is there at all."""
        found = self.body.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.malformed(f"'{name}' is no object")
        return found

    def content(self, name: str = "content") -> tuple[m.AnyPart, ...]:
        """Content blocks, or a bare string; blocks of an unknown type are ignored."""
        found = self.body.get(name)
        if found is None or isinstance(found, str):
            return (m.TextPart(text=found),) if found else ()
        if not isinstance(found, list) or not all(isinstance(block, dict) for block in found):
            raise self.malformed(f"'{name}' is no list of content blocks")
        return tuple(part for block in found for part in _read_parts(block))

    def malformed(self, why: str) -> BackendFailed:
        return BackendFailed(f"the upstream sent '{self.type[:64]}' in a shape that cannot be: {why}")


def _read_parts(block: Mapping[str, Any]) -> Iterable[m.AnyPart]:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    kind, url, file_id = block.get("type"), _read_address(source), source.get("file_id")
    if kind == "text" and isinstance(block.get("text"), str):
        yield m.TextPart(text=block["text"])
    elif kind == "image" and url:
        yield m.ImagePart(url=url, media_type=_text_or_none(source.get("media_type")))
    elif kind == "document" and source.get("type") == "text" and isinstance(source.get("data"), str):
        yield m.TextPart(text=source["data"])
    elif kind in ("document", "image") and (url or _text_or_none(file_id)):
        name = _text_or_none(block.get("title")) or _text_or_none(file_id) or kind
        yield m.FilePart(
            name=name, url=url, file_id=_text_or_none(file_id), media_type=_text_or_none(source.get("media_type"))
        )


def _read_address(source: Mapping[str, Any]) -> str | None:
    if source.get("type") == "base64" and _text_or_none(source.get("data")) and _text_or_none(source.get("media_type")):
        return f"data:{source['media_type']};base64,{''.join(source['data'].split())}"
    return _text_or_none(source.get("url"))


def _text_or_none(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None


def simplified_content(parts: tuple[m.AnyPart, ...]) -> m.Content:
    """Canonical content: text alone is a bare string."""
    if len(parts) > 1:
        return parts
    return parts[0].text if parts and isinstance(parts[0], m.TextPart) else parts or ""


def read_usage(told: Mapping[str, Any]) -> m.Usage:
    """Usage; a missing value, or one that is no number, is 0."""
    def count(name: str) -> int:
        found = told.get(name)
        return max(0, found) if isinstance(found, int) and not isinstance(found, bool) else 0

    return m.Usage(
        input_tokens=count("input_tokens"), output_tokens=count("output_tokens"),
        cache_read_tokens=count("cache_read_input_tokens"), cache_write_tokens=count("cache_creation_input_tokens"),
    )


def usage_difference(total: m.Usage, told: m.Usage) -> m.Usage:
    """The part of the total that was not counted yet."""
    return m.Usage(**{name: max(0, getattr(total, name) - getattr(told, name)) for name in total.__struct_fields__})


def read_fault(told: ReceivedEvent) -> tuple[m.Fault, bool]:
    """The fault of a `session.error`, and whether the server tries again by itself."""
    error = told.object("error")
    status = error.get("retry_status")
    again = (status.get("type") if isinstance(status, dict) else status) == RETRYING
    code = meanings().faults.get(str(error.get("type")), m.FaultCode.BACKEND)
    message = _text_or_none(error.get("message")) or "The server tells of an error, and not of which."
    return m.Fault(code=code, message=message, retryable=again or code.is_retryable), again


# -- the table, read from right to left -------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Meanings:
    """The members that the dialect's words stand for, if they are unambiguous."""

    permissions: Mapping[str, m.Permission]
    stops: Mapping[str, m.StopReason]
    message_stops: Mapping[str, m.StopReason]
    scopes: Mapping[str, m.ScopeStatus]
    faults: Mapping[str, m.FaultCode]


@cache
def meanings() -> Meanings:
    table = _builtin_table()
    return Meanings(
        permissions=reversed_words(table, "permission", m.Permission),
        stops=reversed_words(table, "stop_reason", m.StopReason),
        message_stops=reversed_words(table, "stop_reason@message", m.StopReason),
        scopes=reversed_words(table, "scope_status", m.ScopeStatus),
        faults=reversed_words(table, "fault", m.FaultCode),
    )


def reversed_words(table: Table, enum_map: str, members: type[EnumWord]) -> dict[str, EnumWord]:
    """Word → member; of several members that share a word, the one of that name, or none."""
    meant: dict[str, list[EnumWord]] = {}
    for member in members:
        meant.setdefault(table.word(enum_map, member), []).append(member)
    own = {word: [one for one in them if one == word] or them for word, them in meant.items()}
    return {word: them[0] for word, them in own.items() if len(them) == 1}


def _builtin_table() -> Table:
    from adapters.cas import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


PREVIEW_TYPES = frozenset((
    "event_start", "event_delta", "agent.message_start", "agent.content_block_start", "agent.content_block_delta",
    "agent.content_block_stop", "agent.message_delta", "agent.message_stop",
))
"""The events of a message in progress, which the server does not keep."""


def event_type_of(frame: ParsedFrame) -> str:
    """The type an event has itself, or else the name the transport gave it."""
    own = frame.body.get("type") if isinstance(frame.body, dict) else None
    return own if isinstance(own, str) else frame.name


def frame_event_id(frame: ParsedFrame) -> str:
    """The id of an event, or else of its frame."""
    own = frame.body.get("id") if isinstance(frame.body, dict) else None
    return own if isinstance(own, str) and own else frame.id


def is_stored(frame: ParsedFrame) -> bool:
    """Whether a server keeps this event, so that a stream can be taken up after it."""
    return event_type_of(frame) not in PREVIEW_TYPES


def previewed_event_id(frame: ParsedFrame) -> str:
    """The id of the event that a preview is of, where it names it."""
    event = frame.body.get("event") if isinstance(frame.body, dict) else None
    named = frame.body.get("event_id") if isinstance(frame.body, dict) else None
    found = event.get("id") if isinstance(event, dict) else named
    return found if isinstance(found, str) else ""
