"""Words made fit to be shown."""

import pytest

import gateway.model as m
from gateway.chat.text_layout import as_json, escape_controls, first_lines, indented_json, shorten


@pytest.mark.parametrize(("text", "shown"), [
    ("a\nb\tc", "a\nb\tc"), ("a\r\nb\rc", "a\nb\nc"), ("\x1b[2J", "\\x1b[2J"), ("\x9b31m", "\\x9b31m"),
    ("a\u202eb", "a\\u202eb"), ("größe 新", "größe 新"), ("\ud800", "\\ud800"),
])
def test_nothing_moves_the_cursor(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_short_is_one_line() -> None:
    assert shorten(" a\nb ") == "a b"
    assert shorten("x" * 300, 10) == "xxxxxxxxx…"


def test_results_are_folded() -> None:
    assert first_lines("1\n2\n3\n4") == ["1", "2", "3", "4"]
    assert first_lines("1\n2\n3\n4\n5") == ["1", "2", "3", "4", "… 1 more line"]
    assert first_lines("1\n2\n3\n4\n5\n6\n") == ["1", "2", "3", "4", "… 2 more lines"]
    assert first_lines("") == [""]


def test_every_part_has_words() -> None:
    parts = (
        m.TextPart(text="hi"), m.ImagePart(url="https://x/y.png"), m.FilePart(name="a.txt"),
        m.DataPart(type="plan", content={"a": 1}), m.ToolUsePart(call=m.ToolCall(call_id="c", name="calc")),
    )
    assert first_lines(parts, 9) == ["hi", "[image] https://x/y.png", "[file] a.txt", '[plan] {"a":1}', "[call] calc"]


def test_what_json_cannot_say_is_said_all_the_same() -> None:
    assert as_json({"a": object}) == indented_json({"a": object})[0] == "{'a': <class 'object'>}"


def test_what_must_be_seen_is_seen_whole() -> None:
    assert indented_json({"a": ["x\ny", "\u202e"]}) == ["{", '  "a": [', '    "x\\ny",', '    "\\u202e"', "  ]", "}"]
    assert indented_json("x" * 10, 5) == ['"xxxx', "… 7 more characters"]
