"""A refusal names the field, what was expected and what came, in plain words."""

from collections.abc import Iterator
from datetime import date
from enum import Enum
from itertools import cycle
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import AnyHttpUrl, BaseModel, Field, SecretStr, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors

from gateway.config import Config
from gateway.field_errors import (
    JSON_NOUNS,
    YAML_NOUNS,
    describe_error,
    describe_struct_error,
    field_errors,
    quote_value,
)
from tests.support.dialect_tables import DIALECTS
from tests.support.error_wording import unfit_words, wire_models


class Colour(Enum):
    RED = "red"


class Text(BaseModel):
    type: Literal["text"]
    text: str = Field(max_length=5)


class Picture(BaseModel):
    type: Literal["picture"]
    url: str = Field(pattern=r"^(https?://|data:)")


class Letter(BaseModel, extra="forbid", strict=True):
    name: str = Field("x", min_length=1)
    content: str | list[Annotated[Text | Picture, Field(discriminator="type")]] = ""
    count: int = Field(1, ge=1, le=9)
    share: float = Field(0.5, gt=0)
    sure: bool = True
    mode: Literal["a", "b"] = "a"
    speed: Literal[1, True] = 1
    many: list[str] = Field(["x"], min_length=1, max_length=2)
    table: dict[str, str] = {}
    token: SecretStr = SecretStr("")
    page: AnyHttpUrl | None = None
    day: date | None = None
    answer: str | bool | list[Any] | dict[str, Any] = ""
    media: str = Field("a/b", pattern=r"^[a-z]+/[a-z]+$")


