"""CAS, heard: what stands in the body of an event, read kindly; a shape that cannot be is a failure of the server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from gateway.errors import BackendFailed
from gateway.model import (
    AnyPart,
    Content,
    Fault,
    FaultCode,
    FilePart,
    ImagePart,
    Permission,
    ScopeStatus,
    StopReason,
    TextPart,
    Usage,
)
from mappings.language import Table, builtin_table

Word = TypeVar("Word", bound=StrEnum)
RETRYING = "retrying"
"""The server tries again by itself."""


@dataclass(frozen=True, slots=True)
class Told:
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
            raise self.wrong(f"'{name}' is no string")
        return found

    def object(self, name: str) -> Mapping[str, Any]:
        """A field that is an object where it is there at all."""
        found = self.body.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.wrong(f"'{name}' is no object")
        return found

    def content(self, name: str = "content") -> tuple[AnyPart, ...]:
        """Content blocks, or a bare string; blocks of a kind that nobody knows say nothing."""
        found = self.body.get(name)
        if found is None or isinstance(found, str):
            return (TextPart(text=found),) if found else ()
        if not isinstance(found, list) or not all(isinstance(block, dict) for block in found):
            raise self.wrong(f"'{name}' is no list of content blocks")
        return tuple(part for block in found for part in _parts(block))

    def wrong(self, why: str) -> BackendFailed:
        return BackendFailed(f"the upstream sent '{self.type[:64]}' in a shape that cannot be: {why}")


def _parts(block: Mapping[str, Any]) -> Iterable[AnyPart]:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    kind, url, file_id = block.get("type"), _address(source), source.get("file_id")
    if kind == "text" and isinstance(block.get("text"), str):
        yield TextPart(text=block["text"])
    elif kind == "image" and url:
        yield ImagePart(url=url, media_type=_word(source.get("media_type")))
    elif kind == "document" and source.get("type") == "text" and isinstance(source.get("data"), str):
        yield TextPart(text=source["data"])
    elif kind in ("document", "image") and (url or _word(file_id)):
        name = _word(block.get("title")) or _word(file_id) or kind
        yield FilePart(name=name, url=url, file_id=_word(file_id), media_type=_word(source.get("media_type")))


def _address(source: Mapping[str, Any]) -> str | None:
    if source.get("type") == "base64" and _word(source.get("data")) and _word(source.get("media_type")):
        return f"data:{source['media_type']};base64,{''.join(source['data'].split())}"
    return _word(source.get("url"))


def _word(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None


def whole(parts: tuple[AnyPart, ...]) -> Content:
    """Content as the house likes it: nothing but words is a bare string."""
    if len(parts) > 1:
        return parts
    return parts[0].text if parts and isinstance(parts[0], TextPart) else parts or ""


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Tokens; what is missing or no number is none."""
    def count(name: str) -> int:
        found = told.get(name)
        return max(0, found) if isinstance(found, int) and not isinstance(found, bool) else 0

    return Usage(
        input_tokens=count("input_tokens"), output_tokens=count("output_tokens"),
        cache_read_tokens=count("cache_read_input_tokens"), cache_write_tokens=count("cache_creation_input_tokens"),
    )


def rest_of(total: Usage, told: Usage) -> Usage:
    """What of the total was not told yet."""
    return Usage(**{name: max(0, getattr(total, name) - getattr(told, name)) for name in total.__struct_fields__})


def fault_of(told: Told) -> tuple[Fault, bool]:
    """What a `session.error` tells, and whether the server tries again by itself."""
    error = told.object("error")
    status = error.get("retry_status")
    again = (status.get("type") if isinstance(status, dict) else status) == RETRYING
    code = words().faults.get(str(error.get("type")), FaultCode.BACKEND)
    message = _word(error.get("message")) or "The server tells of an error, and not of which."
    return Fault(code=code, message=message, retryable=again or code.is_passing), again


# -- the table, read from right to left -------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Words:
    """What the dialect's words mean to the house, where they mean one thing."""

    permissions: Mapping[str, Permission]
    stops: Mapping[str, StopReason]
    message_stops: Mapping[str, StopReason]
    scopes: Mapping[str, ScopeStatus]
    faults: Mapping[str, FaultCode]


@cache
def words() -> Words:
    table = _table()
    return Words(
        permissions=turned(table, "permission", Permission), stops=turned(table, "stop_reason", StopReason),
        message_stops=turned(table, "stop_reason@message", StopReason),
        scopes=turned(table, "scope_status", ScopeStatus), faults=turned(table, "fault", FaultCode),
    )


def turned(table: Table, enum_map: str, members: type[Word]) -> dict[str, Word]:
    """Word → member; of several members that share a word, the one that is called so itself, or none."""
    meant: dict[str, list[Word]] = {}
    for member in members:
        meant.setdefault(table.word(enum_map, member), []).append(member)
    own = {word: [one for one in them if one == word] or them for word, them in meant.items()}
    return {word: them[0] for word, them in own.items() if len(them) == 1}


def _table() -> Table:
    from . import DIALECT  # the dialect has its hearing, so it cannot be imported before
    return builtin_table(DIALECT)
