"""CAS, overheard: what people said, read out of the events they sent, or out of a stream, which repeats them."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.model import AgentCard, AnyCommand, Capabilities, OpenAsk, SessionView
from gateway.upstream import Frame
from mappings.language import Table

from . import inbound, wire

CARD = AgentCard(name="", capabilities=Capabilities(images=("http", "data")))
"""Whatever the agent was, it has taken what was sent."""
MODELS: dict[str, type[BaseModel]] = {
    "user.message": wire.UserMessage, "user.interrupt": wire.UserInterrupt,
    "user.tool_confirmation": wire.ToolConfirmation, "user.custom_tool_result": wire.CustomToolResult,
}
EVENT: TypeAdapter[Any] = TypeAdapter(wire.UserEvent)


def overheard(frame: Frame, view: SessionView, table: Table) -> Sequence[AnyCommand]:
    """Answers name the events that asked; those that nobody asked say nothing."""
    body = frame.body if isinstance(frame.body, dict) else {}
    events = body.get("events") if isinstance(body.get("events"), list) else [body]
    found = [_command(event, view, table) for event in events or () if isinstance(event, dict)]
    return [command for command in found if command is not None]


def _command(told: dict[str, Any], view: SessionView, table: Table) -> AnyCommand | None:
    model = MODELS.get(str(told.get("type")))
    if model is None:
        return None
    try:
        event = EVENT.validate_python({name: told[name] for name in model.model_fields if name in told})
    except ValidationError:
        return None
    if isinstance(event, wire.ToolConfirmation):
        ask = _asked(event.tool_use_id, view)
        return inbound._confirmation(event, ask, table) if ask is not None else None
    if isinstance(event, wire.CustomToolResult):
        ask = _asked(event.custom_tool_use_id, view)
        return inbound._result(event, ask, CARD, table) if ask is not None else None
    return inbound._command(event, view, CARD, table)


def _asked(event_id: str, view: SessionView) -> OpenAsk | None:
    return view.asks.get(event_id)
