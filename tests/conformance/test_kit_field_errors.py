"""What is wrong with a profile or a baseline is told in words of the file, without what may be a secret."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors

from conformance.kit.field_errors import words_of
from tests.support.error_wording import VALIDATOR_WORDS

DOCUMENTED = ("missing", "extra_forbidden", "model_type", "dict_type", "list_type", "string_type", "int_parsing",
              "float_parsing", "bool_parsing", "literal_error", "enum", "greater_than", "greater_than_equal",
              "less_than", "less_than_equal", "string_too_short", "string_too_long", "too_short", "too_long",
              "date_parsing", "date_from_datetime_parsing", "string_pattern_mismatch", "url_parsing", "url_scheme")


class Profile(BaseModel, extra="forbid"):
    url: str = "x"
    key: str = "x"
    seconds: float = Field(1, gt=0)
    mode: Literal["a", "b"] = "a"
    names: list[str] = []


@pytest.mark.parametrize(("document", "told"), [
    ({"url": 7}, "must be a string, not 7"),
    ({"key": 123456}, "must be a string, not what is written there"),
    ({"seconds": "long"}, "must be a number, not 'long'"),
    ({"seconds": 0}, "must be greater than 0.0, not 0"),
    ({"mode": True}, "must be 'a' or 'b', not true"),
    ({"names": {}}, "must be a list, as `[one, two]`, not a mapping"),
    ({"names": None}, "must be a list, as `[one, two]`, not empty"),
    ({"nmaes": []}, "is not known here"),
])
def test_a_mistake_in_words(document: Any, told: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        Profile.model_validate(document)
    assert [words_of(found) for found in wrong.value.errors()] == [told]


@pytest.mark.parametrize("known", [one for one in list_all_errors() if one["type"] in DOCUMENTED],
                         ids=lambda known: known["type"])
def test_no_word_of_the_validator_gets_out(known: Any) -> None:
    context = {name: 3 if value is None else value for name, value in (known.get("example_context") or {}).items()}
    message = PydanticKnownError(known["type"], context or None).message()
    told = words_of({"type": known["type"], "ctx": context, "input": "x", "loc": ("f",), "msg": message})
    assert [word for word in VALIDATOR_WORDS if word in told] == []
