"""Requests of a plain dialect in, commands out, live or from a recording. No clock, no socket."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict

import gateway.model as m
from gateway.errors import Conflict, Invalid, Unsupported
from gateway.field_errors import describe_struct_error
from gateway.json_values import JsonValue
from gateway.ports import DialectTable, ParsedFrame
from mappings.language import Route, UnknownWord, UnreadableBody

StructT = TypeVar("StructT", bound=msgspec.Struct)


class JsonObject(BaseModel):
    """Any JSON object; the table says what must be in it."""

    model_config = ConfigDict(extra="allow")


def settings_of(fields: Mapping[str, Any]) -> m.Settings:
    """What a client sets for its new session: the agent's tools and options, and tools of its own."""
    named = fields.get("permissions")
    return checked({
        "options": fields.get("options") or {},
        "client_tools": [{name: value for name, value in tool.items() if value is not None}
                         for tool in fields.get("client_tools") or ()],
        "tools": None if named is None else {str(tool.get("name")): _permission(tool) for tool in named},
    }, m.Settings)


def _permission(tool: Mapping[str, JsonValue]) -> JsonValue:
    """A tool is permitted by a word or by trust; without either, a person is asked."""
    given = tool.get("permission")
    return given if given is not None else m.Permission.ALLOW if tool.get("trust") else m.Permission.ASK


def seed_of(fields: Mapping[str, Any]) -> list[m.SeedMessage]:
    """The messages that a new session begins with."""
    return [checked({name: value for name, value in message.items() if value is not None}, m.SeedMessage)
            for message in fields.get("history") or ()]


def checked(value: object, kind: type[StructT]) -> StructT:
    """The value as the struct that it should be, in every part of it: a table need not say all types."""
    try:
        return msgspec.convert(msgspec.to_builtins(value), kind)
    except msgspec.ValidationError as error:
        raise Invalid(describe_struct_error(error)) from None


def message_of(body: JsonValue, among: Sequence[str], table: DialectTable) -> str:
    """Which of these messages the body is; the only one needs nothing to be known by."""
    if len(among) == 1:
        return among[0]
    found = table.find_message(body, *among)
    if found is None:
        raise Invalid(f"the body is none of the messages that this request takes: {', '.join(among)}")
    return found


def command_of(message: str, body: Any, view: m.SessionView, table: DialectTable) -> m.AnyCommand:
    """The command of a message; what answers a call is the answer to the ask about the call."""
    try:
        fields = table.read_message(message, body)
        return table.command(message, **{**fields, **_answered(fields, view)})
    except UnreadableBody as error:
        raise Invalid(f"{error.field}: {error.problem}", param=error.field) from None
    except UnknownWord as error:
        raise Invalid(str(error)) from None
    except TypeError:
        raise Invalid(f"the body says too little to be '{message}'") from None


def _answered(fields: dict[str, Any], view: m.SessionView) -> dict[str, Any]:
    """The ask that a message settles: clients name it by its own id, or by the id of the call that it is about."""
    named = fields.get("request_id")
    if named is None or named in view.asks:
        return {}
    ask = view.ask_of_call(named)
    if ask is None:
        raise Conflict(f"nothing is asked that is called '{named}'")
    return {"request_id": ask.request_id}


def check_command(command: m.AnyCommand, view: m.SessionView, card: m.AgentCard) -> None:
    """Refuse what the session or its agent cannot take now."""
    if isinstance(command, m.Interrupt) and view.status not in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED):
        raise Conflict(f"no turn runs or waits in session '{view.session_id}'")
    for _, url in image_addresses(command):
        if not card.takes_image(url):
            raise Unsupported(f"agent '{card.name}' does not take images by {card.image_kind(url)} address")


def image_addresses(command: m.AnyCommand) -> Iterator[tuple[str, str]]:
    """The addresses of images in a message, each with its field."""
    content = getattr(command, "content", "")
    for number, part in enumerate(content if isinstance(content, tuple) else ()):
        if isinstance(part, m.ImagePart) and part.url:
            yield f"content.{number}", part.url


def recorded_commands(
    routes: Sequence[Route], frame: ParsedFrame, view: m.SessionView, table: DialectTable,
) -> Sequence[m.AnyCommand]:
    """The command of one request; nothing for a request that is refused or has none."""
    for route in routes:
        method, _, path = frame.name.partition(" ")
        among = [name for action in route.actions for name in action.input]
        if among and method == route.method and re.search(_pattern(route.path), path):
            try:
                return [command_of(message_of(frame.body, among, table), frame.body, view, table)]
            except (Invalid, Conflict):
                return ()
    return ()


def _pattern(path: str) -> str:
    return "[^/]+".join(re.escape(part) for part in re.split(r"\{\w+\}", path)) + "$"
