"""ZenFlux on streams nobody wrote: nothing torn or lost, whatever the manner, whenever the timer fires."""

from math import ceil
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.zenflux.asks import result_text
from adapters.zenflux.server.history import StoredMessages, message_bodies, messages_of
from adapters.zenflux.server.stream_options import StreamOptions
from gateway.ports import Frame
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.zenflux.reader import Run, events, payloads, read_stream
from tests.support.record_streams import sessions

SOCKET = StreamOptions()
SINGLE = StreamOptions(multi_message=False)
WHOLE = StreamOptions(whole=True)
SSE = StreamOptions(framing="sse", multi_message=False, throttle=0.0)
DONE = b'event: done\ndata: {"type":"done","data":{"type":"done"}}\n\n'
MANNERS = [SOCKET, SINGLE, WHOLE, SSE]


def frames(manner: StreamOptions, records: list[m.Record]) -> list[bytes]:
    outbound = dialect("zenflux").projector(table("zenflux"), manner)
    return [frame.body for record in records for frame in outbound.feed(record)]


def told(manner: StreamOptions, records: list[m.Record]) -> list[Run]:
    said = frames(manner, records)
    if manner.framing == "json":
        return read_stream(payloads(said))
    return [run for stream in b"".join(said).split(DONE)[:-1] for run in read_stream(events(stream + DONE))]


def tell(run: Run) -> dict[str, Any]:
    """All that a run said, apart from how it was cut into messages."""
    return {"blocks": sorted(orjson.dumps(block) for block in run.blocks), "status": run.status}


@pytest.mark.parametrize("manner", MANNERS, ids=["socket", "single", "whole", "sse"])
@given(records=sessions())
def test_every_manner_tells_all_of_it_in_order(manner: StreamOptions, records: list[m.Record]) -> None:
    runs = told(manner, records)
    assert len(runs) == sum(isinstance(record.event, m.TurnStarted) for record in records)
    assert [tell(run) for run in runs] == [tell(run) for run in told(SOCKET, records)]


@given(sessions())
def test_words_add_up(records: list[m.Record]) -> None:
    for kind in (m.BlockKind.TEXT, m.BlockKind.THINKING):
        whole = [r.event.text or "" for r in records
                 if isinstance(r.event, m.BlockEnded) and r.scope_id == m.ROOT and r.event.kind is kind]
        assert [text for run in told(SOCKET, records) for text in run.words(kind)] == whole


@given(sessions())
def test_calls_and_results_are_told_whole(records: list[m.Record]) -> None:
    runs = told(SOCKET, records)
    calls = [
        r.event.call for r in records if isinstance(r.event, m.BlockEnded) and r.event.call and r.scope_id == m.ROOT
    ]
    heard = [block for run in runs for block in run.blocks if block["type"].endswith("tool_use")]
    assert [(block["id"], orjson.loads(block["partial"])) for block in heard] == [(c.call_id, c.input) for c in calls]
    results = [r.event for r in records if isinstance(r.event, m.ToolReturned) and r.scope_id == m.ROOT]
    got = [block for run in runs for block in run.blocks if block["type"] == "tool_result"]
    assert [(b["tool_use_id"], b["content"], b["is_error"]) for b in got] == [
        (e.call_id, result_text(e.content), e.is_error) for e in results]


@given(sessions())
def test_a_message_is_a_round_or_the_whole_run(records: list[m.Record]) -> None:
    rounds = [r.event.message_id for r in records if isinstance(r.event, m.MessageStarted) and r.scope_id == m.ROOT]
    heard = [message.id for run in told(SOCKET, records) for message in run.messages]
    assert [one for one in heard if one in rounds] == rounds
    assert all(len(run.messages) <= 1 for run in told(SINGLE, records))


@given(sessions())
def test_whatever_is_asked_can_be_seen(records: list[m.Record]) -> None:
    asked = [r.event for r in records if isinstance(r.event, m.InputRequested)]
    runs = told(SOCKET, records)
    forms = [note["delta"]["content"]["request_id"] for run in runs for message in run.messages
             for note in message.notes if note["type"] == "confirmation_request"]
    long = sum(len(run.other("long_running_confirm")) for run in runs)
    assert forms == [event.request_id for event in asked if event.ask.kind != "continuation"]
    assert long == sum(event.ask.kind == "continuation" for event in asked)


