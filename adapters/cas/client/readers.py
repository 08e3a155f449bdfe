"""Reads events, asks and bodies of a CAS server with the table; what does not fit it is a failure of the server."""

from collections.abc import Mapping, Sequence
from typing import Any

import gateway.model as m
from adapters.cas.asks import CONTINUATION_TOOL, QUESTION_TOOL, ROLLBACK_TOOL
from adapters.cas.bodies import PageBody
from adapters.cas.content import with_named_files
from gateway.client import PAGE, HttpClient, read_continuation, read_questions, read_rollback
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject
from gateway.ports import RemoteAsk
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


def read_fault(error: Mapping[str, Any], *, is_retried: bool = False) -> m.Fault:
    """The fault of an event; if the server retries by itself, the fault is temporary."""
    code = error["code"] or m.FaultCode.BACKEND
    message = error["message"] or "The server reports an error without a message."
    return m.Fault(code=code, message=message, retryable=is_retried or code.is_retryable)


# -- bodies -----------------------------------------------------------------------------------------------------------

def require_id(found: str | None, noun: str) -> str:
    if not found:
        raise BackendFailed(f"the upstream was asked for {noun}, and answered with one that has no id")
    return found


async def read_page(
    upstream: HttpClient, path: str, name: str | None, *, order: str = "asc", after: str = "",
) -> tuple[list[JsonObject], str | None]:
    """The bodies of a page of a list, oldest first or newest first, and the name of the next page."""
    place = {"page": name} if name is not None else {"after_id": after} if after else {}
    response = await upstream.json("GET", path, query={"limit": str(PAGE), "order": order, **place})
    page = CAS.read(PageBody.row, response, "a list")
    items = page["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BackendFailed(f"{upstream.name} answered with a list that has no data")
    return items, page["next_page"] if page["has_more"] else None


class OpenAsks:
    """The asks of one turn, by the events that show them."""

    def __init__(self) -> None:
        self._open: dict[str, RemoteAsk] = {}

    def made(self, call: m.ToolCall, scope_id: str) -> None:
        """Remember a call: if the server waits for it, then for permission, or for the client to run it."""
        is_client = call.origin is m.ToolOrigin.CLIENT
        ask: m.AnyAsk = m.ClientToolAsk(call=call) if is_client else m.PermissionAsk(call=call)
        self._open[call.call_id] = RemoteAsk(ask=ask, ref=call.call_id, scope_id=scope_id)

    def add(self, event_id: str, ask: m.AnyAsk, scope_id: str) -> None:
        self._open[event_id] = RemoteAsk(ask=ask, ref=event_id, scope_id=scope_id)

    def settled(self, event_id: str) -> None:
        self._open.pop(event_id, None)

    def waiting(self, event_ids: Sequence[object] | None) -> list[RemoteAsk]:
        """The asks that the server waits for; if it names none, all that it may wait for."""
        if not event_ids:
            found = [asked for asked in self._open.values() if _may_wait(asked.ask)]
        else:
            found = [self._named(event_id) for event_id in event_ids]
        if not found:
            raise BackendFailed("the upstream waits for people, and does not say for what")
        return found

    def _named(self, event_id: object) -> RemoteAsk:
        found = self._open.get(event_id) if isinstance(event_id, str) else None
        if found is None:
            raise BackendFailed(f"the upstream waits for an answer to '{str(event_id)[:64]}', which it never asked for")
        return found


def _may_wait(ask: m.AnyAsk) -> bool:
    return not isinstance(ask, m.PermissionAsk) or ask.call.permission is m.Permission.ASK


def read_ask(call: m.ToolCall, calls: Sequence[m.ToolCall]) -> m.AnyAsk | None:
    """The ask of a tool use that stands for an ask; `calls` are the open calls."""
    if call.origin is m.ToolOrigin.CLIENT and call.name == QUESTION_TOOL:
        return _read_question_ask(call, calls)
    if call.origin is m.ToolOrigin.CLIENT:
        return read_rollback(call.input, call.call_id) if call.name == ROLLBACK_TOOL else None
    is_asking = call.name == CONTINUATION_TOOL and call.permission is m.Permission.ASK
    return read_continuation(call.input) if is_asking else None


def _read_question_ask(call: m.ToolCall, calls: Sequence[m.ToolCall]) -> m.QuestionAsk | None:
    """The questions; their call is the last call of that name, if the agent has made one."""
    fields = CAS.read_fitting("questions", call.input)
    if not fields or not fields["questions"]:
        return None
    cause = next((one for one in reversed(calls) if one.name == QUESTION_TOOL and one.input == call.input), None)
    cause = cause or next((one for one in reversed(calls) if one.name == QUESTION_TOOL), None)
    return m.QuestionAsk(questions=read_questions(fields["questions"]), call=cause)
