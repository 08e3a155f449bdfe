"""The schemas of a table: what a template says, with the types of the names that it uses."""

from typing import Any

import msgspec
import pytest
from msgspec import Struct

import gateway.model as m
from gateway.yaml_positions import YamlDocument
from mappings.language import Vocabulary, WireSchemas
from mappings.language.parsed_table import ProblemCollector, parse_table
from mappings.language.shape import shape_table

TEXT, NUMBER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
TABLE: dict[str, Any] = {
    "dialect": "nova", "spec": "1",
    "enums": {"outcome": {"completed": "good", "*": "bad"}, "fault": {"not_found": "missing", "*": "broken"}},
    "types": {"loose": "text!", "thing": {"weak": "int"}},
    "envelopes": {"default": {"name": "$wire", "data": "$body"}, "default@sse": {"event": "$wire", "data": "$body"}},
    "parts": {"text": {"type": "text", "text": "$text"}, "data": []},
    "frames": {"turn.started": [{"began": {"turn": "$turn_id"}}], "session.closed": [],
               "said": [{"words": {"text": "$loose"}}, {"heard": {}, "read-only": "of others"}]},
    "inputs": {"say": {"command": "send_message", "wire": {"text": "$content | content"}}},
    "objects": {
        "thing": {"kind": "thing", "id": "$id", "at": "$at | iso", "how": "$how | outcome", "maybe": "$note | optional",
                  "weak": "$weak", "loose": "$loose", "content": "$content | content", "all": "$all | each other",
                  "one": "$one | as other", "none": None},
        "other": {"id": "$id", "...": "$more"},
    },
    "errors": {"*": {"body": {"code": "$code | fault", "words": "$message"}}}, "support": {},
}


class Thing(Struct):
    id: str
    at: float | None
    how: m.Outcome
    note: str | None
    weak: Any
    loose: Any
    content: m.Content
    all: list[Any]
    one: Any


@pytest.fixture
def schemas() -> WireSchemas:
    document = YamlDocument("nova.yaml")
    document.value = TABLE
    draft = parse_table(shape_table(document), ProblemCollector(document))
    objects = {"thing": Thing, "other": ("id", "more")}
    vocabulary = Vocabulary(cues={"said": ("loose",)}, objects=objects, messages=("say",))
    return WireSchemas(draft, vocabulary, lambda kind: msgspec.json.schema(kind), lambda row: f"#/{row}")


def test_a_row_has_constants_types_words_and_references(schemas: WireSchemas) -> None:
    found = schemas.body("thing", {})
    blocks = {"type": "array", "items": {
        "type": "object", "properties": {"type": {"const": "text"}, "text": TEXT}, "required": ["type", "text"]}}
    assert found["properties"] == {
        "kind": {"const": "thing"}, "id": TEXT, "at": {"anyOf": [{**TEXT, "format": "date-time"}, NULL]},
        "how": {"enum": ["good", "bad"]}, "maybe": TEXT, "weak": {"anyOf": [NUMBER, NULL]}, "loose": TEXT,
        "content": {"anyOf": [TEXT, blocks]}, "all": {"type": "array", "items": {"$ref": "#/other"}},
        "one": {"anyOf": [{"$ref": "#/other"}, NULL]}, "none": NULL,
    }
    assert set(found["properties"]) - set(found["required"]) == {"maybe"}
    assert "additionalProperties" not in found


def test_what_is_spliced_opens_a_row_unless_its_shape_is_known(schemas: WireSchemas) -> None:
    assert schemas.body("other", {})["additionalProperties"] is True
    inner = {"type": "object", "properties": {"more": NUMBER}, "required": ["more"]}
    assert schemas.body("other", {"more": inner}) == {
        "type": "object", "properties": {"more": NUMBER, "id": {}}, "required": ["id", "more"]}
    assert set(schemas.body("other", {"more": None})["properties"]) == {"id"}


def test_frames_are_those_that_are_written_in_the_envelope_of_the_framing(schemas: WireSchemas) -> None:
    began = {"type": "object", "properties": {"turn": {"anyOf": [TEXT, NULL]}}, "required": ["turn"]}
    words = {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}
    assert schemas.frames("sse") == {"began": began, "words": words}
    assert schemas.frames("json")["began"]["properties"] == {"name": {"const": "began"}, "data": began}


def test_an_error_has_the_word_of_its_code(schemas: WireSchemas) -> None:
    status, found = schemas.error(m.FaultCode.NOT_FOUND)
    assert (status, found["properties"]) == (404, {"code": {"const": "missing"}, "words": TEXT})
    assert schemas.error(m.FaultCode.CONFLICT)[1]["properties"]["code"] == {"const": "broken"}


def test_a_message_is_what_its_row_reads(schemas: WireSchemas) -> None:
    found = schemas.message("say")
    assert found is not None
    assert found["required"] == ["text"]