@given(sessions())
def test_what_is_stored_is_what_was_streamed(records: list[m.Record]) -> None:
    view = m.fold("sess_walk", records)
    for manner in (SOCKET, SINGLE):
        stored = message_bodies(table("zenflux"), view, messages_of(view, multi_message=manner.multi_message))
        for run in told(manner, records):
            mine = [message for message in stored if message["metadata"].get("session_id") == run.session_id]
            blocks = [block for message in mine for block in message["content"]]
            assert sorted(_plain(block) for block in blocks) == sorted(
                _plain(block) for block in run.blocks if _leaves_a_trace(block))


@pytest.mark.parametrize("multi_message", [True, False])
@given(sessions(steps=40), st.integers(1, 7))
def test_messages_that_are_kept_ready_are_those_that_are_grouped_anew(
    multi_message: bool, records: list[m.Record], pace: int,
) -> None:
    """At any moment of a session, in the middle of turns, too."""
    kept, view = StoredMessages(), m.SessionView(session_id="sess_walk")
    for number, record in enumerate(records):
        m.apply(view, record)
        if number % pace == 0:
            anew = messages_of(view, multi_message=multi_message)
            assert kept.of(view, multi_message=multi_message) == anew


def _leaves_a_trace(block: dict[str, Any]) -> bool:
    return bool(block.get("text", "x")) and bool(block.get("thinking", "x"))


def _plain(block: dict[str, Any]) -> bytes:
    block = {key: value for key, value in block.items() if key != "signature"}
    partial = block.pop("partial", "")
    return orjson.dumps({**block, **({"input": orjson.loads(partial)} if partial else {})}, option=orjson.OPT_SORT_KEYS)


@given(sessions(), st.data())
def test_timers_change_nothing(records: list[m.Record], data: st.DataObject) -> None:
    """Whether and when the timer fires between two records, the same frames are said in the same order."""
    live, replay = (dialect("zenflux").projector(table("zenflux"), StreamOptions()) for _ in range(2))
    said: list[Frame] = []
    for record in records:
        if live.deadline is not None and live.deadline <= record.at and data.draw(st.booleans()):
            said += live.flush(data.draw(st.floats(live.deadline, record.at)))
        said += live.feed(record)
    assert said == [frame for record in records for frame in replay.feed(record)]


@given(sessions(), st.sampled_from(MANNERS), st.data())
def test_a_projector_fed_from_the_turn_is_right_at_every_cursor(
    records: list[m.Record], manner: StreamOptions, data: st.DataObject,
) -> None:
    start = data.draw(st.sampled_from([at for at, r in enumerate(records) if isinstance(r.event, m.TurnStarted)]))
    before = m.fold("sess_walk", records[:start])
    whole = dialect("zenflux").projector(table("zenflux"), manner)
    for record in records[:start]:
        whole.feed(record)
    facts = StreamOptions(
        framing=manner.framing, multi_message=manner.multi_message, whole=manner.whole, throttle=manner.throttle,
        title=before.title, created_at=before.created_at, metadata=before.shown_metadata,
    )
    late = dialect("zenflux").projector(table("zenflux"), facts)
    assert [late.feed(record) for record in records[start:]] == [whole.feed(record) for record in records[start:]]


@given(sessions(turns=1))
def test_frames_are_few(records: list[m.Record]) -> None:
    """At most one frame at once and one for each 150 ms of each block."""
    spans: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record.event, m.BlockDelta) and record.scope_id == m.ROOT and record.event.delta:
            spans.setdefault(record.event.block_id, []).append(record.at)
        if isinstance(record.event, m.TurnEnded):
            end = record.at
    bound = sum(2 + ceil((end - times[0]) / 0.15) for times in spans.values())
    words = sum(len(times) for times in spans.values())
    calls = sum(isinstance(r.event, m.BlockEnded) and r.event.call is not None for r in records)
    assert sum(run.deltas for run in told(SOCKET, records)) <= min(bound, words) + calls
