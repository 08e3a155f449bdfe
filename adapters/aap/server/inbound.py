"""Requests of AAP in, settings and commands out, live or from a recording. No clock, no socket."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

import gateway.model as m
from adapters.aap import wire
from adapters.aap.bodies import MessageBody
from adapters.aap.wire import SECRET_MASK, NewSession, NewTurn
from gateway.errors import Conflict, Invalid, Unsupported
from gateway.ids import first_duplicate
from gateway.json_values import JsonObject
from gateway.ports import DialectTable, ParsedFrame

MESSAGES = (
    "message.user", "message.results", "message.tool", "message.tool_permission", "answer.question",
    "answer.continuation", "answer.rollback", "decision.continuation", "turn.interrupt",
)
"""The client messages that the table spells."""


# -- a new session ----------------------------------------------------------------------------------------------------
def settings_of(body: wire.NewSession, card: m.AgentCard) -> m.Settings:
    """An absent list of tools switches every server tool off."""
    return m.Settings(
        tools=_permissions(body.agent.tools or []),
        options=_unmasked(body.agent.options or {}, card, m.Settings()),
        client_tools=_tool_specs(body.tools),
    )


def seed_of(body: wire.NewSession, card: m.AgentCard, table: DialectTable) -> list[m.SeedMessage]:
    return [_seed_message(message, card, table) for message in body.messages]


def _seed_message(message: BaseModel, card: m.AgentCard, table: DialectTable) -> m.SeedMessage:
    fields = table.read_object(MessageBody.row, _sent(message))
    content = _accepted(fields["content"], card)
    return m.SeedMessage(role=m.Role(fields["role"]), content=content, call_id=fields["call_id"])


# -- a turn -----------------------------------------------------------------------------------------------------------
def commands_of(body: wire.NewTurn, view: m.SessionView, card: m.AgentCard, table: DialectTable) -> list[m.AnyCommand]:
    """One user message, or answers to what is pending; changed settings come first."""
    if body.stream not in card.capabilities.streaming:
        raise Unsupported(f"agent '{card.name}' does not stream as '{body.stream}'")
    users = [message for message in body.messages if isinstance(message, wire.UserMessage)]
    if users and len(body.messages) > 1:
        raise Invalid("messages: send one user message, or answers to pending calls, not both", param="messages")
    answered = (message.toolCallId for message in body.messages if not isinstance(message, wire.UserMessage))
    if (call_id := first_duplicate(answered)) is not None:
        raise Conflict(f"call '{call_id}' is answered twice")
    if (results := _results_of_seed(body, view, card, table)) is not None:
        return [*_configured(body, view, card), table.command("message.results", **results)]
    return [*_configured(body, view, card), *(_command(message, view, card, table) for message in body.messages)]


def _configured(body: wire.NewTurn, view: m.SessionView, card: m.AgentCard) -> list[m.AnyCommand]:
    agent, settings = body.agent or wire.AgentOverride(), view.settings
    if agent.name not in (None, view.agent_id):
        raise Invalid(f"agent.name: the session's agent is '{view.agent_id}' and cannot change", param="agent.name")
    if agent.options is not None:
        settings = replace(settings, options=settings.options | _unmasked(agent.options, card, settings))
    if agent.tools is not None:
        settings = replace(settings, tools=_permissions(agent.tools))
    if body.tools is not None:
        settings = replace(settings, client_tools=_tool_specs(body.tools))
    return [] if settings == view.settings else [m.Configure(settings=settings)]


def _results_of_seed(
    body: wire.NewTurn, view: m.SessionView, card: m.AgentCard, table: DialectTable
) -> dict[str, Any] | None:
    """The first turn of a session whose own messages end in calls of client tools: the results of those calls."""
    waiting = _open_seed_calls(view, card)
    given = {
        message.toolCallId: message
        for message in body.messages
        if isinstance(message, wire.ToolMessage) and message.toolCallId in waiting
    }
    if not given:
        return None
    if len(given) < len(body.messages):
        raise Invalid("messages: send the results of the calls that the session's messages left open, and nothing else",
                      param="messages")
    if missing := [call_id for call_id in waiting if call_id not in given]:
        raise Conflict(f"call '{missing[0]}' is open as well; return the results of all open calls in one turn")
    results = [_seed_message(message, card, table) for message in given.values()]
    words = [f"{waiting[result.call_id or ''].name} returned {m.text_of(result.content)}" for result in results]
    return {"content": "\n".join(words), "results": tuple(results)}


def _open_seed_calls(view: m.SessionView, card: m.AgentCard) -> dict[str, m.ToolCall]:
    """The calls since the last message of a person that have no result, in a session without a turn.

    A call of the agent's own tool is not among them: the server runs it, not the client.
    """
    calls: dict[str, m.ToolCall] = {}
    for entry in view.entries if not view.turns else ():
        if entry.role is m.Role.USER:
            calls.clear()
        calls.pop(entry.call_id or "", None)
        calls |= {part.call.call_id: part.call for part in m.parts_of(entry.content) if isinstance(part, m.ToolUsePart)}
    return {call_id: call for call_id, call in calls.items() if card.tool(call.name) is None}


def _command(message: Any, view: m.SessionView, card: m.AgentCard, table: DialectTable) -> m.AnyCommand:
    body = _sent(message)
    if isinstance(message, wire.UserMessage):
        command = table.read_command("message.user", body)
        assert isinstance(command, m.SendMessage)
        _accepted(command.content, card)
        return command
    ask = _pending_ask(message.toolCallId, view)
    if isinstance(message, wire.ToolPermissionMessage):
        row = _decision_row(message, ask)
        return table.read_command(row, body, request_id=ask.request_id)
    return _result(body, ask, card, table)


def _pending_ask(call_id: str, view: m.SessionView) -> m.OpenAsk:
    ask = view.ask_of_call(call_id) or view.asks.get(call_id)
    if ask is None:
        raise Conflict(f"call '{call_id}' is not pending")
    return ask


def _decision_row(message: wire.ToolPermissionMessage, ask: m.OpenAsk) -> str:
    row = {"permission": "message.tool_permission", "continuation": "decision.continuation"}.get(ask.ask.kind)
    if row is None:
        raise Invalid(f"call '{message.toolCallId}' waits for a tool message, not for a permission")
    return row


def _result(body: JsonObject, ask: m.OpenAsk, card: m.AgentCard, table: DialectTable) -> m.AnyCommand:
    if ask.ask.kind == "client_tool":
        command = table.read_command("message.tool", body, request_id=ask.request_id)
        assert isinstance(command, m.ReturnResult)
        _accepted(command.content, card)
        return command
    row = f"answer.{ask.ask.kind}"
    if row not in MESSAGES:
        call_id = table.read_message("message.tool", body)["request_id"]
        raise Invalid(f"call '{call_id}' waits for a tool_permission message, not for a result")
    fields = table.read_message(row, body)
    meant = m.parse_answer(ask.ask, _accepted(fields["said"], card)) or {}
    return table.command(row, **(fields | meant | {"request_id": ask.request_id}))


# -- pieces -----------------------------------------------------------------------------------------------------------
def _permissions(tools: Sequence[wire.ServerToolRef]) -> dict[str, m.Permission]:
    if (name := first_duplicate(tool.name for tool in tools)) is not None:
        raise Invalid(f"agent.tools: '{name}' is named twice", param="agent.tools")
    return {tool.name: m.Permission.ALLOW if tool.trust else m.Permission.ASK for tool in tools}


def _unmasked(options: dict[str, str], card: m.AgentCard, settings: m.Settings) -> dict[str, str]:
    """The options to set; a mask leaves its secret as it is.

    A mask for a secret that has no value, neither in the session nor by default, is refused.
    """
    masked = [
        name
        for name, value in options.items()
        if value == SECRET_MASK and (option := card.option(name)) is not None and option.kind is m.OptionKind.SECRET
    ]
    stored = card.filled(settings).secrets
    for name in masked:
        if not stored[name]:
            field = f"agent.options.{name}"
            raise Invalid(f"{field}: '{SECRET_MASK}' stands for a secret that is set, and none is; send its value",
                          param=field)
    return {name: value for name, value in options.items() if name not in masked}


def _tool_specs(tools: Iterable[wire.ToolDeclaration]) -> tuple[m.ToolSpec, ...]:
    return tuple(
        m.ToolSpec(name=tool.name, title=tool.title, description=tool.description, parameters=tool.parameters)
        for tool in tools
    )


def _sent(message: BaseModel) -> JsonObject:
    """The message as it was sent, after it was validated."""
    members = message.__dict__
    if type(members.get("content")) is not list:
        return members
    return members | {"content": [block.__dict__ for block in members["content"]]}


def _accepted(content: m.Content, card: m.AgentCard) -> m.Content:
    """The content, if the agent takes its images."""
    if isinstance(content, str):
        return content
    for part in content:
        if isinstance(part, m.ImagePart) and not card.takes_image(part.url):
            raise Unsupported(f"agent '{card.name}' does not take images by {card.image_kind(part.url)} address")
    return content


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    """The commands of one request: a turn, or a session and what it was made with; nothing for any other."""
    try:
        if frame.name.startswith("POST ") and frame.name.endswith("/turns"):
            body = NewTurn.model_validate(frame.body)
            override = body.agent.model_copy(update={"name": None}) if body.agent is not None else None
            return commands_of(body.model_copy(update={"agent": override}), view, m.ANY_AGENT, table)
        if frame.name.startswith("POST ") and frame.name.endswith("/sessions"):
            return [m.Configure(settings=settings_of(NewSession.model_validate(frame.body), m.ANY_AGENT))]
    except ValidationError:
        return ()  # it was refused
    return ()
