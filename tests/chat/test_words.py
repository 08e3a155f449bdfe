"""Words made fit to be shown."""

import pytest

from gateway.chat.words import as_json, clean, folded, in_lines, short
from gateway.model import DataPart, FilePart, ImagePart, TextPart, ToolCall, ToolUsePart


@pytest.mark.parametrize(("text", "shown"), [
    ("a\nb\tc", "a\nb\tc"), ("a\r\nb\rc", "a\nb\nc"), ("\x1b[2J", "\\x1b[2J"), ("\x9b31m", "\\x9b31m"),
    ("a\u202eb", "a\\u202eb"), ("größe 新", "größe 新"), ("\ud800", "\\ud800"),
])
def test_nothing_moves_the_cursor(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_short_is_one_line() -> None:
    assert short(" a\nb ") == "a b"
    assert short("x" * 300, 10) == "xxxxxxxxx…"


def test_results_are_folded() -> None:
    assert folded("1\n2\n3\n4") == ["1", "2", "3", "4"]
    assert folded("1\n2\n3\n4\n5") == ["1", "2", "3", "4", "… 1 more line"]
    assert folded("1\n2\n3\n4\n5\n6\n") == ["1", "2", "3", "4", "… 2 more lines"]
    assert folded("") == [""]


def test_every_part_has_words() -> None:
    parts = (
        TextPart(text="hi"), ImagePart(url="https://x/y.png"), FilePart(name="a.txt"),
        DataPart(type="plan", content={"a": 1}), ToolUsePart(call=ToolCall(call_id="c", name="calc")),
    )
    assert folded(parts, 9) == ["hi", "[image] https://x/y.png", "[file] a.txt", '[plan] {"a":1}', "[call] calc"]


def test_what_json_cannot_say_is_said_all_the_same() -> None:
    assert as_json({"a": object}) == in_lines({"a": object})[0] == "{'a': <class 'object'>}"


def test_what_must_be_seen_is_seen_whole() -> None:
    assert in_lines({"a": ["x\ny", "\u202e"]}) == ["{", '  "a": [', '    "x\\ny",', '    "\\u202e"', "  ]", "}"]
    assert in_lines("x" * 10, 5) == ['"xxxx', "… 7 more characters"]
