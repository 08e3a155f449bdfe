"""Blade on streams nobody wrote: nothing torn, words add up, replay equals live, bytes in proportion."""

from itertools import accumulate
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.blade.server.projector import NUMBERS_PER_RECORD, FrameCueWriter
from adapters.blade.server.stream_options import StreamOptions
from adapters.blade.server.turn_state import PAUSE, PAUSE_SHARE, SEND_SHARE, OpenTurns
from gateway.ports import Frame, Projector
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.blade.messages import listed_messages
from tests.support.dialects.blade.reader import Page
from tests.support.examples import examples
from tests.support.frames import bodies
from tests.support.record_streams import sessions

PLAIN = StreamOptions()


def number_of(frame: Frame) -> int:
    """The number of an event, which is the cursor of its frame and stands in it."""
    assert orjson.loads(frame.body)["stream_sequence"] == frame.cursor
    assert isinstance(frame.cursor, int)
    return frame.cursor


def size_of(frames: list[Frame]) -> int:
    return sum(len(frame.body) for frame in frames)


def fresh(options: StreamOptions = PLAIN) -> Projector:
    return dialect("blade").projector(table("blade"), options)


def live(records: list[m.Record], options: StreamOptions = PLAIN, *, timers: bool = True) -> list[Frame]:
    """What a client gets while it happens, with timers going off between the records as they do in a server."""
    outbound, frames = fresh(options), list[Frame]()
    for at, record in enumerate(records):
        frames += outbound.feed(record)
        soon = records[at + 1].at if at + 1 < len(records) else record.at + 3600
        while timers and (due := outbound.deadline) is not None and due <= soon:
            frames += outbound.flush(due)
    return frames


@given(sessions())
def test_a_strict_client_can_follow(records: list[m.Record]) -> None:
    page = Page().read(live(records))
    assert not page.chatting
    assert list(page.turns) == sorted(page.ends, key=lambda turn_id: page.ends[turn_id]["sequence"])


@given(sessions())
def test_without_snapshots_the_patches_say_as_much(records: list[m.Record]) -> None:
    with_, without = Page().read(live(records)), Page(snapshots=False).read(live(records, StreamOptions(is_bare=True)))
    assert without.turns == with_.turns


@given(sessions())
def test_words_add_up(records: list[m.Record]) -> None:
    page = Page().read(live(records))
    for kind in (m.BlockKind.TEXT, m.BlockKind.THINKING):
        whole: dict[str, str] = {}
        for record in records:
            event = record.event
            if isinstance(event, m.BlockEnded) and (event.kind is kind or (kind is m.BlockKind.TEXT and event.image)):
                said = f"![image]({event.image.url})" if event.image else event.text or ""
                whole[event.message_id] = whole.get(event.message_id, "") + said
        told = {key.partition("/")[0]: words for key, words in page.deltas.items() if key.endswith(f"/{kind}")}
        assert told == {f"turn_{key.partition('_')[2]}": words for key, words in whole.items() if words}


@given(sessions())
def test_replay_equals_live_with_its_timers(records: list[m.Record]) -> None:
    assert live(records, timers=False) == live(records)


@given(sessions())
def test_what_can_be_fetched_is_what_was_told(records: list[m.Record]) -> None:
    page = Page().read(live(records))
    listed = listed_messages(records)
    shown = [{key: value for key, value in turn.items() if key in page.turns[turn["turn_id"]]} for turn in listed]
    assert shown == list(page.turns.values())
    assert [turn["sequence"] for turn in listed] == list(range(len(listed)))


@given(sessions(), st.data())
def test_who_comes_back_misses_nothing(records: list[m.Record], data: st.DataObject) -> None:
    """A client that reconnects reads the log from where it was, and drops what it has had."""
    frames = live(records)
    had = data.draw(st.integers(0, len(frames)))
    last = number_of(frames[had - 1]) if had else 0
    again = [frame for frame in live(records, timers=False) if number_of(frame) > last]
    assert frames[:had] + again == frames


@given(sessions(), st.data())
def test_what_is_skipped_leaves_the_same_state(records: list[m.Record], data: st.DataObject) -> None:
    had = data.draw(st.integers(0, len(records)))
    whole, late = fresh(), fresh()
    for record in records[:had]:
        whole.feed(record)
        late.skip(record)  # type: ignore[attr-defined]
    assert [late.feed(record) for record in records[had:]] == [whole.feed(record) for record in records[had:]]


@given(sessions())
def test_raw_wraps_the_same_events(records: list[m.Record]) -> None:
    plain, raw = live(records), live(records, StreamOptions(is_raw=True))
    assert raw[::2] == plain
    for frame, wrapped in zip(raw[::2], raw[1::2], strict=True):
        [event] = orjson.loads(wrapped.body)["events"]
        assert wrapped.name == "turn:events"
        assert (event["type"], event["payload"]) == (frame.name, orjson.loads(frame.body))


