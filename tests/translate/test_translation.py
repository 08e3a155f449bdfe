"""A stream translated says what the original said: every pair of dialects, every directive, whatever was cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import gateway.model as m
from gateway.translate import UnreadableRecording
from gateway.translate import translation as translating_module
from mappings.language import SupportLevel
from tests.simulation import simulated
from tests.support.dialect_parts import has_part, part
from tests.support.dialect_tables import DIALECTS, table
from tests.support.engine.engine_fixture import lawful
from tests.support.gateway_server import serving
from tests.support.pairs.comparison import Comparison
from tests.support.pairs.facts import FactCounter, counted
from tests.support.translate.conversations import DIRECTIVES, SETTINGS, conversation, told, translated
from tests.support.translate.recordings import recorded

MINE = SETTINGS.client_tools[0].name
WHOSE = ("tool_results", "client_tools", "permissions")
"""A stream alone does not tell whose an open call is, or who gave the result: what is the client's is left out here."""
PICKED = [
    "hello there", "/think why", '/tool calc {"expression": "6*7"} well', "/ask", "/fail", "/parallel", "/client-tool",
]


def only_shown(source: str, target: str) -> dict[str, list[str]]:
    """By directive, what a stream cannot tell although its dialect can; each of these is found, and nothing else."""
    if not has_part(source, "translation"):
        return {}
    excused: dict[str, list[str]] = part(source, "translation").ONLY_SHOWN.get(target, {})
    return excused


async def _originals(folder: Path) -> dict[str, list[m.Record]]:
    async with serving(folder) as served:
        kept = {words: await conversation(served, words) for words in DIRECTIVES}
        kept["all"] = await conversation(served, *PICKED)
        return kept


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[m.Record]]:
    return simulated(_originals(tmp_path_factory.mktemp("originals")))


def records_of(canonical: bytes) -> list[m.Record]:
    return [m.decode_record(line) for line in canonical.splitlines()[1:]]


def turns_of(records: list[m.Record]) -> list[FactCounter]:
    turns = [record.turn_id for record in records if isinstance(record.event, m.TurnStarted)]
    return [counted(records, turn_id) for turn_id in turns if turn_id]


def heard(stream: bytes, name: str) -> list[FactCounter]:
    """What a client of this dialect makes of a stream; which has to be lawful."""
    records = records_of(translated(stream, name, None)[0])
    assert lawful(records).turn is m.TurnPhase.IDLE
    return turns_of(records)


def surprises(was: FactCounter, now: FactCounter, source: str) -> dict[str, tuple[object, object]]:
    """What is different, and the table of the source does not say that it may be."""
    levels = table(source).client_support
    lost = Comparison(was, now, {name: {level} for name, level in levels.items()}, None).lost()
    return {name: (one, other) for name, one, other in lost
            if levels[name] is SupportLevel.FULL and not (name in WHOSE and not_mine(one) == not_mine(other))}


def not_mine(told: list[tuple[str, object]]) -> list[tuple[str, object]]:
    return [one for one in told if one[0] != MINE]


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_every_pair_says_what_the_target_would_have_said_of_the_original(
    originals: dict[str, list[m.Record]], source: str, target: str,
) -> None:
    for words in DIRECTIVES:
        records = originals[words]
        [original] = turns_of(records)
        [was] = heard(told(records, target), target)
        stream, translation, _ = translated(told(records, source), source, target)
        [now] = heard(stream, target)
        was.asked_below = original.asked_below
        found = surprises(was, now, source)
        for name in only_shown(source, target).get(words, ()):
            assert found.pop(name), f"{name} of {words} arrives: it need not be excused any more"
        assert found == {}, words
        assert [*translation.remarks.lines()] == [], words


@pytest.mark.parametrize("source", DIALECTS)
def test_a_conversation_of_many_turns_keeps_them_apart(originals: dict[str, list[m.Record]], source: str) -> None:
    records = originals["all"]
    now = turns_of(records_of(translated(told(records, source), source, None)[0]))
    was = turns_of(records)
    assert len(now) == len(was) == len(PICKED)
    for words, one, other in zip(PICKED, was, now, strict=True):
        assert surprises(one, other, source) == {}, words


