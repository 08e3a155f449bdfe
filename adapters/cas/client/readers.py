"""Reads the events and bodies of a CAS server with the table; what does not fit it is a failure of the server."""

from collections.abc import Mapping, Sequence
from typing import Any

import gateway.model as m
from adapters.cas.bodies import PageBody
from adapters.cas.content import with_named_files
from gateway.client import PAGE, HttpClient
from gateway.errors import BackendFailed
from mappings.language import ServerTable

CAS = ServerTable("adapters.cas", "json")
PREVIEWS = ("preview.", "raw.")
"""How the cues of a message in progress begin, which the server does not keep."""


class ReceivedEvent:
    """One event of a server: its cue, what stands in its envelope, and its other bindings."""

    ENVELOPE = ("id", "thread_id", "turn_id")
    __slots__ = ("cue", "given", "id", "is_preview", "thread_id", "turn_id")

    def __init__(self, cue: str, given: dict[str, Any], frame_id: str) -> None:
        """`frame_id` is the id of an event that has none of its own."""
        self.cue, self.given, self.is_preview = cue, given, cue.startswith(PREVIEWS)
        self.id: str = given.pop("id", None) or frame_id
        self.thread_id: str = given.pop("thread_id", None) or ""
        self.turn_id: str = given.pop("turn_id", None) or ""


# -- values -----------------------------------------------------------------------------------------------------------

def read_parts(content: Sequence[m.AnyPart] | None) -> tuple[m.AnyPart, ...]:
    """Content as the table has read it."""
    return with_named_files(content or ())


def simplified_content(parts: tuple[m.AnyPart, ...]) -> m.Content:
    """Canonical content: text alone is a bare string."""
    if len(parts) > 1:
        return parts
    return parts[0].text if parts and isinstance(parts[0], m.TextPart) else parts or ""


def read_fault(told: Mapping[str, Any], *, is_retried: bool = False) -> m.Fault:
    """The fault of an event; a server that tries again by itself has had one that may pass."""
    code = told["code"] or m.FaultCode.BACKEND
    message = told["message"] or "The server tells of an error, and not of which."
    return m.Fault(code=code, message=message, retryable=is_retried or code.is_retryable)


# -- bodies -----------------------------------------------------------------------------------------------------------

def require_id(found: str | None, noun: str) -> str:
    if not found:
        raise BackendFailed(f"the upstream was asked for {noun}, and answered with one that has no id")
    return found


async def read_page(
    upstream: HttpClient, path: str, name: str | None, *, order: str = "asc", after: str = "",
) -> tuple[list[dict[str, Any]], str | None]:
    """The bodies of a page of a list, oldest first or newest first, and the name of the next page."""
    place = {"page": name} if name is not None else {"after_id": after} if after else {}
    told = await upstream.json("GET", path, query={"limit": str(PAGE), "order": order, **place})
    page = CAS.read(PageBody.row, told, "a list")
    items = page["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BackendFailed(f"{upstream.name} answered with a list that has no data")
    return items, page["next_page"] if page["has_more"] else None
