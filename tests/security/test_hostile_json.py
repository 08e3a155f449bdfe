"""A body cannot keep the server busy: it is bounded before it is decoded, and checked up to its first mistakes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, ValidationError

from adapters.aap import wire as aap
from adapters.blade import wire as blade
from adapters.cas.wire import sessions as cas
from adapters.zenflux import wire as zenflux
from gateway import json_values
from gateway.client import replace_lone_surrogates_in_steps
from gateway.field_errors import MAX_PROBLEMS, field_errors, path_in_value
from gateway.http import WireModel, parse_json
from gateway.http.json_io import FailFast
from gateway.json_values import MAX_JSON_DEPTH, MAX_JSON_ITEMS, JsonLimitExceeded, read_json, read_json_in_steps
from tests.support.dialect_parts import each, part
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import serving

MANY = 5000
WRONG: list[tuple[type[BaseModel], Any]] = [
    (aap.NewSession, {"agent": {"name": "demo"}, "messages": [{}] * MANY}),
    (aap.NewSession, {"agent": {"name": "demo"}, "messages": [{"role": "user", "content": [0] * MANY}]}),
    (aap.NewSession, {"agent": {"name": "demo", "options": {str(number): 0 for number in range(MANY)}}}),
    (blade.ChatSend, {"askuser_answer": {
        "tool_call_id": "x", "selections": {str(number): ["x"] for number in range(MANY)}}}),
    (blade.ChatSend, {"message": [{"type": "text"}] * MANY}),
    (cas.SentEvents, {"events": [{"type": "user.message", "content": [{}] * MANY}]}),
    (zenflux.ChatSend, {"user_id": "u", "files": [0] * MANY, "background_tasks": [0] * MANY}),
]


@pytest.mark.parametrize(("model", "value"), WRONG)
def test_a_body_of_mistakes_is_not_looked_through_to_its_end(model: type[BaseModel], value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(value)
    assert refused.value.error_count() <= MAX_PROBLEMS
    assert 1 <= len(field_errors(refused.value, value)) <= MAX_PROBLEMS


def wire_models(above: type = FailFast) -> Iterator[type[BaseModel]]:
    for model in above.__subclasses__():
        yield model
        yield from wire_models(model)


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for name, inner in schema.items():
            if name not in ("default", "metadata", "serialization"):
                yield from schemas(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from schemas(inner)


def test_every_array_and_map_of_a_wire_model_stops_at_its_first_mistake() -> None:
    models = [model for model in wire_models() if model is not WireModel]
    assert {model.__module__.split(".")[1] for model in models} == {*DIALECTS, "console"}
    for model in models:
        for schema in schemas(model.__pydantic_core_schema__):
            if schema.get("type") in ("list", "tuple", "set", "dict"):
                assert schema.get("fail_fast"), (model, schema)


class Seen(str):
    """A word that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Seen.compared += 1
        return str.__eq__(self, other)


def test_the_way_to_a_mistake_is_found_without_looking_through_arrays() -> None:
    Seen.compared = 0
    assert path_in_value((Seen("list[union]"), 7), [0] * MANY) == (7,)
    assert Seen.compared < 10


class Tripped(Exception):
    """Somebody decoded what should have been refused."""


@pytest.mark.parametrize("body", [
    b"[" + b"[]," * MAX_JSON_ITEMS + b"0]",
    b"[" + b'"",' * (MAX_JSON_ITEMS + 1) + b"0]",
    b"{" + b'"a":{},' * MAX_JSON_ITEMS + b'"a":0}',
    b"[" * (MAX_JSON_ITEMS + 1),
    b'["\\\\",' + b"0," * MAX_JSON_ITEMS + b'"\\""]',
])
def test_too_many_items_are_refused_before_anything_is_decoded(
    body: bytes, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trip(*given: Any) -> Any:
        raise Tripped

    monkeypatch.setattr("msgspec.json.decode", trip)
    monkeypatch.setattr("orjson.loads", trip)
    with pytest.raises(JsonLimitExceeded, match=f"more than {MAX_JSON_ITEMS} items"):
        read_json(body)


@pytest.mark.parametrize("text", ["one, two, [three], {four}" * 10_000, '\\"[,{"' * 30_000, "\\" * 99_999 + ","])
def test_what_stands_inside_of_a_text_is_not_counted(text: str) -> None:
    assert read_json(orjson.dumps({"text": text})) == {"text": text}


@pytest.mark.parametrize("body", [
    b'["\\\\","\\",[,",0]', b'["\\\\\\"",[[0]],"{,"]', b'{"a,":"\\"","b":["",0]}', b'["a,\\\\",0,0,0,0,0]',
    b'[0,0,0,0]', b'["[",[[[0]]]]',
])
def test_the_count_is_the_same_in_pieces_of_any_size(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Any:
        try:
            return read_json(body, 4)
        except JsonLimitExceeded as error:
            return str(error)

    whole = told()
    for size in range(1, 12):
        monkeypatch.setattr(json_values, "_PIECE", size)
        assert told() == whole, size


class Text(BaseModel):
    """Any text."""

    content: str


async def test_a_long_text_of_escapes_is_counted_in_turns() -> None:
    text, steps = '",' * 1_300_000, 0
    asked = asyncio.create_task(parse_json(orjson.dumps({"content": text}), Text))
    while not asked.done():
        steps += 1
        await asyncio.sleep(0)
    assert (await asked).content == text
    assert steps > 4


@pytest.mark.parametrize("rest", [b":", b'""', b"]"])
def test_what_is_deep_and_then_no_json_is_not_looked_through_to_its_end(rest: bytes) -> None:
    most = 2000
    steps = read_json_in_steps(b"[" * most + rest * 200_000, most)
    with pytest.raises(JsonLimitExceeded, match=f"nested {most} levels deep"):
        for number, _ in enumerate(steps):
            assert number < 4
    with pytest.raises(orjson.JSONDecodeError):
        for number, _ in enumerate(read_json_in_steps(b"[" * (MAX_JSON_DEPTH + 1) + rest * 200_000, most)):
            assert number < 1


def test_half_characters_are_mended_in_steps() -> None:
    assert sum(1 for _ in replace_lone_surrogates_in_steps("\\ud800x" * 100_000)) > 4
    assert not list(replace_lone_surrogates_in_steps('\\"' * 100_000)), "where no half can be, nothing is looked for"


@pytest.mark.parametrize("innermost", [b"", b"1"])
def test_depth_is_bounded_whatever_is_innermost(innermost: bytes) -> None:
    assert read_json(b"[" * MAX_JSON_DEPTH + innermost + b"]" * MAX_JSON_DEPTH)
    with pytest.raises(JsonLimitExceeded, match=f"nested {MAX_JSON_DEPTH + 1} levels deep"):
        read_json(b"[" * (MAX_JSON_DEPTH + 1) + innermost + b"]" * (MAX_JSON_DEPTH + 1))


@pytest.mark.parametrize("dialect", each("rest_requests"))
async def test_every_dialect_refuses_a_body_of_too_many_items(tmp_path: Path, dialect: str) -> None:
    body = b'{"messages":[' + b"[]," * MAX_JSON_ITEMS + b"0]}"
    path = part(dialect, "rest_requests").WITH_BODY
    async with (
        serving(tmp_path, dialects={dialect: {}}) as served,
        served.http.post(served.url(path), data=body) as response,
    ):
        assert response.status == 400
        assert f"more than {MAX_JSON_ITEMS} items" in await response.text()
