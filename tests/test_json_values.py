"""JSON that can be read but not be written again is refused by name before it is taken in."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.json_values import MAX_JSON_DEPTH, JsonLimitExceeded, check_limits, read_exact_json, read_json

NUMBERS = st.integers(-(2 ** 70), 2 ** 70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(alphabet=st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


def spelled(value: Any) -> str:
    """JSON with integers of any size, which orjson cannot write."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{spelled(key)}:{spelled(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return str(value) if type(value) is int else orjson.dumps(value).decode()


def within(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(within, value.values() if isinstance(value, dict) else value))
    return type(value) is not int or -(2 ** 63) <= value < 2 ** 64


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(VALUES)
def test_a_value_comes_back_as_it_came_or_its_integer_is_named(value: Any) -> None:
    text = spelled(value)
    if within(value):
        assert orjson.loads(orjson.dumps(read_json(text))) == read_json(text.encode()) == value
        check_limits(value)
        return
    for refuse in (lambda: read_json(text), lambda: check_limits(value)):
        with pytest.raises(JsonLimitExceeded) as refused:
            refuse()
        named = at(value, refused.value.path)
        assert not within(named) and str(named) in refused.value.words


@given(VALUES)
def test_what_another_server_sends_is_read_exactly(value: Any) -> None:
    assert read_exact_json(spelled(value)) == value


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_as_many_levels_as_are_documented(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + "1" + closing * levels

    for levels in (0, 1, 100, MAX_JSON_DEPTH):
        check_limits(read_json(nested(levels)))
    for levels in (MAX_JSON_DEPTH + 1, 254, 255, 1000, 5000):
        with pytest.raises(
            JsonLimitExceeded, match=f"nested {levels} levels deep; at most {MAX_JSON_DEPTH} levels are possible"
        ):
            read_json(nested(levels))
    with pytest.raises(JsonLimitExceeded, match="nested 160 levels deep"):
        check_limits(orjson.loads(nested(160)))


def test_what_is_wide_is_not_deep() -> None:
    wide = [{"list": [[]], "text": "[[[[{{{{"} for _ in range(1000)]
    assert read_json(orjson.dumps(wide)) == wide


@pytest.mark.parametrize(("text", "told"), [
    ('{"a":[0,' + "9" * 5000 + "]}",
     "a.1: a number of 5000 characters does not fit into 64 bits; write it as a string"),
    ('{"a":1e400}', "a: 1e400 is larger than a double can be; write it as a string"),
    ("-9223372036854775809", "-9223372036854775809 does not fit into 64 bits; write it as a string"),
])
def test_a_number_is_named_and_shortened(text: str, told: str) -> None:
    with pytest.raises(JsonLimitExceeded) as refused:
        read_json(text)
    assert str(refused.value) == told


def test_a_very_large_integer_of_an_agent_is_described() -> None:
    with pytest.raises(JsonLimitExceeded, match="n: a number of 30103 characters does not fit into 64 bits"):
        check_limits({"n": 2 ** 99_999})


@pytest.mark.parametrize("text", [
    "", "{", "[1,]", "NaN", '"\\ud800"', b'"\xff"', "[" * 100, '{"a" 12345678901234567890123}',
])
def test_what_is_not_json_is_told_as_that(text: str | bytes) -> None:
    for read in (read_json, read_exact_json):
        with pytest.raises(orjson.JSONDecodeError):
            read(text)
