"""CAS, inward: validated events in, commands out. No clock, no socket."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from gateway.errors import Invalid, NotPending, Unsupported
from gateway.ids import repeated
from gateway.model import (
    AgentCard,
    AnyAsk,
    AnyCommand,
    AnyPart,
    ClientToolAsk,
    Configure,
    Content,
    FilePart,
    ImagePart,
    OpenAsk,
    PermissionAsk,
    QuestionAsk,
    SessionView,
    TextPart,
    asks_people,
    event_id_of,
    meant_by,
)
from mappings.language import Table

from . import wire

ACCOMPANIED = (wire.UserMessage, wire.CustomToolResult, wire.ToolResult)
"""What a system message may go with."""


def commands_of(events: Sequence[Any], view: SessionView, card: AgentCard, table: Table) -> list[AnyCommand]:
    """One command for each event, in order; a system message also changes the settings, before its turn begins."""
    _check_once(events)
    commands = [_command(event, view, card, table) for event in events]
    return commands if (system := _system(events)) is None else [
        Configure(settings=replace(view.settings, system="\n\n".join(filter(None, (view.settings.system, system))))),
        *commands,
    ]


def _system(events: Sequence[Any]) -> str | None:
    """The words of a system message, which is the last event and goes with the one before it."""
    places = [number for number, event in enumerate(events) if isinstance(event, wire.SystemMessage)]
    if not places:
        return None
    if places != [len(events) - 1] or not isinstance(events[-2:][0], ACCOMPANIED):
        raise Invalid("system.message: send one, last, after a message or a result of a tool", param="events")
    return "".join(block.text for block in events[-1].content)


def check_first(events: Sequence[Any], card: AgentCard, table: Table) -> None:
    """Refuse what a session could not begin with, before there is one."""
    commands_of(events, SessionView(session_id=""), card, table)
    if sum(isinstance(event, wire.UserMessage) for event in events) > 1:
        raise Invalid("initial_events: one user.message at most, as each starts a turn", param="initial_events")


def _named(event: Any) -> str:
    """The event that this one answers, if it answers one."""
    return str(getattr(event, "tool_use_id", "") or getattr(event, "custom_tool_use_id", ""))


def _check_once(events: Sequence[Any]) -> None:
    if (answered := repeated(filter(None, map(_named, events)))) is not None:
        raise NotPending(f"'{answered}' is answered twice.")


def told_by_call(ask: AnyAsk) -> bool:
    """Whether an ask was told by the call it is about."""
    return isinstance(ask, PermissionAsk | ClientToolAsk) or (isinstance(ask, QuestionAsk) and asks_people(ask.call))


def told_as(view: SessionView, ask: OpenAsk) -> str:
    """The id of the event that an ask was told by, and that its answer has to name."""
    place = view.call_places.get(ask.call_id or "") if told_by_call(ask.ask) else None
    return event_id_of(view.session_id, ask.seq if place is None else place)


def _command(event: Any, view: SessionView, card: AgentCard, table: Table) -> AnyCommand:
    if isinstance(event, wire.UserMessage):
        return table.command(event.type, content=_content(event.content, card))
    if isinstance(event, wire.ToolConfirmation):
        return _confirmation(event, _pending(event.tool_use_id, view), table)
    if isinstance(event, wire.CustomToolResult | wire.ToolResult):
        return _result(event, _pending(_named(event), view), card, table)
    if isinstance(event, wire.DefineOutcome | wire.SystemMessage):
        return table.command(event.type, fields=event.model_dump(exclude={"type"}))
    return table.command(event.type)


def _pending(event_id: str, view: SessionView) -> OpenAsk:
    for ask in view.asks.values():
        if told_as(view, ask) == event_id:
            return ask
    raise NotPending(f"'{event_id}' is not pending: it was answered already, or never asked for one.")


def _confirmation(event: wire.ToolConfirmation, ask: OpenAsk, table: Table) -> AnyCommand:
    granted = event.result == "allow"
    if ask.ask.kind == "continuation":
        return table.command("answer.continuation", request_id=ask.request_id, proceed=granted)
    if ask.ask.kind != "permission":
        raise Invalid(f"'{event.tool_use_id}' waits for user.custom_tool_result", param="tool_use_id")
    reason = None if granted else event.deny_message
    return table.command(event.type, request_id=ask.request_id, granted=granted, reason=reason)


def _result(event: wire.CustomToolResult | wire.ToolResult, ask: OpenAsk, card: AgentCard, table: Table) -> AnyCommand:
    content = _content(event.content or "", card)
    if ask.ask.kind == "client_tool":
        return table.command(
            "user.custom_tool_result", request_id=ask.request_id, content=content, is_error=bool(event.is_error),
        )
    meant = meant_by(ask.ask, content)
    if meant is None:
        param = "tool_use_id" if isinstance(event, wire.ToolResult) else "custom_tool_use_id"
        raise Invalid(f"'{_named(event)}' waits for user.tool_confirmation", param=param)
    return table.command(f"answer.{ask.ask.kind}", request_id=ask.request_id, **meant)


def blocks_of(events: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Every content block of these events, and where it stands among them."""
    for number, event in enumerate(events):
        content = getattr(event, "content", None)
        for place, block in enumerate(content if isinstance(content, list) else ()):
            yield f"{number}.content.{place}", block


# -- content ----------------------------------------------------------------------------------------------------------

def _content(content: str | list[Any], card: AgentCard) -> Content:
    return content if isinstance(content, str) else tuple(_part(block, card) for block in content)


def _part(block: Any, card: AgentCard) -> AnyPart:
    if isinstance(block, wire.TextBlock):
        return TextPart(text=block.text)
    if isinstance(block.source, wire.TextSource):
        return TextPart(text=block.source.data)
    if isinstance(block, wire.DocumentBlock) or isinstance(block.source, wire.FileSource):
        return _file(block)
    url = _address(block.source)
    if not card.takes_image(url):
        raise Unsupported(f"agent '{card.name}' does not take images by {card.image_kind(url)} address")
    return ImagePart(url=url, media_type=getattr(block.source, "media_type", None))


def _file(block: Any) -> FilePart:
    file_id, title = getattr(block.source, "file_id", None), getattr(block, "title", None)
    if file_id is not None:
        return FilePart(name=title or file_id, file_id=file_id)
    media_type = getattr(block.source, "media_type", None)
    return FilePart(name=title or "document", url=_address(block.source), media_type=media_type)


def _address(source: Any) -> str:
    if isinstance(source, wire.UrlSource):
        return source.url
    return f"data:{source.media_type};base64,{''.join(source.data.split())}"
