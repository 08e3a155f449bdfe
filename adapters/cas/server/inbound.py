"""Events of CAS clients in, commands and tool settings out, live or from a recording. No clock, no socket."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel, TypeAdapter, ValidationError

import gateway.model as m
from adapters.cas.asks import ask_event_id
from adapters.cas.content import with_named_files
from adapters.cas.wire import (
    POLICIES,
    POLICY_WORDS,
    CustomTool,
    PermissionPolicy,
    Tool,
    ToolConfig,
    ToolDefaults,
    Toolset,
    sessions,
)
from gateway.errors import Invalid, NotPending, Unsupported
from gateway.ids import first_duplicate
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable, ParsedFrame

MESSAGES = (
    "user.message", "user.interrupt", "user.tool_confirmation", "user.custom_tool_result", "user.tool_result",
    "user.define_outcome", "system.message", "answer.question", "answer.continuation", "answer.rollback",
)
"""The client messages that the table spells."""
BEFORE_SYSTEM_MESSAGE = (sessions.UserMessage, sessions.CustomToolResult, sessions.UserToolResult)
"""The events that a system message may accompany."""


def commands_of(
    events: Sequence[object], view: m.SessionView, card: m.AgentCard, table: DialectTable
) -> list[m.AnyCommand]:
    """One command for each event, in order; a system message also changes the settings, before its turn begins."""
    _check_once(events)
    commands = [_command(event, view, card, table) for event in events]
    return commands if (system := _system_text(events)) is None else [
        m.Configure(settings=replace(view.settings, system="\n\n".join(filter(None, (view.settings.system, system))))),
        *commands,
    ]


def _system_text(events: Sequence[Any]) -> str | None:
    """The text of a system message, which is the last event and accompanies the one before it."""
    places = [number for number, event in enumerate(events) if isinstance(event, sessions.SystemMessage)]
    if not places:
        return None
    if places != [len(events) - 1] or not isinstance(events[-2:][0], BEFORE_SYSTEM_MESSAGE):
        raise Invalid("system.message: send one, last, after a message or a result of a tool", param="events")
    return "".join(block.text for block in events[-1].content)


def check_initial_events(events: Sequence[object], card: m.AgentCard, table: DialectTable) -> None:
    """Refuse events that a session cannot begin with, before it is made."""
    commands_of(events, m.SessionView(session_id=""), card, table)
    if sum(isinstance(event, sessions.UserMessage) for event in events) > 1:
        raise Invalid("initial_events: one user.message at most, as each starts a turn", param="initial_events")


def _answered_event_id(event: object) -> str:
    """The event that this one answers, if it answers one."""
    return str(getattr(event, "tool_use_id", "") or getattr(event, "custom_tool_use_id", ""))


def _check_once(events: Sequence[object]) -> None:
    if (answered := first_duplicate(filter(None, map(_answered_event_id, events)))) is not None:
        raise NotPending(f"'{answered}' is answered twice.")


def _command(event: Any, view: m.SessionView, card: m.AgentCard, table: DialectTable) -> m.AnyCommand:
    if isinstance(event, sessions.ToolConfirmation):
        return _confirmation(event, _pending_ask(event.tool_use_id, view), table)
    if isinstance(event, sessions.CustomToolResult | sessions.UserToolResult):
        return _result(event, _pending_ask(_answered_event_id(event), view), card, table)
    command = table.read_command(event.type, event.model_dump())
    if isinstance(command, m.SendMessage):
        return replace(command, content=_accepted(command.content, card))
    return command


def _pending_ask(event_id: str, view: m.SessionView) -> m.OpenAsk:
    for ask in view.asks.values():
        if ask_event_id(view, ask) == event_id:
            return ask
    raise NotPending(f"'{event_id}' is not pending: it was answered already, or never asked for one.")


def _confirmation(event: sessions.ToolConfirmation, ask: m.OpenAsk, table: DialectTable) -> m.AnyCommand:
    body = event.model_dump()
    if ask.ask.kind == "continuation":
        return table.read_command("answer.continuation", body, request_id=ask.request_id)
    if ask.ask.kind != "permission":
        raise Invalid(f"'{event.tool_use_id}' waits for user.custom_tool_result", param="tool_use_id")
    fields = table.read_message(event.type, body)
    reason = None if fields["granted"] else fields["reason"]
    return table.command(event.type, request_id=ask.request_id, granted=fields["granted"], reason=reason)


def _result(
    event: sessions.CustomToolResult | sessions.UserToolResult, ask: m.OpenAsk, card: m.AgentCard, table: DialectTable
) -> m.AnyCommand:
    fields = table.read_message(event.type, event.model_dump())
    content = _accepted(fields["content"] or "", card)
    if ask.ask.kind == "client_tool":
        return table.command(
            event.type, request_id=ask.request_id, content=content, is_error=bool(fields["is_error"]),
        )
    meant = m.parse_answer(ask.ask, content)
    if meant is None:
        param = "tool_use_id" if isinstance(event, sessions.UserToolResult) else "custom_tool_use_id"
        raise Invalid(f"'{_answered_event_id(event)}' waits for user.tool_confirmation", param=param)
    return table.command(f"answer.{ask.ask.kind}", request_id=ask.request_id, **meant)


def blocks_of(events: Sequence[object]) -> Iterator[tuple[str, Any]]:
    """Every content block of these events, with its place."""
    for number, event in enumerate(events):
        content = getattr(event, "content", None)
        for place, block in enumerate(content if isinstance(content, list) else ()):
            yield f"{number}.content.{place}", block


# -- content ----------------------------------------------------------------------------------------------------------
def _accepted(content: m.Content, card: m.AgentCard) -> m.Content:
    """Content that the agent takes."""
    if isinstance(content, str):
        return content
    parts = with_named_files(content)
    for part in parts:
        if isinstance(part, m.ImagePart) and not card.takes_image(part.url):
            raise Unsupported(f"agent '{card.name}' does not take images by {card.image_kind(part.url)} address")
    return parts


RECORDED_MODELS: dict[str, type[BaseModel]] = {
    "user.message": sessions.UserMessage, "user.interrupt": sessions.UserInterrupt,
    "user.tool_confirmation": sessions.ToolConfirmation, "user.custom_tool_result": sessions.CustomToolResult,
}
USER_EVENT: TypeAdapter[Any] = TypeAdapter(sessions.UserEvent)


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    """The commands of a recorded frame; an answer to an unknown ask is none."""
    body = frame.body if isinstance(frame.body, dict) else {}
    events = body.get("events") if isinstance(body.get("events"), list) else [body]
    found = [_recorded_command(event, view, table) for event in events or () if isinstance(event, dict)]
    return [command for command in found if command is not None]


def _recorded_command(stored: JsonObject, view: m.SessionView, table: DialectTable) -> m.AnyCommand | None:
    model = RECORDED_MODELS.get(str(stored.get("type")))
    if model is None:
        return None
    try:
        event = USER_EVENT.validate_python({name: stored[name] for name in model.model_fields if name in stored})
    except ValidationError:
        return None
    if isinstance(event, sessions.ToolConfirmation):
        ask = _recorded_ask(event.tool_use_id, view)
        return _confirmation(event, ask, table) if ask is not None else None
    if isinstance(event, sessions.CustomToolResult):
        ask = _recorded_ask(event.custom_tool_use_id, view)
        return _result(event, ask, m.ANY_AGENT, table) if ask is not None else None
    return _command(event, view, m.ANY_AGENT, table)


def _recorded_ask(event_id: str, view: m.SessionView) -> m.OpenAsk | None:
    return view.asks.get(event_id)


TOOLSET = "agent_toolset_20260401"
TOOL_LIST: TypeAdapter[list[Tool]] = TypeAdapter(list[Tool])


def read_tools(tools: Sequence[Mapping[str, JsonValue]] | None) -> list[Tool] | None:
    """Tools that were accepted once, read again."""
    return None if tools is None else TOOL_LIST.validate_python(tools)


def server_tools(tools: Sequence[Tool] | None, card: m.AgentCard) -> dict[str, m.Permission] | None:
    """The permission of each tool of the agent; None if the client names no tools.

    CAS's toolset has names that an agent here may lack (`Bash`, `Read` …) and lacks names that it may have. A name
    that the agent lacks has no effect; without `enabled_tools`, all tools of the agent are enabled.
    """
    if tools is None:
        return None
    toolsets = [tool for tool in tools if isinstance(tool, Toolset)]
    return {name: permission for toolset in toolsets for name, permission in _enabled_tools(toolset, card)}


def client_tools(tools: Iterable[Tool] | None) -> tuple[m.ToolSpec, ...]:
    return tuple(
        m.ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema)
        for tool in tools or () if isinstance(tool, CustomTool)
    )


def toolset_of_card(card: m.AgentCard) -> list[JsonObject]:
    """The tools of a configured agent, as a client would ask for them."""
    configs: list[JsonValue] = [
        {"name": tool.spec.name, "enabled": True, "permission_policy": {"type": POLICY_WORDS[tool.permission]}}
        for tool in card.tools
    ]
    names: list[JsonValue] = [tool.spec.name for tool in card.tools]
    return [{"type": TOOLSET, "enabled_tools": names, "configs": configs}] if configs else []


def tools_of_agent(
    enabled: Mapping[str, m.Permission] | None, by_client: Iterable[m.ToolSpec],
) -> list[JsonObject]:
    """The tools of an agent that another dialect made, as a client of CAS would ask for them."""
    toolset: dict[str, Any] = {"type": TOOLSET}
    if enabled is not None:
        toolset |= {"enabled_tools": [*enabled], "configs": [
            {"name": name, "enabled": True, "permission_policy": {"type": POLICY_WORDS[permission]}}
            for name, permission in enabled.items()
        ]}
    return [toolset, *(
        {"type": "custom", "name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in by_client
    )]


def _enabled_tools(toolset: Toolset, card: m.AgentCard) -> Iterable[tuple[str, m.Permission]]:
    configs = {config.tool: config for config in toolset.configs or [] if config.tool}
    defaults = toolset.default_config or ToolDefaults()
    for tool in card.tools:
        config = configs.get(tool.spec.name)
        if _is_enabled(tool.spec.name, toolset, config, defaults):
            yield tool.spec.name, _permission(tool, config, defaults)


def _is_enabled(name: str, toolset: Toolset, config: ToolConfig | None, defaults: ToolDefaults) -> bool:
    """The most specific setting wins: forbidden by name, the tool's own switch, the list, the default."""
    if name in (toolset.disallowed_tools or ()):
        return False
    if config is not None and config.enabled is not None:
        return config.enabled
    if toolset.enabled_tools is not None:
        return name in toolset.enabled_tools
    return defaults.enabled is not False


def _permission(tool: m.AgentTool, config: ToolConfig | None, defaults: ToolDefaults) -> m.Permission:
    policy: PermissionPolicy | None = (config.permission_policy if config else None) or defaults.permission_policy
    return POLICIES[policy.type] if policy else tool.permission
