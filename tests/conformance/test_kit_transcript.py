"""Transcripts: everything is kept, in order and with its time, except secrets."""

from conformance.kit.transcript import LONGEST, Incoming, Transcript


def clocked(*secrets: str) -> Transcript:
    times = iter(range(100))
    return Transcript(secrets, clock=lambda: float(next(times)))


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
    transcript = clocked("key")
    transcript.received("200 OK\nX-Odd: key " + b"\xff".decode("utf-8", "surrogateescape"))
    assert transcript.last_answer == "200 OK\nX-Odd: [redacted] \\udcff"
    assert str(transcript).encode()
