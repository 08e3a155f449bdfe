"""Samples fit their schemas."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.demo.schema_sample import sample

TREE = {
    "$defs": {"node": {
        "type": "object", "required": ["name", "left"], "properties": {
            "name": {"type": "string"}, "left": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        },
    }},
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(("schema", "value"), [
    ({}, {}),
    (True, {}),
    ({"const": 7}, 7),
    ({"enum": ["b", "a"]}, "b"),
    ({"type": "string", "default": "x"}, "x"),
    ({"type": "string"}, "sample"),
    ({"type": "string", "minLength": 8}, "sample.."),
    ({"type": "string", "maxLength": 3}, "sam"),
    ({"type": "string", "format": "date"}, "2024-01-01"),
    ({"type": ["null", "integer"]}, 0),
    ({"type": "null"}, None),
    ({"type": "integer", "minimum": 3, "multipleOf": 5}, 5),
    ({"type": "integer", "maximum": -3}, -3),
    ({"type": "integer", "exclusiveMinimum": 3}, 4),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"minimum": 2.5}, 2.5),
    ({"type": "boolean"}, True),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [0, 1, 2]),
    ({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": True}, ["x", "y"]),
    ({"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}]}, [1, "sample"]),
    ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "sample"}),
    ({"type": "object", "minProperties": 2, "properties": {"a": {"const": 1}}}, {"a": 1, "extra_1": "sample"}),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 0),
    ({"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"const": 2}}, "required": ["b"]}]}, {"a": 1, "b": 2}),
    (TREE, {"name": "sample", "left": None}),
    ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "boolean"}}}, True),
    ({"$ref": "#"}, {}),
    ({"$ref": "http://elsewhere/x"}, {}),
])
def test_sample(schema: Any, value: Any) -> None:
    assert sample(schema) == value
    if schema != {"$ref": "http://elsewhere/x"}:
        assert jsonschema_rs.is_valid(schema, value)


def _bounded(low: int, length: int) -> dict[str, Any]:
    return {"minimum": low, "maximum": low + length}


LEAVES = st.one_of(
    st.just({"type": "boolean"}), st.just({"type": "null"}), st.just({"type": "string"}),
    st.builds(lambda a, b: {"type": "string", "minLength": a, "maxLength": a + b}, *[st.integers(0, 9)] * 2),
    st.builds(lambda kind, a, b: {"type": kind, **_bounded(a, b)},
              st.sampled_from(("integer", "number")), st.integers(-50, 50), st.integers(0, 9)),
    st.builds(lambda kind, a: {"type": kind, "exclusiveMinimum": a, "exclusiveMaximum": a + 9},
              st.sampled_from(("integer", "number")), st.integers(-50, 50)),
    st.builds(lambda a: {"type": "integer", "multipleOf": a, "minimum": 7}, st.integers(1, 9)),
    st.lists(st.text(), min_size=1).map(lambda words: {"enum": words}),
    st.sampled_from(("date-time", "date", "time", "email", "uri", "uuid", "ipv4", "hostname")).map(
        lambda word: {"type": "string", "format": word}),
)
NAMES = st.text("abc", min_size=1, max_size=3)


def _object(properties: dict[str, Any], closed: bool) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)[::2],
            "additionalProperties": not closed}


SCHEMAS = st.recursive(LEAVES, lambda inner: st.one_of(
    st.builds(_object, st.dictionaries(NAMES, inner, max_size=4), st.booleans()),
    st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
    st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
), max_leaves=12)


@given(SCHEMAS, st.booleans())
def test_any_sample_fits(schema: dict[str, Any], by_reference: bool) -> None:
    if by_reference:
        schema = {"$defs": {"x": schema}, "allOf": [{"$ref": "#/$defs/x"}]}
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(sample(schema))


WORDS = (
    "type", "properties", "required", "items", "enum", "anyOf", "allOf", "$ref", "minItems", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "prefixItems",
    "minProperties", "additionalProperties", "format",
)
VALUES = st.sampled_from(
    ("#", "#/properties/a", "object", "array", "string", "integer", 0, -1, 3, 0.5, 10**12, True, None),
)
NONSENSE = st.recursive(VALUES, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(st.sampled_from((*WORDS, "a", "b")), inner, max_size=5),
), max_leaves=20)


@given(st.dictionaries(st.sampled_from(WORDS), NONSENSE, max_size=6))
def test_no_schema_is_too_strange(schema: dict[str, Any]) -> None:
    assert len(str(sample(schema))) < 2_000_000


@pytest.mark.parametrize("schema", [
    {"type": "object", "required": ["a", "b"], "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 10**9, "items": {"$ref": "#"}}},
    {"type": "string", "minLength": 10**12},
])
def test_a_greedy_schema_gets_little(schema: dict[str, Any]) -> None:
    assert len(str(sample(schema))) < 2_000_000
