"""Shapes become schemas; what has a name is described once."""

import pytest
from msgspec import Struct
from pydantic import BaseModel

from gateway.api_documents.schema_library import SchemaLibrary, component_name
from gateway.http import AnyFrame, Row
from tests.support.dialect_tables import table


class Point(Struct):
    x: int


class Wish(BaseModel):
    point: int


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def test_lists_choices_words_members_and_types() -> None:
    library = SchemaLibrary()
    found = library.shape({"a": [int], "b?": (int, str), "c": {"yes", "no"}, "d": Point, "e": object}, None)
    assert found == {
        "type": "object", "required": ["a", "c", "d", "e"], "properties": {
            "a": {"type": "array", "items": NUMBER}, "b": {"anyOf": [NUMBER, TEXT]}, "c": {"enum": ["no", "yes"]},
            "d": {"$ref": "#/components/schemas/Point"}, "e": {},
        }}
    assert library.components()["Point"]["properties"] == {"x": NUMBER}


def test_models_have_the_prefix_of_their_dialect() -> None:
    library = SchemaLibrary()
    assert library.shape(Wish, None, "aap") == {"$ref": "#/components/schemas/aap.Wish"}
    assert list(library.components()) == ["aap.Wish"]


def test_a_row_is_described_once_and_may_have_shapes_for_its_names() -> None:
    library = SchemaLibrary()
    wire = library.wire(table("aap"))
    assert library.shape("created", wire) == {"$ref": "#/components/schemas/aap.created"}
    assert library.components()["aap.created"]["properties"] == {"sessionId": TEXT}
    assert library.shape(Row("created", session_id=int), wire)["properties"] == {"sessionId": NUMBER}


def test_members_of_another_shape_stand_beside_its_own() -> None:
    library = SchemaLibrary()
    found = library.shape({"...": Wish, "more": str}, library.wire(table("aap")), "aap")
    assert set(found["properties"]) == {"point", "more"}
    assert found["required"] == ["more", "point"]


def test_a_frame_in_a_body_is_one_of_its_names() -> None:
    library = SchemaLibrary()
    found = library.shape(AnyFrame("sse", "turn_start"), library.wire(table("aap")), "aap")
    assert found == {"$ref": "#/components/schemas/aap.sse.turn_start"}


def test_two_types_of_one_name_are_an_error() -> None:
    library = SchemaLibrary()
    library.named("Point", {})
    with pytest.raises(AssertionError, match="two types are called 'Point'"):
        library.shape(Point, None)


def test_a_component_has_no_other_signs() -> None:
    assert component_name("chat:send@1") == "chat.send.1"
