"""Reads the events of a CAS server with the table; a shape that the table does not have is a failure of the server."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import gateway.model as m
from adapters.cas.bodies import PageBody
from adapters.cas.content import with_named_files
from gateway.errors import BackendFailed
from gateway.ports import ParsedFrame
from mappings.language import FrameDecoder, Table, UnreadableBody, builtin_table

THREAD_NAMES = ("parent_id", "agent_id", "agent_name", "role", "caused_by")
STATUS_NAMES = (*THREAD_NAMES, "status")
FAULT_NAMES = ("fault",)
RESULT_NAMES = ("answers", "content", "is_error")
MAIL_NAMES = ("from_id", "to_id", "content", "is_error")
PREVIEW_BINDINGS: Mapping[str, Sequence[str]] = {
    "preview.started": ("final_id", "type"),
    "preview.delta": ("final_id", "index", "delta"),
    "raw.message_start": ("message_id", "model"),
    "raw.start.text": ("index",),
    "raw.start.thinking": ("index",),
    "raw.start.tool_use": ("index",),
    "raw.delta.text": ("index", "delta"),
    "raw.delta.thinking": ("index", "delta"),
    "raw.delta.tool_use": (),
    "raw.delta.signature": ("index", "signature"),
    "raw.stop": ("index",),
    "raw.message_delta": ("stop_reason",),
    "raw.message_stop": (),
}
"""The cues of a message in progress, which the server does not keep, with the bindings that are read."""
EVENT_BINDINGS: Mapping[str, Sequence[str]] = {
    "input.accepted.send_message": (),
    "input.accepted.interrupt": (),
    "input.accepted.decide_permission": (),
    "input.accepted.return_result": RESULT_NAMES,
    "outcome.defined": (),
    "system.said": (),
    "turn.started": (),
    "turn.suspended": ("blocking", "usage"),
    "turn.ended": ("stop_reason", "usage"),
    "session.updated": ("title", "shown"),
    "session.compacted": ("summary",),
    "session.closed.archived": ("title", "shown"),
    "session.closed.terminated": (),
    "session.closed.deleted": (),
    "fault.raised": FAULT_NAMES,
    "fault.retried": FAULT_NAMES,
    "stream.aborted": FAULT_NAMES,
    "message.started": ("model",),
    "message.ended": ("is_error", "usage"),
    "said.text": ("content",),
    "said.thinking": ("text", "signature"),
    "call.builtin": ("call",),
    "call.mcp": ("call", "server"),
    "call.client": ("call",),
    "tool.returned": RESULT_NAMES,
    "tool.returned.mcp": RESULT_NAMES,
    "artifact.delivered": ("file",),
    "scope.opened": THREAD_NAMES,
    "scope.status.running": STATUS_NAMES,
    "scope.status.idle": (*STATUS_NAMES, "why"),
    "scope.status.blocked": THREAD_NAMES,
    "scope.status.ended": (*STATUS_NAMES, "why"),
    "scope.status.archived": THREAD_NAMES,
    "mail.sent": MAIL_NAMES,
    "mail.received": MAIL_NAMES,
}
"""The cues of events that a server keeps, with the bindings that are read."""
ENVELOPE_NAMES = ("id", "thread_id", "turn_id")
"""What is read of every event."""


class ReceivedEvent:
    """One event of a server: its cue, its id, and its bindings; of an event that the table does not have, the id."""

    __slots__ = ("cue", "given", "id")

    def __init__(self, cue: str, event_id: str, given: Mapping[str, Any]) -> None:
        self.cue, self.id, self.given = cue, event_id, given

    @property
    def is_preview(self) -> bool:
        """Whether the server does not keep this event, so that a stream cannot be taken up after it."""
        return self.cue in PREVIEW_BINDINGS

    @property
    def turn_id(self) -> str:
        return self.given["turn_id"] or ""

    @property
    def thread_id(self) -> str:
        return self.given["thread_id"] or ""

    def text(self, name: str) -> str:
        return self.given[name] or ""


UNKNOWN: Mapping[str, Any] = dict.fromkeys(ENVELOPE_NAMES)
"""What is known of an event that the table does not have."""
MALFORMED = "malformed"
"""The cue of an event that the table has in another shape: `why` says what is wrong with it."""


def read_event(frame: ParsedFrame) -> ReceivedEvent:
    """The event of a frame; its own id, or else that of its frame."""
    try:
        read = frame_decoder().read(frame.name, frame.body)
    except UnreadableBody as error:
        found = frame_decoder().find(frame.name, frame.body)
        why = f"the upstream sent '{found.wire if found else frame.name}' in a shape that cannot be: {error}"
        return ReceivedEvent(MALFORMED, frame.id, {**UNKNOWN, "why": why})
    if read is None:
        return ReceivedEvent("", frame.id, UNKNOWN)
    cue, given = read
    return ReceivedEvent(cue, given["id"] or frame.id, given)


def listed_event(body: Any) -> ReceivedEvent:
    """An event of a list."""
    return read_event(ParsedFrame("", body))


def cue_of_type(event_type: str | None) -> str:
    """The cue of events that have this type."""
    found = frame_decoder().find(event_type or "", {})
    return found.cue if found else ""


# -- values -----------------------------------------------------------------------------------------------------------

def read_parts(content: Sequence[m.AnyPart] | None) -> tuple[m.AnyPart, ...]:
    """Content as the table has read it."""
    return with_named_files(content or ())


def simplified_content(parts: tuple[m.AnyPart, ...]) -> m.Content:
    """Canonical content: text alone is a bare string."""
    if len(parts) > 1:
        return parts
    return parts[0].text if parts and isinstance(parts[0], m.TextPart) else parts or ""


def read_usage(counted: Mapping[str, int | None]) -> m.Usage:
    """Usage; a missing value, or one that is no number, is 0."""
    return m.Usage(**{name: max(0, value or 0) for name, value in counted.items()})


def usage_difference(total: m.Usage, told: m.Usage) -> m.Usage:
    """The part of the total that was not counted yet."""
    return m.Usage(**{name: max(0, getattr(total, name) - getattr(told, name)) for name in total.__struct_fields__})


def read_stop_reason(word: m.StopReason | str | None) -> m.StopReason:
    """A word that the table does not have is the stop reason of that name, or a natural end."""
    if isinstance(word, m.StopReason):
        return word
    return next((one for one in m.StopReason if one == word), m.StopReason.END_TURN)


def read_fault(event: ReceivedEvent) -> m.Fault:
    """The fault of an event; a server that tries again by itself has had one that may pass."""
    code, message = event.given["fault"]["code"], event.given["fault"]["message"]
    code = code if isinstance(code, m.FaultCode) else m.FaultCode.BACKEND
    return m.Fault(
        code=code, message=message or "The server tells of an error, and not of which.",
        retryable=event.cue == "fault.retried" or code.is_retryable,
    )


# -- bodies -----------------------------------------------------------------------------------------------------------

def read_body(row: str, body: Any, noun: str) -> dict[str, Any]:
    """What a server has answered with, by the names of the table's row. Raises `BackendFailed`."""
    if not isinstance(body, dict):
        raise BackendFailed(f"the upstream was asked for {noun}, and answered with something else")
    try:
        return builtin_cas_table().read_object(row, body)
    except UnreadableBody as error:
        raise BackendFailed(f"the upstream was asked for {noun}, and answered what cannot be: {error}") from None


def require_id(found: str | None, noun: str) -> str:
    if not found:
        raise BackendFailed(f"the upstream was asked for {noun}, and answered with one that has no id")
    return found


def read_page(body: Any, noun: str, server: str) -> tuple[list[dict[str, Any]], str | None]:
    """The bodies of one page of a list, and the name of the next page."""
    page = read_body(PageBody.row, body, noun)
    items = page["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BackendFailed(f"{server} answered with a list that has no data")
    return items, page["next_page"] if page["has_more"] else None


# -- the table --------------------------------------------------------------------------------------------------------

@cache
def builtin_cas_table() -> Table:
    """The table that comes with the gateway; a server knows nothing of this deployment's overrides."""
    from adapters.cas import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


@cache
def frame_decoder() -> FrameDecoder:
    wanted = {cue: (*ENVELOPE_NAMES, *names) for cue, names in {**PREVIEW_BINDINGS, **EVENT_BINDINGS}.items()}
    return builtin_cas_table().decoder("json", wanted=wanted)
