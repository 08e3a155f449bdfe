"""The JSON schemas of tools: a schema is checked when a tool is registered, an input before the tool runs."""

from typing import Any

import msgspec

import gateway.model as m
from gateway.errors import Invalid, TooLarge
from gateway.json_values import JsonObject

MAX_SCHEMA_BYTES = 64 * 1024
BACKTRACK_LIMIT = 10_000
"""Patterns of schemas are written by users and by their MCP servers: no pattern may take long."""


def check_input(spec: m.ToolSpec, input: JsonObject) -> None:
    """Refuse an input that does not fit the schema of its tool; an invalid schema of an MCP server is ignored."""
    try:
        validator = _validator(spec.parameters or True)
    except (ValueError, TypeError):  # the library's own error is a ValueError
        return
    for error in validator.iter_errors(input):
        at = ".".join(("input", *map(str, error.instance_path)))
        raise Invalid(f"{at}: {error.message[:500]}", param=at)


def _validator(schema: JsonObject | bool) -> Any:
    import jsonschema_rs  # 3 MB, which few servers need

    limits = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=limits)


def check_schema(schema: JsonObject) -> None:
    """Refuse a schema that is not a JSON schema of an object, or is too large."""
    if len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
        raise TooLarge(f"input_schema: must have at most {MAX_SCHEMA_BYTES} bytes", param="input_schema")
    if schema.get("type", "object") != "object":
        raise Invalid("input_schema: must describe an object", param="input_schema")
    try:
        _validator(schema)
    except (ValueError, TypeError) as error:
        raise Invalid(f"input_schema: is no JSON schema: {str(error)[:200]}", param="input_schema") from None
