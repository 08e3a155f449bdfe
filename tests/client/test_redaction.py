"""Secrets are blotted out of what an upstream says."""

import pytest

from gateway.client import redact
from gateway.client.redaction import long_secrets

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(("said", "told"), [
    (f"Incorrect key: {KEY}.", "Incorrect key: ***."),
    (f"{KEY}{KEY} twice", "****** twice"),
    ("nothing", "nothing"),
    ("cut off: sk-01234567", "cut off: ***"),
    ("a few letters only: sk-01", "a few letters only: sk-01"),
    ("", ""),
])
def test_a_key_is_not_repeated(said: str, told: str) -> None:
    assert redact(said, (KEY,)) == told


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert redact("abcdefghij", ("abcdef", "abcdefghij")) == "***"


def test_a_short_word_is_no_secret() -> None:
    assert redact("the end", ("the", "")) == "the end"


def test_only_long_secrets_are_taken_out_of_answers() -> None:
    assert long_secrets(("ollama", KEY, KEY + "0")) == (KEY + "0", KEY)
