"""Directives are found where they stand alone; everything else is the message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS, MAX_DELTAS, Directive, parse_message

D = Directive


@pytest.mark.parametrize(("message", "directives", "text"), [
    ("hello", [], "hello"),
    ("  two\n lines ", [], "two\n lines"),
    ("/think hello", [D("think")], "hello"),
    ("hello /think world", [D("think")], "hello world"),
    ("a\n/think\nb", [D("think")], "a\nb"),
    ("/think /ask /think", [D("think"), D("ask"), D("think")], ""),
    ("/thinking and/think /Think", [], "/thinking and/think /Think"),
    ("/fork-ask x /fork", [D("fork-ask"), D("fork")], "x"),
    ("/fail-start", [D("fail-start")], ""),
    ("/tool", [D("tool")], ""),
    ("/tool clock now", [D("tool", "clock")], "now"),
    ('/tool calc {"expression": "1 + 1"} and more', [D("tool", "calc", {"expression": "1 + 1"})], "and more"),
    ('/tool calc{"a":1}b', [D("tool", "calc", {"a": 1})], "b"),
    ('/tool {"a": {"b": []}}', [D("tool", None, {"a": {"b": []}})], ""),
    ("/tool calc {broken", [D("tool", "calc")], "{broken"),
    ('/tool calc {"a": NaN}', [D("tool", "calc")], '{"a": NaN}'),
    ('/tool calc {"a": 1e999}', [D("tool", "calc")], '{"a": 1e999}'),
    ('/tool calc {"a": 99999999999999999999999}', [D("tool", "calc")], '{"a": 99999999999999999999999}'),
    ('/tool calc {"a": "\\ud800"}', [D("tool", "calc")], '{"a": "\\ud800"}'),
    ("/tool calc [1]", [D("tool", "calc")], "[1]"),
    ("/tool /think", [D("tool"), D("think")], ""),
    ("/tool mcp:do.it-now", [D("tool", "mcp:do.it-now")], ""),
    ('/client-tool {"n": 1} hi', [D("client-tool", None, {"n": 1})], "hi"),
    ("/client-tool hi", [D("client-tool")], "hi"),
    ("/slow 3 hi", [D("slow", number=3)], "hi"),
    ("/slow hi", [D("slow")], "hi"),
    ("/slow 3x", [D("slow")], "3x"),
    ("/burst 99999999", [D("burst", number=MAX_DELTAS)], ""),
    ("/burst 0", [D("burst", number=0)], ""),
    ("/title A  good /think name\nhello", [D("title", "A  good /think name")], "hello"),
    ("/title", [], "/title"),
    ("/title \nhello", [], "/title \nhello"),
])
def test_parse(message: str, directives: list[Directive], text: str) -> None:
    assert parse_message(message) == (tuple(directives), text)


@given(st.text())
def test_any_text_can_be_read(message: str) -> None:
    parse_message(message)


@given(st.lists(st.sampled_from([*(f"/{name}" for name in ARGUMENT_PARSERS), "word", "{}", "7", "\n"])))
def test_what_is_no_directive_stays_in_order(pieces: list[str]) -> None:
    script = parse_message(" ".join(pieces))
    assert len(script.directives) <= sum(piece.startswith("/") for piece in pieces)
    left = iter(pieces)
    assert all(word in left for word in script.text.split())


def test_a_deep_object_is_text() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    assert parse_message(f"/client-tool {deep}").directives == (Directive("client-tool"),)
