"""Secrets are blotted out of what an upstream says."""

import pytest

import gateway.model as m
from gateway.client import Redactor, redact
from gateway.client.redaction import long_secrets
from gateway.errors import BackendFailed
from gateway.ports import RemoteTurnEnd

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


def test_a_message_loses_all_secrets_and_a_body_the_long_ones() -> None:
    redactor = Redactor(("ollama", KEY))
    assert redactor.message(f"ollama says {KEY}") == "*** says ***"
    assert redactor.body(f"ollama says {KEY}") == "ollama says ***"


def test_the_fault_of_a_turn_has_no_secrets() -> None:
    redactor, fault = Redactor((KEY,)), m.Fault(code=m.FaultCode.BACKEND, message=f"bad key {KEY}")
    ended = redactor.turn_end(RemoteTurnEnd(outcome=m.Outcome.FAILED, fault=fault))
    assert ended.fault is not None and ended.fault.message == "bad key ***"
    assert ended.outcome is m.Outcome.FAILED
    assert redactor.turn_end(RemoteTurnEnd()) == RemoteTurnEnd()


def test_errors_of_a_block_are_raised_without_secrets() -> None:
    with pytest.raises(BackendFailed, match=r"^bad key \*\*\*$") as caught, Redactor((KEY,)).errors():
        raise BackendFailed(f"bad key {KEY}", details={"upstream_status": 401})
    assert str(caught.value) == "bad key ***"
    assert caught.value.details == {"upstream_status": 401}


def test_a_quotation_is_one_short_line_without_secrets() -> None:
    assert Redactor((KEY,)).quote(f"no\n  {KEY} ") == "no ***"
    assert Redactor(()).quote(None) == "None"
    assert len(Redactor(()).quote("x " * 1000)) == 500