def test_the_houses_own_records_come_through_as_they_are(originals: dict[str, list[m.Record]]) -> None:
    records = originals["all"]
    canonical, _, losses = translated(b"".join(_lines(records)), None, None)
    assert records_of(canonical) == records
    assert [*losses.lines()] == []
    assert not losses.is_lossy


@pytest.mark.parametrize("target", DIALECTS)
def test_records_become_what_the_gateway_would_have_said(originals: dict[str, list[m.Record]], target: str) -> None:
    records = originals["all"]
    assert translated(b"".join(_lines(records)), None, target)[0] == told(records, target)


def _lines(records: list[m.Record]) -> Iterator[bytes]:

    yield b'{"format":"dragoman log","model":1}\n'
    yield from (m.encode_record(record) + b"\n" for record in records)


# -- recordings of both sides -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", DIALECTS)
async def test_a_recording_has_also_what_people_said(tmp_path: Path, source: str) -> None:
    directives = ["hello there", "/ask", "/permit", "/continue", "/rollback"]
    dialects: dict[str, dict[str, object]] = {name: {} for name in DIALECTS}
    async with serving(tmp_path, dialects=dialects) as served:
        recording = await recorded(served, source, *directives)
        heads = reversed(await served.gateway.sessions.heads(""))
        originals = [list(await served.gateway.sessions.records("", head.session_id)) for head in heads]
    canonical, translation, _ = translated(recording, source, None)
    assert [*translation.remarks.lines()] == []
    records = records_of(canonical)
    assert len({record.session_id for record in records}) == len(directives)
    for original in originals:
        now = [record for record in records if record.session_id == original[0].session_id]
        lawful(now)
        assert commands(now) == commands(original)
        [one], [other] = turns_of(original), turns_of(now)
        assert surprises(one, other, source) == {}


def commands(records: list[m.Record]) -> list[object]:
    """What people said and answered, without the ids of the one log or the other."""
    said = [record.event.command for record in records if isinstance(record.event, m.InputAccepted)]
    return [command.content if isinstance(command, m.SendMessage) else command.kind for command in said]


# -- cut off ----------------------------------------------------------------------------------------------------------

def cuts(stream: bytes) -> Iterator[int]:
    """Every place of a short stream; of a long one those around line ends, and some others."""
    for place in range(len(stream)):
        if len(stream) < 1500 or place % 211 == 0 or b"\n" in stream[max(0, place - 2):place + 2]:
            yield place


@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("words", ["hello there", '/tool calc {"expression": "6*7"} well', "/ask"])
def test_a_stream_cut_anywhere_gives_a_lawful_one(
    originals: dict[str, list[m.Record]], source: str, words: str
) -> None:
    stream = told(originals[words], source)
    whole = records_of(translated(stream, source, None)[0])
    for place in cuts(stream):
        try:
            canonical, translation, _ = translated(stream[:place], source, None)
        except UnreadableRecording as error:
            assert place < 15 and "line 1:" in error.message, place  # nothing can be recognised yet
            continue
        records = records_of(canonical)
        grammar = lawful(records)
        assert grammar.turn is not m.TurnPhase.RUNNING
        is_torn = any(isinstance(record.event, m.TurnEnded) for record in records) and len(records) < len(whole)
        assert not is_torn or translation.remarks.torn or translation.remarks.is_cut or grammar.turn is m.TurnPhase.IDLE


@pytest.mark.parametrize("target", DIALECTS)
def test_what_was_open_is_closed_in_the_words_of_the_target(originals: dict[str, list[m.Record]], target: str) -> None:
    stream = told(originals['/tool calc {"expression": "6*7"} well'], "aap")
    torn = stream[:stream.index(b"event: tool_result")]
    out, translation, _ = translated(torn, "aap", target)
    facts = heard(out, target)[0].facts()
    assert facts["tool_calls"] == [("calc", {"expression": "6*7"})]
    assert facts["stop_reasons"] != "end_turn"
    assert [*translation.remarks.lines()] == ["the recording ends in the middle of a turn; what was open is closed"]