def reply(deltas: list[str], gap: float | list[float]) -> list[m.Record]:
    """A turn of one message with these deltas, so many seconds apart."""
    events: list[Any] = [m.TurnStarted(command_id="c"), m.MessageStarted(message_id="msg_1"),
                         m.BlockStarted(block_id="b", message_id="msg_1", kind=m.BlockKind.TEXT)]
    events += [m.BlockDelta(block_id="b", message_id="msg_1", kind=m.BlockKind.TEXT, delta=delta) for delta in deltas]
    events += [
        m.BlockEnded(block_id="b", message_id="msg_1", kind=m.BlockKind.TEXT, text="".join(deltas)),
        m.MessageEnded(message_id="msg_1"),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    ]
    gaps = [0.0] * 3 + gap + [0.0] * 3 if isinstance(gap, list) else [gap] * len(events)
    return [m.Record(seq=n, at=1e9 + at, session_id="sess_1", turn_id="turn_1", event=event)
            for n, (event, at) in enumerate(zip(events, accumulate(gaps), strict=True), 1)]


def allowed(text: int, patches: int) -> int:
    """Bytes for a reply: the envelopes, and the text (twice a patch) as often as the rules of waiting can repeat it."""
    return 10_000 + 900 * patches + 2 * (SEND_SHARE + PAUSE_SHARE + 40) * text


@pytest.mark.parametrize(("count", "gap"), [
    *((count, gap) for count in (50, 500, 5_000) for gap in (0.0, 0.0005, 0.004, 0.02, 0.2, 2.0, 30.0)),
    (20_000, 0.0005),
    (20_000, 0.02),
])
def test_the_bytes_stay_in_proportion_whatever_the_pace(count: int, gap: float) -> None:
    page, records = Page(snapshots=False), reply(["word "] * count, gap)
    frames = live(records)
    assert size_of(frames) < allowed(5 * count, len(frames))
    assert len(frames) - 5 <= count
    assert page.read(live(records, StreamOptions(is_bare=True))).text == "word " * count


GAPS = st.one_of(st.just(0.0), st.floats(0.0, 0.1), st.floats(0.0, 100.0))


@examples(60)
@given(st.integers(1, 60_000), st.lists(st.tuples(st.integers(1, 40), GAPS), min_size=1, max_size=80))
def test_no_rhythm_of_speaking_costs_more(before: int, words: list[tuple[int, float]]) -> None:
    """A long text, and then words of any length at any time: the agent that would make the waiting rules pay most."""
    deltas = ["x" * before, *("y" * size for size, _ in words)]
    frames = live(reply(deltas, [0.0, *(gap for _, gap in words)]))
    text = len("".join(deltas))
    assert size_of(frames) < allowed(text, len(frames))


def test_who_falls_silent_is_heard_to_the_last_word() -> None:
    """However little is held back, and however long the text before it."""
    outbound, records = fresh(), reply(["x" * 100_000, "y", "z"], [0.0, 1.0, 9.0])
    said = [b"".join(bodies(outbound.feed(record))) for record in records[:5]]
    assert b"y" not in said[-1]
    due = outbound.deadline
    assert due is not None and b'"text_delta":"y"' in b"".join(bodies(outbound.flush(due)))
    outbound.feed(records[5])
    assert outbound.deadline is not None and outbound.deadline - records[5].at > due - records[4].at


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=300))
def test_a_burst_costs_a_constant_times_its_text(deltas: list[str]) -> None:
    frames = live(reply(deltas, 0.0))
    text = len("".join(deltas).encode())
    assert size_of(frames) < 20_000 + 1_500 * text


def test_a_short_reply_streams_word_by_word() -> None:
    frames = live(reply(["Paris ", "is ", "the ", "capital."], 0.0))
    assert sum(b"add_content" in frame.body for frame in frames) == 4


def test_words_of_a_longer_reply_wait_for_a_moment_only() -> None:
    outbound = fresh()
    records = reply(["word "] * 100, 0.0)
    for record in records[:80]:
        outbound.feed(record)
    while outbound.deadline is None:
        outbound.feed(records.pop(80))
    due = outbound.deadline
    assert PAUSE <= due - records[0].at <= PAUSE + 0.02
    assert len(outbound.flush(due)) == 1
    assert outbound.deadline is None


def test_a_cue_is_about_the_record_at_hand_unless_it_names_an_earlier_one() -> None:
    record = m.Record(seq=3, at=0.0, session_id="sess_1", event=m.TurnStarted(command_id="c"))
    for seq, number in ((0, 3 * NUMBERS_PER_RECORD), (2, 2 * NUMBERS_PER_RECORD)):
        writer = FrameCueWriter(table("blade"), PLAIN, OpenTurns())
        frames = writer.begin(record)
        writer.write("chat.started", seq=seq)
        assert [number_of(frame) for frame in frames] == [number]
