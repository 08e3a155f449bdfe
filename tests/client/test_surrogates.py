"""Half a character is a sign; whole ones, and what only looks like a half, stay as they are."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.client import replace_lone_surrogates


@pytest.mark.parametrize(("told", "words"), [
    (r'"\ud83d"', "\ufffd"), (r'"a\ude00b"', "a\ufffdb"), (r'"\ud83d\ude00"', "\U0001f600"),
    (r'"\uD83D\uDE00"', "\U0001f600"),
    (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"), (r'"\\ud83d"', r"\ud83d"), (r'"\\\ud83d"', "\\\ufffd"),
    (r'"\ud83d\n"', "\ufffd\n"), (r'"\u00fc"', "\u00fc"), ('"\U0001f600"', "\U0001f600"),
])
def test_halves_of_characters(told: str, words: str) -> None:
    assert msgspec.json.decode(replace_lone_surrogates(told)) == words


@given(st.text())
def test_whole_characters_stay_as_they_are(text: str) -> None:
    assert replace_lone_surrogates(json.dumps(text)) == json.dumps(text)


@given(st.text(st.characters(categories=("Cs", "Lu"), include_characters='\\\\"ud83')))
def test_halves_anywhere(text: str) -> None:
    found = msgspec.json.decode(replace_lone_surrogates(json.dumps(text)))
    assert found == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