def test_records_cut_off_are_closed_too(originals: dict[str, list[m.Record]]) -> None:
    lines = [*_lines(originals["hello there"])]
    canonical, translation, _ = translated(b"".join(lines[:6]) + lines[6][:20], None, None)
    records = records_of(canonical)
    assert records[:5] == originals["hello there"][:5]
    assert lawful(records).turn is m.TurnPhase.IDLE
    assert [*translation.remarks.lines()] == [
        "the recording ends in the middle of a line or an event; that was left out",
        "the recording ends in the middle of a turn; what was open is closed",
    ]


def test_a_turn_that_waits_for_people_is_not_torn(originals: dict[str, list[m.Record]]) -> None:
    stream = told(originals["/ask"], "aap")
    waiting = stream[:stream.index(b"turn_start", 40) - len(b"event: ")]
    canonical, translation, _ = translated(waiting, "aap", None)
    assert lawful(records_of(canonical)).turn is m.TurnPhase.SUSPENDED
    assert translation.remarks.torn == 0


# -- what cannot be read ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("stream", "told_of"), [
    (b"<html>\n", "line 1: this is none of"),
    (b"event: turn_start\ndata: {}\n\nevent: text_delta\ndata: {oops\n\n", "line 6: the data of the event 'text_"),
    (b'{"event": "turn_start", "data": {}}\nnonsense\n', "line 2: this is not JSON"),
    (b'{"event": "turn_start", "data": {}}\n\xff\xfe\n', "line 2: this is not UTF-8"),
    (b"data: \xff\n\n", "line 1: the upstream sent an event that is not UTF-8"),
    (b'{"type":"recording","version":2,"dialect":"aap"}\n', "line 1: this is version 2 of recordings"),
    (b'{"type":"recording","version":1,"dialect":"cas"}\n', "line 1: this was recorded from 'cas', not from 'aap'"),
    (b'{"type":"recording","version":1,"dialect":"aap"}\n[]\n', "line 2: a line of a recording is an object"),
    (b'{"type":"recording","version":1,"dialect":"aap"}\n{"type":"event"}\n', "line 2: this line of type 'event'"),
    (b'{"type":"event","exchange":1,"at":0,"text":""}\n', "line 1: the first line of the recording is missing"),
    (b'event: turn_start\ndata: {}\n\nevent: text_delta\ndata: {"delta": 7}\n\n', "line 6: "),
    (b"7\n\"words\"\n", "line 1: this is not a frame"),
])
def test_garbage_is_told_with_its_line(stream: bytes, told_of: str) -> None:
    with pytest.raises(UnreadableRecording) as caught:
        translated(stream, "aap", None)
    assert caught.value.message.startswith(told_of)


def test_a_record_where_none_may_be_is_told_with_its_line() -> None:
    ended = b'{"seq":1,"at":1.0,"session_id":"s","event":{"type":"turn.started","command_id":"c"}}\n'
    with pytest.raises(
        UnreadableRecording, match=r"line 2: this cannot come here: turn\.started while the turn is running"
    ):
        translated(ended + ended, None, None)
    with pytest.raises(UnreadableRecording, match="line 1: this is not a record"):
        translated(b"{}\n", None, None)


def test_nothing_is_nothing() -> None:
    out, translation, losses = translated(b"", "aap", "cas")
    assert out == b""
    assert [*translation.remarks.lines()] == ["the recording contains no events"]
    assert not losses.is_lossy


# -- many sessions ----------------------------------------------------------------------------------------------------

def _many(count: int) -> bytes:

    lines = [
        m.encode_record(m.Record(seq=seq, at=1.0, session_id=f"s{number}", event=event)) + b"\n"
        for number in range(count)
        for seq, event in ((1, m.SessionCreated(agent="a")), (2, m.TurnStarted(command_id="c")))
    ]
    return b"".join(lines)


def test_so_many_sessions_are_followed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating_module, "MAX_SESSIONS", 2)
    records = records_of(translated(_many(4), None, None)[0])
    ends = [record.session_id for record in records if isinstance(record.event, m.TurnEnded)]
    assert ends == ["s0", "s1", "s2", "s3"]
    third = next(number for number, record in enumerate(records) if record.session_id == "s2")
    assert isinstance(records[third - 1].event, m.TurnEnded), "the oldest is ended before a third begins"
    for session_id in ends:
        grammar = m.Grammar()
        for record in records:
            if record.session_id == session_id:
                grammar.check(record.event, record.scope_id)
