"""Bodies are read within limits and checked; replies are JSON."""

from typing import Annotated, Any, Literal

import orjson
import pytest
from pydantic import BaseModel, ConfigDict, Field

import gateway.model as m
from gateway.errors import Invalid
from gateway.http import dumps, encode_array, json_response, parse_json


class Body(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    items: list[int] = []


async def test_a_body_is_taken_as_its_model() -> None:
    assert await parse_json(b'{"name":"x","items":[1]}', Body) == Body(name="x", items=[1])


@pytest.mark.parametrize(("body", "told", "param"), [
    (b"", "the body is empty", None),
    (b"{", "the body is not JSON", None),
    (b"[]", "the body must be a JSON object", None),
    (b'{"name":7}', "name: must be a string, not 7", "name"),
    (b'{"name":"x","items":[1,"2"]}', "items.1: must be a whole number, not '2'", "items.1"),
    (b'{"name":"x","items":["a","b","c","d","e"]}', "(and 2 more)", "items.0"),
])
async def test_a_refusal_names_the_field(body: bytes, told: str, param: str | None) -> None:
    with pytest.raises(Invalid) as refused:
        await parse_json(body, Body)
    assert told in refused.value.message
    assert refused.value.param == param


class Text(BaseModel):
    type: Literal["text"]
    text: str


class Picture(BaseModel):
    type: Literal["picture"]
    url: str


class Letter(BaseModel):
    content: str | list[Annotated[Text | Picture, Field(discriminator="type")]]


@pytest.mark.parametrize(("content", "param"), [
    (7, "content"),
    ([{"type": "text"}], "content.0.text"),
    ([{"type": "text", "text": 7}], "content.0.text"),
    ([{"type": "text", "text": "x"}, {"type": "film"}], "content.1.type"),
    ([{"type": "picture", "url": None}], "content.0.url"),
])
async def test_a_field_is_named_as_the_client_sent_it(content: Any, param: str) -> None:
    with pytest.raises(Invalid) as refused:
        await parse_json(orjson.dumps({"content": content}), Letter)
    assert refused.value.param == param
    assert all(told.startswith(f"{param}: ") for told in refused.value.message.split("; "))


class Anything(BaseModel):
    value: Any


@pytest.mark.parametrize("number", [-(2 ** 63), 2 ** 64 - 1, 0.1, 1e300])
async def test_a_number_that_comes_in_goes_out_again(number: float) -> None:
    taken = await parse_json(orjson.dumps({"value": [number]}), Anything)
    assert orjson.loads(orjson.dumps(taken.value)) == [number]


async def test_an_integer_that_cannot_go_out_again_is_refused_by_name() -> None:
    with pytest.raises(Invalid) as refused:
        await parse_json(b'{"value":{"ids":[1,123456789012345678901234567890]}}', Anything)
    assert refused.value.param == "value.ids.1"
    assert refused.value.message == (
        "value.ids.1: 123456789012345678901234567890 does not fit into 64 bits; write it as a string")


@pytest.mark.parametrize("levels", [200, 1000, 20_000])
async def test_what_is_nested_too_deep_to_go_out_again_does_not_get_in(levels: int) -> None:
    body = '{"value":' + '{"a":' * levels + "1" + "}" * levels + "}"
    with pytest.raises(Invalid) as refused:
        await parse_json(body.encode(), Anything)
    assert refused.value.param == "value.a.a"
    assert refused.value.message == f"value.a.a: nested {levels + 1} levels deep; at most 150 levels are possible"


def test_a_reply_may_hold_structs_and_enums() -> None:
    response = json_response({"part": m.TextPart(text="x"), "stop": m.StopReason.END_TURN, "pair": (1, 2)}, 201)
    assert (response.status, response.content_type) == (201, "application/json")
    assert isinstance(response.body, bytes)
    assert orjson.loads(response.body) == {"part": {"kind": "text", "text": "x"}, "stop": "end_turn", "pair": [1, 2]}


async def test_arrays_that_are_encoded_already_stand_in_their_places() -> None:
    value = {
        "a": {"b": await encode_array([1, {"x": "y"}])},
        "c": await encode_array([]),
        "d": [await encode_array(["z"])],
    }
    assert json_response(value).body == dumps(value) == b'{"a":{"b":[1,{"x":"y"}]},"c":[],"d":[["z"]]}'
