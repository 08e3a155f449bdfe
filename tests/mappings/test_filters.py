"""The filters, one by one."""

from typing import Any

import pytest

import gateway.model as m
from mappings.language.filters import FILTERS, INVERSES, UnknownWord, content_filters, word_filter


@pytest.mark.parametrize("name", FILTERS)
def test_null_passes_every_filter(name: str) -> None:
    assert FILTERS[name](None) is None


@pytest.mark.parametrize(("seconds", "written"), [
    (0, "1970-01-01T00:00:00.000Z"),
    (1767225600.25, "2026-01-01T00:00:00.250Z"),
    (1767225599.9996, "2026-01-01T00:00:00.000Z"),
])
def test_a_moment_as_iso(seconds: float, written: str) -> None:
    assert FILTERS["iso"](seconds) == written


def test_a_moment_in_milliseconds() -> None:
    assert FILTERS["ms"](1767225600.001) == 1767225600001


def test_json_in_a_string() -> None:
    assert FILTERS["json"](m.ToolCall(call_id="c", name="n")) == '{"call_id":"c","name":"n"}'
    assert FILTERS["json"]("a\n") == '"a\\n"'


@pytest.mark.parametrize(("value", "wire"), [("as it is", "as it is"), ({"a": 1}, '{"a":1}'), ([2**70], f"[{2**70}]")])
def test_written_keeps_texts_and_reads_what_looks_like_json(value: Any, wire: str) -> None:
    assert FILTERS["written"](value) == wire
    assert INVERSES["written"][1](wire) == value
    assert INVERSES["written"][1]("{no json") == "{no json"


def test_the_words_of_a_content() -> None:
    assert FILTERS["text"]("bare") == "bare"
    assert FILTERS["text"]((m.TextPart(text="a"), m.ImagePart(url="u"), m.TextPart(text="b"))) == "ab"
    assert FILTERS["text"]({"a": 1}) == '{"a":1}'


def test_a_map_of_words() -> None:
    look = word_filter({"error": "bad", "*": "fine"})
    assert [look(m.StopReason.ERROR), look("refusal"), look(None)] == ["bad", "fine", None]


def test_a_map_without_a_rest_knows_only_its_words() -> None:
    with pytest.raises(UnknownWord) as unknown:
        word_filter({"a": 1, "b": 2})(["a"])
    assert unknown.value.known == ("a", "b")


def test_parts_of_a_kind_spelled_none_are_left_out() -> None:
    filters = content_filters({m.TextPart: lambda part: part.text, m.ImagePart: None})
    content = (m.TextPart(text="a"), m.ImagePart(url="u"))
    assert filters["content"](content) == filters["parts"](content) == ["a"]
    assert filters["content"]("bare") == "bare"
    assert filters["parts"]("bare") == ["bare"]


@pytest.mark.parametrize(("seconds", "told"), [
    (0.0, "1970-01-01T00:00:00.000000"), (1_700_000_000.125, "2023-11-14T22:13:20.125000"),
    (1_700_000_000.9999999, "2023-11-14T22:13:21.000000"), (-0.5, "1969-12-31T23:59:59.500000"), (None, None),
])
def test_a_time_without_a_zone(seconds: float | None, told: str | None) -> None:
    assert FILTERS["naive"](seconds) == told
