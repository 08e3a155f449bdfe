"""Secrets are blotted out of what an upstream says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.client import Redactor, SecretFilter, StreamAssembler, redact
from gateway.client.redaction import long_secrets
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports import RemoteTurnEnd
from tests.support.backends.model_services import KEY, chat, chunk, talked
from tests.support.backends.model_services import call as call_piece

SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize(("said", "told"), [
    (f"Incorrect key: {SECRET}.", "Incorrect key: ***."),
    (f"{SECRET}{SECRET} twice", "****** twice"),
    ("nothing", "nothing"),
    ("cut off: sk-01234567", "cut off: ***"),
    ("a few letters only: sk-01", "a few letters only: sk-01"),
    ("", ""),
])
def test_a_key_is_not_repeated(said: str, told: str) -> None:
    assert redact(said, (SECRET,)) == told


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert redact("abcdefghij", ("abcdef", "abcdefghij")) == "***"


def test_a_short_word_is_no_secret() -> None:
    assert redact("the end", ("the", "")) == "the end"


def test_only_long_secrets_are_taken_out_of_answers() -> None:
    assert long_secrets(("ollama", SECRET, SECRET + "0")) == (SECRET + "0", SECRET)


def test_a_message_loses_all_secrets_and_a_body_the_long_ones() -> None:
    redactor = Redactor(("ollama", SECRET))
    assert redactor.message(f"ollama says {SECRET}") == "*** says ***"
    assert redactor.body(f"ollama says {SECRET}") == "ollama says ***"


def test_the_fault_of_a_turn_has_no_secrets() -> None:
    redactor, fault = Redactor((SECRET,)), m.Fault(code=m.FaultCode.BACKEND, message=f"bad key {SECRET}")
    ended = redactor.turn_end(RemoteTurnEnd(outcome=m.Outcome.FAILED, fault=fault))
    assert ended.fault is not None and ended.fault.message == "bad key ***"
    assert ended.outcome is m.Outcome.FAILED
    assert redactor.turn_end(RemoteTurnEnd()) == RemoteTurnEnd()


def test_errors_of_a_block_are_raised_without_secrets() -> None:
    with pytest.raises(BackendFailed, match=r"^bad key \*\*\*$") as caught, Redactor((SECRET,)).errors():
        raise BackendFailed(f"bad key {SECRET}", details={"upstream_status": 401})
    assert str(caught.value) == "bad key ***"
    assert caught.value.details == {"upstream_status": 401}


def test_a_quotation_is_one_short_line_without_secrets() -> None:
    assert Redactor((SECRET,)).quote(f"no\n  {SECRET} ") == "no ***"
    assert Redactor(()).quote(None) == "None"
    assert len(Redactor(()).quote("x " * 1000)) == 500


OTHER = "another-secret-of-some-length"


def redacting(secrets: tuple[str, ...]) -> StreamAssembler:
    return StreamAssembler(make_mint("t"), secret_filter=SecretFilter(secrets))


def taken_down(*pieces: str, kind: m.BlockKind = m.BlockKind.TEXT) -> tuple[list[str], str]:
    """The deltas, and the whole; held to the grammar."""
    assembler = redacting((KEY, OTHER, "short"))
    said: list[Any] = assembler.begin()
    for piece in pieces:
        said += assembler.text_delta("k", piece, kind)
    said += assembler.finish()
    grammar = m.Grammar()
    grammar.check(m.TurnStarted(command_id="c"))
    for event in said:
        grammar.check(event)
    return ([event.delta for event in said if isinstance(event, m.BlockDelta)],
            "".join(event.text or "" for event in said if isinstance(event, m.BlockEnded)))


def test_other_words_pass_as_they_come() -> None:
    pieces = ["Words", " that", " end", " in s", "k", "- and", " s", "k-", "a too; short"]
    assert taken_down(*pieces)[0] == pieces


@pytest.mark.parametrize("kind", [m.BlockKind.TEXT, m.BlockKind.THINKING])
def test_a_key_in_two_pieces_wherever_it_is_cut(kind: m.BlockKind) -> None:
    for cut in range(len(KEY) + 1):
        _, whole = taken_down(f"It is {KEY[:cut]}", f"{KEY[cut:]}, I think.", kind=kind)
        assert KEY[3:] not in whole and whole.endswith("***, I think.") and whole.startswith("It is ")


def test_a_key_letter_by_letter() -> None:
    assert KEY[3:] not in taken_down(*f"a {KEY} b {OTHER}{KEY} c")[1]


def test_an_empty_piece_before_a_key_does_not_let_it_pass() -> None:
    for cut in range(1, len(KEY)):
        assert KEY[3:] not in taken_down("", KEY[:cut], KEY[cut:])[1]


def test_what_only_begins_like_a_key_is_said() -> None:
    assert taken_down("a sk-a", "-ke", "yring", " b")[1] == "a sk-a-keyring b"
    assert taken_down("It is sk-a")[1] == "It is sk-a"


def test_a_key_that_breaks_off_at_the_end_is_not_said() -> None:
    assert taken_down("It is ", KEY[:-1])[1] == "It is ***"


@given(st.lists(st.sampled_from(["s", "k", "-", "a", "sk-", "sk-a-key", " ", "é", KEY[:9], KEY[9:], "another-"])))
def test_nothing_is_lost_that_is_no_secret(pieces: list[str]) -> None:
    whole, text = "".join(pieces), taken_down(*pieces)[1]
    assert KEY[3:] not in text
    if KEY not in whole and not any(whole.endswith(KEY[:n]) for n in range(4, len(KEY))) and not any(
            whole.endswith(OTHER[:n]) for n in range(4, len(OTHER))):
        assert text == whole


PIECES = st.lists(st.sampled_from(["s", "k", "-", "", "sk-", "sk-a-key", " and", "é", KEY[:9], KEY[9:], "another-"]))


@given(PIECES, st.lists(PIECES, max_size=4))
def test_what_comes_several_at_a_time_is_taken_down_as_what_comes_one_by_one(
    first: list[str], groups: list[list[str]],
) -> None:
    one, other = (redacting((KEY, OTHER, "short")) for _ in range(2))
    told, apart = list[Any](), list[Any]()
    for assembler, said in ((one, told), (other, apart)):
        said += assembler.begin()
        for piece in first:
            said += assembler.text_delta("k", piece)
    for group in groups:
        told += one.text_deltas("k", group)
        apart += [event for piece in group for event in other.text_delta("k", piece)]
    assert [*told, *one.finish()[:-1]] == [*apart, *other.finish()[:-1]]  # the last tells how long it took


def test_the_input_of_a_call() -> None:
    assembler = redacting((KEY,))
    assembler.begin()
    assembler.call("c", m.ToolCall(call_id="c", name="t"))
    for piece in ('{"key": "sk-a-k', KEY[6:], '", "n": 1}'):
        assembler.input_delta("c", piece)
    assembler.finish()
    assert assembler.writer.calls[0].input == {"key": "***", "n": 1}


def test_without_secrets_nothing_is_held() -> None:
    assembler = redacting(("short",))
    assert assembler.text_delta("k", "sk-a")[-1].delta == "sk-a"  # type: ignore[union-attr]


async def test_a_service_that_repeats_the_key_in_pieces() -> None:
    turn, _ = await talked("openai", [chat(
        chunk({"reasoning": f"hm {KEY[:10]}"}), chunk({"reasoning": KEY[10:]}),
        chunk({"content": f"Yours is {KEY[:2]}"}), chunk({"content": KEY[2:12]}), chunk({"content": f"{KEY[12:]}!"}),
        chunk(call_piece(0, "a", "nobody", f'{{"k": "{KEY[:7]}')), chunk(call_piece(0, None, None, f'{KEY[7:]}"}}')),
        chunk(finish="length"),
    )])
    assert turn.text == "Yours is sk***!"
    assert KEY[3:] not in "".join(event.delta for event in turn.all(m.BlockDelta))
