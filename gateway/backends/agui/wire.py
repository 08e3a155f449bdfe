"""The events of AG-UI as one struct with the fields of all of them."""

import msgspec
from msgspec import Raw, Struct

from gateway.client import replace_lone_surrogates
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import ParsedFrame


class AguiUsage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens of one model; the totals include the parts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class RunInterrupt(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that a run needs before it can go on."""

    id: str
    reason: str = ""
    message: str | None = None
    tool_call_id: str | None = None
    response_schema: JsonObject | None = None
    metadata: JsonValue = None
    announced: JsonValue = None
    """The value of the custom event `on_interrupt` that announced it, if no outcome of the run names it."""


class RunOutcome(Struct, frozen=True, kw_only=True):
    type: str = "success"
    interrupts: tuple[RunInterrupt, ...] = ()


class AguiEvent(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One event; its type decides which fields it has."""

    type: str
    thread_id: str | None = None
    message_id: str | None = None
    role: str | None = None
    delta: JsonValue = None
    tool_call_id: str | None = None
    tool_call_name: str | None = None
    parent_message_id: str | None = None
    content: JsonValue = None
    entity_id: str | None = None
    encrypted_value: str | None = None
    snapshot: JsonValue = None
    messages: list[JsonObject] | None = None
    activity_type: str | None = None
    patch: list[JsonObject] | None = None
    step_name: str | None = None
    name: str | None = None
    value: JsonValue = None
    raw_event: Raw = Raw()
    """The framework's own event; only read for the id of an interrupt."""
    event: JsonValue = None
    source: str | None = None
    message: str | None = None
    code: str | None = None
    outcome: RunOutcome | str | None = None
    usage: tuple[AguiUsage, ...] | None = None
    subagent_run_id: str | None = None
    parent_subagent_run_id: str | None = None
    parent_tool_call_id: str | None = None
    description: str | None = None

    @property
    def words(self) -> str:
        """The delta of a text, a thought or a call's arguments."""
        return self.delta if isinstance(self.delta, str) else ""


_decode = msgspec.json.Decoder(AguiEvent).decode


def decode_frame(data: str) -> ParsedFrame:
    """The event as the body of a frame; raises `BackendFailed` if it is invalid."""
    event = decode_event(data)
    return ParsedFrame(event.type, event)


def decode_event(data: str) -> AguiEvent:
    """Decode one event; raises `BackendFailed` if it is invalid."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if (whole := replace_lone_surrogates(data)) != data:
            return decode_event(whole)
        raise BackendFailed(f"the agent sent an event that cannot be read: {error}") from None
