"""Structured output: the last text of a turn is parsed as JSON and validated against a schema."""

from collections.abc import Sequence

import jsonschema_rs
import orjson

import gateway.model as m
from gateway.errors import Invalid, Unsupported
from gateway.json_values import JsonLimitExceeded, read_json


def check_schema(schema: dict[str, object]) -> None:
    """Refuse a schema that is not a JSON Schema."""
    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise Invalid(f"output_schema is not a JSON Schema: {_first_line(error)}", param="output_schema") from None


def parse_structured_output(schema: dict[str, object], entries: Sequence[m.HistoryEntry], turn_id: str) -> object:
    """The last text of the agent in the turn, as a value that fits the schema; raises `Unsupported`."""
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
