"""CAS on streams nobody wrote: text adds up, the list is the stream, and every cursor is a place in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.cas.server import history
from adapters.cas.server.stream_options import StreamOptions, thread_id_of
from gateway.engine.streams import hub
from tests.support.dialects.cas.reader import Frame, StoredSession, kept
from tests.support.examples import examples
from tests.support.record_streams import sessions, spread

BOTH = ("agent.message", "agent.thinking")
MODES = {
    "plain": StreamOptions(),
    "deltas": StreamOptions(deltas=BOTH),
    "some deltas": StreamOptions(deltas=("agent.thinking",)),
    "incremental": StreamOptions(incremental=True, raw=True),
    "deltas of an incremental session": StreamOptions(incremental=True, deltas=BOTH),
}
modes = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def scopes(records: list[m.Record]) -> list[str | None]:
    return [None, *dict.fromkeys(record.scope_id for record in records)]


def in_thread(reading: StreamOptions, scope_id: str | None) -> StreamOptions:
    return StreamOptions(**{**{name: getattr(reading, name) for name in reading.__struct_fields__}, "thread": scope_id})


def said(records: list[m.Record], kind: m.BlockKind, scope_id: str) -> list[str]:
    events = [r.event for r in records if isinstance(r.event, m.BlockEnded) and r.scope_id == scope_id]
    told = [m.image_markdown(e.image) if e.image and kind is m.BlockKind.TEXT else e.text for e in events
            if e.kind is kind or (e.image and kind is m.BlockKind.TEXT)]
    return [text for text in told if text]


@modes
@examples(30)
@given(records=sessions())
async def test_the_list_is_the_stream(mode: StreamOptions, records: list[m.Record]) -> None:
    shelf = StoredSession(records)
    for scope_id in scopes(records):
        reading = in_thread(mode, scope_id)
        told = kept(await shelf.stream(reading))
        assert await shelf.listed(reading) == told
        assert await shelf.listed(reading, oldest_first=False) == told[::-1]
        assert len({event["id"] for event in told}) == len(told)


@examples(50)
@given(records=sessions(), at_once=st.integers(1, 30), per_page=st.integers(1, 30), limit=st.integers(1, 9))
async def test_pages_of_any_size_are_the_list(
    records: list[m.Record], at_once: int, per_page: int, limit: int,
) -> None:
    """However many records the server reads at once, in both directions."""
    shelf, options = StoredSession(records), StreamOptions()
    whole = await shelf.listed(options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "RECORDS_AT_ONCE", at_once)
        patch.setattr(hub, "PAGE_WITHOUT_DELTAS", per_page)
        assert await shelf.listed(options) == whole
        assert await shelf.listed(options, oldest_first=False) == whole[::-1]
        for cursor in whole:
            place = (await shelf.history(options).find(cursor["id"])).place
            number = whole.index(cursor)
            assert await shelf.listed(options, after=place, limit=limit) == whole[number + 1:number + 1 + limit]
            earlier = await shelf.listed(options, before=place, limit=limit, oldest_first=False)
            assert earlier == whole[max(0, number - limit):number][::-1]


@modes
@examples(30)
@given(records=sessions())
async def test_text_adds_up_in_every_thread(mode: StreamOptions, records: list[m.Record]) -> None:
    shelf = StoredSession(records)
    for scope_id in {record.scope_id for record in records}:
        told = kept(await shelf.stream(in_thread(mode, scope_id)))
        messages = [event["content"][0]["text"] for event in told if event["type"] == "agent.message"]
        assert messages == said(records, m.BlockKind.TEXT, scope_id)
        thoughts = [event["thinking"] for event in told if event["type"] == "agent.thinking"]
        assert thoughts == said(records, m.BlockKind.THINKING, scope_id)
    whole = [event for event in kept(await shelf.stream(mode)) if event["type"] == "agent.message"]
    assert [event["content"][0]["text"] for event in whole] == said(records, m.BlockKind.TEXT, m.ROOT)


@given(records=sessions(), wanted=st.sampled_from([BOTH, BOTH[:1], BOTH[1:]]), incremental=st.booleans())
async def test_deltas_add_up_to_the_event_they_announce(
    records: list[m.Record], wanted: tuple[Any, ...], incremental: bool,
) -> None:
    shelf, open_events = StoredSession(records), dict[str, tuple[str, str]]()
    for scope_id in scopes(records):
        for frame in await shelf.stream(StreamOptions(deltas=wanted, thread=scope_id, incremental=incremental)):
            if frame.type == "event_start":
                assert frame.body["event"]["id"] not in open_events
                open_events[frame.body["event"]["id"]] = (frame.body["event"]["type"], "")
            elif frame.type == "event_delta":
                kind, text = open_events[frame.body["event_id"]]
                open_events[frame.body["event_id"]] = (kind, text + frame.body["delta"]["content"]["text"])
            elif frame.id in open_events:
                whole = frame.text if frame.type == "agent.message" else frame.body["thinking"]
                assert open_events.pop(frame.id) == (frame.type, whole)
            else:
                assert frame.type not in wanted or "![image](" in frame.text, "an event that was not announced"
        assert open_events == {}


@given(records=sessions())
async def test_the_raw_stream_is_well_formed_and_adds_up(records: list[m.Record]) -> None:
    shelf = StoredSession(records)
    for scope_id in scopes(records):
        blocks, whole = dict[int, str](), list[str]()
        for frame in await shelf.stream(StreamOptions(incremental=True, raw=True, thread=scope_id)):
            if frame.type == "agent.content_block_start":
                assert frame.body["index"] not in blocks
                blocks[frame.body["index"]] = ""
            elif frame.type == "agent.content_block_delta":
                blocks[frame.body["index"]] += frame.body["delta"].get("text", "")
            elif frame.type == "agent.content_block_stop":
                whole.append(blocks.pop(frame.body["index"]))
            elif frame.type == "agent.message_stop":
                assert blocks == {}
            elif frame.type == "agent.message":
                whole = [text for text in whole if text]
                assert whole.pop(0) == frame.text
        assert [text for text in whole if text] == []


@modes
@examples(25)
@given(records=sessions(steps=15))
async def test_a_stream_resumed_after_anything_is_the_rest_of_it(mode: StreamOptions, records: list[m.Record]) -> None:
    """After any event, and after any preview of one."""
    shelf = StoredSession(records)
    for scope_id in scopes(records):
        reading, without = in_thread(mode, scope_id), StreamOptions(incremental=mode.incremental, thread=scope_id)
        whole = await shelf.stream(reading)
        assert len({frame.id for frame in whole}) == len(whole)
        for place in spread(len(whole), 12 if scope_id is None else 4):
            frame = whole[place]
            after, resumed = await shelf.history(reading).resumed(frame.id)
            assert await shelf.stream(resumed, after) == whole[place + 1:]
            after, plain = await shelf.history(without).resumed(frame.id)
            assert kept(await shelf.stream(plain, after)) == kept(whole[place + 1:])
            paged = await shelf.listed(reading, after=(await shelf.history(reading).find(frame.id)).place)
            assert paged == kept(whole[place + 1:])


@modes
@examples(50)
@given(records=sessions(steps=15), data=st.data())
async def test_a_stream_cut_anywhere_goes_on_without_gap_or_repetition(
    mode: StreamOptions, records: list[m.Record], data: st.DataObject,
) -> None:
    head = data.draw(st.integers(1, len(records)))
    before, all_of_it = StoredSession(records[:head]), StoredSession(records)
    heard = await before.stream(mode)
    if heard:
        place = data.draw(st.integers(0, len(heard) - 1))
        after, resumed = await before.history(mode).resumed(heard[place].id)
        assert await all_of_it.stream(resumed, after) == (await all_of_it.stream(mode))[place + 1:]


@examples(50)
@given(records=sessions(steps=15), data=st.data())
async def test_who_names_an_event_in_progress_gets_no_old_deltas_of_it(
    records: list[m.Record], data: st.DataObject,
) -> None:
    mode, head = MODES["deltas"], data.draw(st.integers(1, len(records)))
    before, all_of_it = StoredSession(records[:head]), StoredSession(records)
    heard = await before.stream(mode)
    begun = [frame.body["event"]["id"] for frame in heard if frame.type == "event_start"]
    open_ones = [event_id for event_id in begun if event_id not in {frame.id for frame in heard}]
    for event_id in open_ones:
        after, resumed = await before.history(mode).resumed(event_id)
        rest, whole = await all_of_it.stream(resumed, after), await all_of_it.stream(mode)
        assert deltas_of(rest, event_id) == deltas_of(whole, event_id)[len(deltas_of(heard, event_id)):]
        missing = [event for event in kept(whole) if event not in kept(heard)]
        assert [event for event in kept(rest) if event not in kept(heard)] == missing


def deltas_of(frames: list[Frame], event_id: str) -> list[str]:
    return [frame.body["delta"]["content"]["text"] for frame in frames
            if frame.type == "event_delta" and frame.body["event_id"] == event_id]


@given(records=sessions())
async def test_what_requires_action_is_there_to_be_answered(records: list[m.Record]) -> None:
    told = kept(await StoredSession(records).stream(StreamOptions()))
    calls = {event["id"] for event in told if event["type"].endswith("tool_use")}
    for event in told:
        if event["type"] == "session.status_idle" and event["stop_reason"]["type"] == "requires_action":
            assert event["stop_reason"]["event_ids"]
            assert set(event["stop_reason"]["event_ids"]) <= calls
        for word in ("tool_use_id", "custom_tool_use_id", "mcp_tool_use_id"):
            assert event.get(word) is None or event[word] in calls


@given(records=sessions())
async def test_every_event_of_a_turn_has_its_turn(records: list[m.Record]) -> None:
    turns = {record.event_id: record.turn_id for record in records}
    for event in kept(await StoredSession(records).stream(StreamOptions())):
        assert event.get("turn_id") == turns[event["id"]]
        assert event["session_id"] == records[0].session_id
        assert event["schema_version"] == "1.0"
        if event["type"].startswith("session.thread_"):
            assert event["session_thread_id"].startswith("sthr_")


@given(records=sessions())
async def test_the_threads_add_up_to_the_session(records: list[m.Record]) -> None:
    """Whatever the session tells is told in a thread, and it tells all of the coordinator's."""
    shelf = StoredSession(records)
    whole = [event["id"] for event in kept(await shelf.stream(StreamOptions()))]
    threads = {scope: [event["id"] for event in kept(await shelf.stream(StreamOptions(thread=scope)))]
               for scope in {record.scope_id for record in records}}
    assert set(whole) <= {event_id for ids in threads.values() for event_id in ids}
    assert [event_id for event_id in whole if event_id in set(threads[m.ROOT])] == threads[m.ROOT]
    assert len({thread_id_of("sess_walk", scope) for scope in threads}) == len(threads)
