"""Validates settings of a session against the card of its agent, and the output of a turn against its JSON Schema."""

from collections.abc import Iterable, Sequence

import orjson
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Invalid, Unsupported
from gateway.json_values import JsonLimitExceeded, read_json


def validate_settings(card: m.AgentCard, settings: m.Settings) -> m.Settings:
    """The settings, with secret options among the secrets; raises an error that names what does not fit."""
    _check_tools(card, settings)
    _check_client_tools(card, settings)
    options = settings.secrets | settings.options  # a new value of a secret comes as an option
    kinds = {name: _check_option(card, name, value).kind for name, value in options.items()}
    secret = {name for name, kind in kinds.items() if kind is m.OptionKind.SECRET}
    return replace(
        settings,
        options={name: value for name, value in options.items() if name not in secret},
        secrets={name: value for name, value in options.items() if name in secret},
    )


def _check_tools(card: m.AgentCard, settings: m.Settings) -> None:
    for name in settings.tools or ():
        if card.tool(name) is None:
            known = _quoted_list(tool.spec.name for tool in card.tools)
            raise Invalid(f"agent '{card.name}' has no tool '{name}'; it has {known}")


def _check_client_tools(card: m.AgentCard, settings: m.Settings) -> None:
    if settings.client_tools and not card.capabilities.client_tools:
        raise Unsupported(f"agent '{card.name}' does not take tools of its clients")
    enabled = {tool.spec.name for tool in card.tools} if settings.tools is None else set(settings.tools)
    seen: set[str] = set()
    for tool in settings.client_tools:
        if tool.name in seen:
            raise Invalid(f"two client tools are named '{tool.name}'")
        if tool.name in enabled:
            raise Invalid(f"client tool '{tool.name}' has the name of an enabled server tool")
        seen.add(tool.name)


def _check_option(card: m.AgentCard, name: str, value: str) -> m.AgentOption:
    option = card.option(name)
    if option is None:
        raise Invalid(
            f"agent '{card.name}' has no option '{name}'; it has {_quoted_list(o.name for o in card.options)}"
        )
    if option.kind is m.OptionKind.SELECT and value not in option.choices:
        raise Invalid(f"option '{name}' takes {_quoted_list(option.choices)}, not '{value}'")
    return option


def _quoted_list(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words) or "none"


def check_schema(schema: dict[str, object]) -> None:
    """Refuse a schema that is not a JSON Schema."""
    import jsonschema_rs  # 3 MB, which few servers need

    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise Invalid(f"output_schema is not a JSON Schema: {_first_line(error)}", param="output_schema") from None


def parse_structured_output(schema: dict[str, object], entries: Sequence[m.HistoryEntry], turn_id: str) -> object:
    """The last text of the agent in the turn, as a value that fits the schema; raises `Unsupported`."""
    import jsonschema_rs

    text = _strip_code_fence(_last_text(entries, turn_id))
    try:
        value = read_json(text)
    except JsonLimitExceeded as error:
        raise Unsupported(f"The agent's answer cannot be passed on: {error}.") from None
    except orjson.JSONDecodeError as error:
        raise Unsupported(f"The agent's answer is not JSON, as the schema asks for: {error}.") from None
    try:
        jsonschema_rs.validator_for(schema, offline=True).validate(value)
    except jsonschema_rs.ValidationError as error:
        raise Unsupported(f"The agent's answer does not fit the schema: {_first_line(error)}.") from None
    return value


def _last_text(entries: Sequence[m.HistoryEntry], turn_id: str) -> str:
    for entry in reversed(entries):
        if entry.turn_id == turn_id and entry.scope_id == m.ROOT and entry.role is m.Role.ASSISTANT:
            return m.text_of(entry.content)
    return ""


def _strip_code_fence(text: str) -> str:
    """The text without the code fence that models like to put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text.removesuffix("```").partition("\n")[2]
    return text


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
