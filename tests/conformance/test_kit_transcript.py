"""Transcripts: everything is kept, in order and with its time, except secrets."""

import pytest

from conformance.kit import expect
from conformance.kit.secrets import Redactor
from conformance.kit.transcript import LONGEST, Incoming, Transcript

RETURNED = "sk-live-0123456789abcdef"


def clocked(key: str | None = None) -> Transcript:
    times = iter(range(100))
    return Transcript(Redactor(key=key), clock=lambda: float(next(times)))


def test_entries_have_their_time_and_direction() -> None:
    transcript = clocked()
    transcript.sent("GET /meta\nAccept: x")
    transcript.received("200")
    transcript.remark("so far")
    assert str(transcript).split("\n") == [
        "    1.000 > GET /meta",
        "          > Accept: x",
        "    2.000 < 200",
        "    3.000 * so far",
    ]


def test_the_last_answer_is_known() -> None:
    transcript = clocked()
    transcript.sent("GET /meta")
    assert (transcript.has_answer, transcript.last_answer) == (False, "")
    transcript.received("200")
    transcript.received("{}")
    transcript.sent("GET /sessions")
    assert (transcript.has_answer, transcript.last_answer) == (True, "{}")


def test_secrets_are_struck_out_however_they_are_spelled() -> None:
    secret = 'k"ey/ü'
    transcript = clocked(secret)
    transcript.sent(f"Bearer {secret}")
    transcript.received('{"key": "k\\"ey/\\u00fc"} at /x?key=k%22ey%2F%C3%BC')
    assert "[redacted]" in str(transcript)
    for spelling in (secret, 'k\\"ey', "k%22ey"):
        assert spelling not in str(transcript)


def test_an_empty_secret_strikes_out_nothing() -> None:
    assert clocked("").redact("as it was") == "as it was"


def test_a_secret_cut_in_two_by_the_wire_is_struck_out() -> None:
    transcript = clocked("topsecret")
    incoming = Incoming(transcript)
    for piece in (b"data: top", b"secr", b"et!\r\ndata: caf\xc3", b"\xa9 \xff", b""):
        incoming.feed(piece)
    incoming.close()
    assert [entry.text for entry in transcript.entries] == ["data: [redacted]!", "data: café \\xff"]


def test_long_texts_are_shortened_after_striking_out() -> None:
    transcript = clocked("topsecret")
    transcript.received("x" * (LONGEST - 4) + "topsecret" + "y" * 100)
    kept = transcript.entries[0].text
    assert "tops" not in kept
    assert kept.endswith("more characters)")


def test_bytes_of_no_alphabet_can_be_kept() -> None:
    transcript = clocked("the-key-1")
    odd = b"\xff".decode("utf-8", "surrogateescape")
    transcript.received_head("200 OK", [("Set-Cookie", f"sid={odd}")])
    assert str(transcript).encode()
    transcript.received("200 OK\nX-Odd: the-key-1 " + odd)
    assert transcript.last_answer == "200 OK\nX-Odd: [redacted] \\udcff"
    assert str(transcript).encode()


def test_what_a_server_returns_under_the_name_of_a_secret_is_struck_out_everywhere() -> None:
    transcript = clocked()
    transcript.sent_request("GET /keys/1?token=from-an-address-1", {"X-Api-Key": "another-key-123"})
    transcript.received("an answer that repeats sk-live-0123456789abcdef before it is known")
    transcript.received_head("201 Created", [("Set-Cookie", "sid=abcdef-012345; Path=/")])
    transcript.received(f'{{"plaintext": "{RETURNED}", "authorization_token": "short"}}')
    transcript.sent(f'40{{"token":"{RETURNED}"}}')
    seen = transcript.redact(f'the key was told again: "{RETURNED}"')
    for secret in (RETURNED, "from-an-address-1", "another-key-123", "abcdef-012345", "short"):
        assert secret not in str(transcript) + seen
    assert '"plaintext": "[redacted-4]"' in str(transcript) and '40{"token":"[redacted-4]"}' in str(transcript)
    assert seen == 'the key was told again: "[redacted-4]"'
    assert transcript.returned == ["abcdef-012345", RETURNED, "short"]


def test_a_secret_that_a_shortened_answer_cuts_in_two_is_struck_out() -> None:
    transcript = clocked()
    transcript.received(f'{{"token": "{RETURNED}"}}')
    shown = expect.show("x" * (expect.LONGEST - 12) + RETURNED + "y" * 50)
    assert RETURNED[:12] in shown
    assert transcript.redact(shown) == "x" * (expect.LONGEST - 12) + "[redacted-1] … (62 more characters)"


def test_a_pretty_printed_answer_is_looked_through_as_a_whole() -> None:
    transcript = clocked()
    incoming = Incoming(transcript, is_whole=True)
    for piece in (b'{"env": {\n', b'  "REGION": "eu-west"\n', b"}}"):
        incoming.feed(piece)
    incoming.close()
    assert transcript.last_answer == '{"env": {\n  "REGION": "[redacted-1]"\n}}'


@pytest.mark.parametrize("key", ["x", "abc", "text"])
def test_a_very_short_key_is_struck_out_only_where_a_key_stands(key: str) -> None:
    transcript = clocked(key)
    transcript.sent_request("GET /x", {"Authorization": f"Bearer {key}"})
    transcript.sent(f'40{{"token":"{key}"}}')
    assert [entry.text for entry in transcript.entries] == [
        "GET /x\nAuthorization: Bearer [redacted]", '40{"token":"[redacted]"}']
    assert transcript.redact("abc: the index x of a text") == "abc: the index x of a text"


def test_a_short_key_is_struck_out_as_a_whole_word() -> None:
    transcript = clocked("hunter2")
    assert transcript.redact("no key hunter2; not hunter22") == "no key [redacted]; not hunter22"
