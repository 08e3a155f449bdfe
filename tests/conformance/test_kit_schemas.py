"""Schemas: files of a folder, referring to each other, and what they say of a body that does not fit."""

import json
from pathlib import Path

import pytest

from conformance.kit.expect import Failed
from conformance.kit.schemas import Schemas, is_schema


@pytest.fixture
def schemas(tmp_path: Path) -> Schemas:
    word = {"$id": "t:common", "$defs": {"word": {"type": "string"}}}
    pair = {"$id": "t:pair", "required": ["a"], "properties": {"a": {"$ref": "t:common#/$defs/word"}}}
    (tmp_path / "common.json").write_text(json.dumps(word))
    (tmp_path / "pair.json").write_text(json.dumps(pair))
    return Schemas(tmp_path)


def test_a_body_that_fits_is_taken_with_members_nobody_knows(schemas: Schemas) -> None:
    assert schemas.names == {"common", "pair"}
    schemas.fit("pair", {"a": "x", "b": 1}, "the body")


def test_a_body_that_does_not_fit_is_told_why_and_where(schemas: Schemas) -> None:
    assert schemas.problems("pair", {"a": 7}) == ['/a: 7 is not of type "string"']
    with pytest.raises(Failed, match=r"the body to fit the schema `pair`; seen: /a: 7 is not"):
        schemas.fit("pair", {"a": 7}, "the body")


def nested(depth: int) -> dict[str, object]:
    return {"not": nested(depth - 1)} if depth else {}


def test_what_is_nested_too_deeply_fits_nothing(schemas: Schemas) -> None:
    with pytest.raises(Failed, match="cannot be held to a schema"):
        schemas.fit("pair", {"a": nested(500)}, "the body")


@pytest.mark.parametrize(
    "value",
    [{}, {"type": "object"}, {"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"items": [{}]}],
)
def test_schemas_of_any_usual_draft_are_schemas(value: dict[str, object]) -> None:
    assert is_schema(value)


def test_other_objects_are_not() -> None:
    assert not is_schema({"type": "whatever"})
    assert not is_schema({"properties": []})
