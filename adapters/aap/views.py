"""AAP's bodies: sessions, agents and history as the table spells them."""

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.model import (
    ROOT,
    AgentCard,
    AgentOption,
    AnyAsk,
    AnyPart,
    Content,
    DataPart,
    Entry,
    FilePart,
    ImagePart,
    OpenAsk,
    OptionKind,
    Permission,
    QuestionAsk,
    Role,
    SessionView,
    TextPart,
    ToolOrigin,
    ToolSpec,
    as_call,
    call_of,
    in_markdown,
)
from mappings.language import Table

OBJECTS = {
    "meta": ("agents",),
    "agent": ("name", "version", "title", "description", "tools", "options", "capabilities"),
    "tool": ("name", "title", "description", "parameters"),
    "option.text": ("name", "title", "description", "choices", "default"),
    "option.secret": ("name", "title", "description", "choices", "default"),
    "option.select": ("name", "title", "description", "choices", "default"),
    "created": ("session_id",),
    "session": ("session_id", "agent", "tools"),
    "session.agent": ("name", "tools", "options"),
    "server_tool": ("name", "trust"),
    "sessions": ("sessions", "next"),
    "history.full": ("messages",),
    "history.compacted": ("messages",),
    "message.system": ("content",),
    "message.user": ("content",),
    "message.assistant": ("content",),
    "message.tool": ("call_id", "content"),
    "message.asked": ("calls",),
    "asked.call": ("call",),
    "asked.continuation": ("request_id", "ask"),
    "asked.rollback": ("request_id", "ask"),
    "turn": ("stop_reason", "messages"),
}
MASK = "***"
OF_TURNS = ("resume", "interrupt")
"""What `GET` and `DELETE` do at `turns/current`."""
TRUST = "trust"


# -- agents -----------------------------------------------------------------------------------------------------------

def meta(table: Table, cards: Iterable[AgentCard]) -> Any:
    return table.object("meta", agents=[_agent(table, card) for card in cards])


def _agent(table: Table, card: AgentCard) -> Any:
    return table.object(
        "agent", name=card.name, version=card.version, title=card.title, description=card.description,
        tools=[_tool(table, tool.spec) for tool in card.tools], options=[_option(table, o) for o in card.options],
        capabilities=_capabilities(card),
    )


def _tool(table: Table, spec: ToolSpec) -> Any:
    return table.object(
        "tool", name=spec.name, title=spec.title, description=spec.description,
        parameters=spec.parameters or {"type": "object"},
    )


def _option(table: Table, option: AgentOption) -> Any:
    hidden = option.kind is OptionKind.SECRET and option.default
    return table.object(
        f"option.{option.kind}", name=option.name, title=option.title, description=option.description,
        choices=option.choices, default=MASK if hidden else option.default,
    )


def _capabilities(card: AgentCard) -> dict[str, Any]:
    """Words as empty objects; what the agent cannot do is not there.

    Beside AAP: what can be done with a turn, and which tools need no permission where nobody says anything of them.
    """
    can = card.capabilities
    groups = {
        "history": can.history, "stream": can.streaming, "image": can.images, "turn": OF_TURNS,
        TRUST: tuple(tool.spec.name for tool in card.tools if tool.permission is Permission.ALLOW),
    }
    told: dict[str, Any] = {group: {word: {} for word in words} for group, words in groups.items() if words}
    return told | ({"application": {"tools": {}}} if can.client_tools else {})


# -- sessions ---------------------------------------------------------------------------------------------------------

def session(table: Table, view: SessionView, card: AgentCard) -> Any:
    filled = card.filled(view.settings)
    hidden = {name: MASK if value else "" for name, value in filled.secrets.items()}
    tools = {t.spec.name: t.permission for t in card.tools} if filled.tools is None else filled.tools
    agent = table.object(
        "session.agent", name=view.agent, options=filled.options | hidden,
        tools=[
            table.object("server_tool", name=name, trust=permission is Permission.ALLOW)
            for name, permission in tools.items() if permission is not Permission.DENY
        ],
    )
    client_tools = [_tool(table, spec) for spec in view.settings.client_tools]
    return table.object("session", session_id=view.session_id, agent=agent, tools=client_tools or None)


# -- history ----------------------------------------------------------------------------------------------------------

def history(table: Table, kind: str, entries: Sequence[Entry], asks: Iterable[OpenAsk] = ()) -> Any:
    """What was said, and last what waits for the client: it must be able to go on from this alone."""
    open_calls = [call for one in asks for call in asked(table, one.request_id, one.ask, one.scope_id)]
    return table.object(f"history.{kind}", messages=[*messages(table, entries), *waiting(table, open_calls)])


def asked(table: Table, request_id: str, ask: AnyAsk, scope_id: str) -> list[Any]:
    """An ask as the call that the stream tells it as; none where it is about one of the agent's own, which is told."""
    call, is_told = call_of(ask), scope_id == ROOT
    if call is None and isinstance(ask, QuestionAsk):
        call, is_told = as_call(ask, request_id), False
    if call is None:
        return [table.object(f"asked.{ask.kind}", request_id=request_id, ask=ask)]
    return [] if is_told else [table.object("asked.call", call=call)]


def waiting(table: Table, calls: Sequence[Any]) -> list[Any]:
    """A last message of such calls, where there are any."""
    return [table.object("message.asked", calls=list(calls))] if calls else []


def messages(table: Table, entries: Iterable[Entry], *, own_only: bool = False) -> list[Any]:
    """The agent's own voice and what was said to it; with `own_only`, without what the client itself said."""
    return [
        _message(table, entry, content) for entry in _results_first(entries)
        if entry.scope_id == ROOT and not (own_only and _by_client(entry))
        for content in [_spoken(entry)] if content or entry.role is not Role.ASSISTANT or _is_seed(entry)
    ]


def _results_first(entries: Iterable[Entry]) -> list[Entry]:
    """Results follow their calls: those of calls that a message gave up stand before that message."""
    ordered: list[Entry] = []
    for entry in entries:
        place = len(ordered)
        while entry.role is Role.TOOL and place and _is_later(ordered[place - 1], entry):
            place -= 1
        ordered.insert(place, entry)
    return ordered


def _is_later(said: Entry, result: Entry) -> bool:
    return said.role is Role.USER and said.turn_id != result.turn_id


def _is_seed(entry: Entry) -> bool:
    return entry.turn_id is None


def _by_client(entry: Entry) -> bool:
    return entry.role is Role.USER or entry.origin is ToolOrigin.CLIENT


def _message(table: Table, entry: Entry, content: Content) -> Any:
    if entry.role is Role.TOOL:
        return table.object("message.tool", call_id=entry.call_id, content=content)
    return table.object(f"message.{entry.role}", content=content)


def _spoken(entry: Entry) -> Content:
    """What an agent shows becomes words, as it does on the stream; what a client sent stays as it was."""
    if entry.role is not Role.ASSISTANT or isinstance(entry.content, str) or _is_seed(entry):
        return entry.content
    return tuple(_in_words(part) for part in entry.content if not isinstance(part, DataPart | FilePart))


def _in_words(part: AnyPart) -> AnyPart:
    return TextPart(text=in_markdown(part)) if isinstance(part, ImagePart) else part