@pytest.mark.parametrize(("body", "told"), [
    ({"name": 7}, "name: must be a string, not 7"),
    ({"name": None}, "name: must be a string, not null"),
    ({"name": ""}, "name: must not be empty"),
    ({"content": 7}, "content: must be a string or an array, not 7"),
    ({"content": ["x"]}, "content.0: must be an object, not 'x'"),
    ({"content": [{}]}, "content.0.type: is required"),
    ({"content": [{"type": "film"}]}, "content.0.type: must be 'text' or 'picture', not 'film'"),
    ({"content": [{"type": "text"}]}, "content.0.text: is required"),
    ({"content": [{"type": "text", "text": 7}]}, "content.0.text: must be a string, not 7"),
    ({"content": [{"type": "text", "text": {"text": 7}}]}, "content.0.text: must be a string, not an object"),
    ({"content": [{"type": "text", "text": "longer"}]}, "content.0.text: must have at most 5 characters, not 6"),
    ({"content": [{"type": "picture", "url": "ftp://user:pass@host/x"}]},
     "content.0.url: must begin with http://, https:// or data:, not 'ftp://…'"),
    ({"count": 0}, "count: must be at least 1, not 0"),
    ({"count": 10}, "count: must be at most 9, not 10"),
    ({"count": "1"}, "count: must be a whole number, not '1'"),
    ({"count": 1.5}, "count: must be a whole number, not 1.5"),
    ({"share": 0}, "share: must be greater than 0, not 0"),
    ({"sure": "yes"}, "sure: must be true or false, not 'yes'"),
    ({"mode": "c"}, "mode: must be 'a' or 'b', not 'c'"),
    ({"speed": 3}, "speed: must be 1 or true, not 3"),
    ({"many": []}, "many: must not be empty"),
    ({"many": ["a", "b", "c"]}, "many: must have at most 2 items, not 3"),
    ({"many": {}}, "many: must be an array, not an object"),
    ({"table": []}, "table: must be an object, not an array"),
    ({"table": {"x": True}}, "table.x: must be a string, not true"),
    ({"token": 12345678}, "token: must be a string, not a number"),
    ({"page": "ftp://host"}, "page: must be a URL that begins with 'http' or 'https', not 'ftp://host'"),
    ({"page": "nowhere"}, "page: must be a URL, not 'nowhere'"),
    ({"day": "soon"}, "day: must be a date, as 2031-01-31, not 'soon'"),
    ({"answer": 7}, "answer: must be a string, true or false, an array or an object, not 7"),
    ({"media": "x" * 99}, f"media: must fit the pattern ^[a-z]+/[a-z]+$, not '{'x' * 39}…'"),
    ({"colour": 1}, "colour: is not known"),
    (7, "must be an object, not 7"),
])
def test_a_mistake_in_words(body: Any, told: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        Letter.model_validate(body)
    assert [str(one) for one in field_errors(wrong.value, body)] == [told]


def test_a_field_may_stand_below_another() -> None:
    with pytest.raises(ValidationError) as wrong:
        Letter.model_validate({"name": 7})
    [one] = field_errors(wrong.value, {"name": 7}, "letters.3")
    assert one.field == "letters.3.name"


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
@pytest.mark.parametrize("nouns", [JSON_NOUNS, YAML_NOUNS])
def test_every_error_of_the_validator_has_plain_words(known: Any, nouns: Any) -> None:
    context = {name: value if value is not None else ValueError("must be fine") if name == "error" else 3
               for name, value in (known.get("example_context") or {}).items()}
    found = {"type": known["type"], "ctx": context, "input": "x", "loc": ("f",)}
    found["msg"] = PydanticKnownError(known["type"], context or None).message()
    told = str(describe_error(found, "f", nouns))
    assert told.startswith("f: ")
    assert unfit_words(told) == []


JUNK = (None, True, 7, -1, 2 ** 63, 0.5, "", "x", "ftp://x", "y" * 600, [], {})
TAGS = ("type", "role")


def parts_of(models: tuple[type[BaseModel], ...]) -> list[dict[str, Any]]:
    """The schemas of the models, and of those within them."""
    schemas = [model.model_json_schema() for model in models]
    return [part for schema in schemas for part in (schema, *schema.get("$defs", {}).values())]


def bodies(models: tuple[type[BaseModel], ...]) -> Iterator[Any]:
    """Junk in every member; and below every member objects that say truly what they are, with junk in the rest."""
    members = [part.get("properties", {}) for part in parts_of(models)]
    names = sorted({name for some in members for name in some})
    tags = sorted({str(some[tag].get("const")) for some in members for tag in TAGS if tag in some})
    yield from JUNK
    for first in range(0, len(JUNK), 3):
        yield dict(zip(names, cycle(JUNK[first:] + JUNK[:first]), strict=False))
    for first, tag in enumerate((*tags, "nothing", None)):
        tagged = dict(zip(names, cycle(JUNK[first % 5:]), strict=False)) | dict.fromkeys(TAGS, tag)
        for below in (tagged, [tagged], [dict.fromkeys(TAGS, tag)]):
            yield dict.fromkeys(names, below) | dict.fromkeys(TAGS, tag)


def is_place(path: str, value: Any) -> bool:
    """Whether the path leads to something in the value, or to a member that is missing there."""
    for number, step in enumerate(steps := path.split(".") if path else []):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return isinstance(value, dict) and number == len(steps) - 1
    return True


@pytest.mark.parametrize("dialect", [*DIALECTS, "config"])
def test_whatever_is_wrong_is_told_in_plain_words_at_its_field(dialect: str) -> None:
    models = wire_models(dialect) if dialect in DIALECTS else (Config,)
    told = set[str]()
    for body in bodies(models):
        for model in models:
            try:
                model.model_validate(body)
            except ValidationError as error:
                found = field_errors(error, body)
                assert all(is_place(one.field, body) and len(one.received) <= 60 for one in found), found
                told.update(map(str, found))
    assert len(told) > 20
    assert {text: unfit for text in told if (unfit := unfit_words(text))} == {}


@pytest.mark.parametrize("field", [
    "key", "auth.refresh", "auth.access_token", "client_secret", "headers.Cookie", "env.HOME", "password",
])
def test_a_secret_is_not_quoted(field: str) -> None:
    assert quote_value("hunter2", field) == "a string"
    assert quote_value(1234, field) == "a number"


class Struct(msgspec.Struct):
    turn: int
    colour: Colour = Colour.RED
    names: list[Annotated[str, msgspec.Meta(min_length=2)]] = []


@pytest.mark.parametrize(("body", "told"), [
    ({}, "'turn' is missing"),
    ([], "must be an object, not an array"),
    ({"turn": "x"}, "turn: must be a whole number, not a string"),
    ({"turn": 1, "names": ["x"]}, "names.0: must have at least 2 characters"),
    ({"turn": 1, "colour": "blue"}, "colour: does not know 'blue'"),
])
def test_a_struct_is_told_in_the_same_words(body: Any, told: str) -> None:
    with pytest.raises(msgspec.ValidationError) as wrong:
        msgspec.convert(body, Struct)
    assert describe_struct_error(wrong.value) == told
