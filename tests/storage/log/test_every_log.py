"""What every log promises: order, pages that neither repeat nor skip, places, and forgetting."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.ports import EventLog
from tests.support.examples import examples
from tests.support.record_streams import sessions
from tests.support.storage.commit_recorder import CommitRecorder
from tests.support.storage.event_logs import COMPARED_LOGS, LOGS, created, note, put


@pytest.fixture(params=LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with LOGS[request.param](tmp_path) as opened:
        yield opened


async def test_records_come_back_in_order_after_any_place(log: EventLog) -> None:
    recorder = CommitRecorder()
    log.attach(recorder)
    records = [created("s"), *(note("s", seq) for seq in range(2, 8))]
    await put(log, *records[:4])
    await put(log, *records[4:])
    assert recorder.records == records
    for after in range(9):
        assert list(await log.read("s", after)) == records[after:]
        assert list(await log.read("s", after, 2)) == records[after:after + 2]
    assert list(await log.read("nobody's")) == []


@pytest.mark.parametrize("name", COMPARED_LOGS)
@examples(30)
@given(session=sessions(), data=st.data())
async def test_whatever_was_said_comes_back_as_it_was(name: str, session: list[m.Record], data: st.DataObject) -> None:
    """In any grouping of commits, from any place, in pages of any size; and what tells the state comes apart."""
    with TemporaryDirectory() as folder:
        async with LOGS[name](Path(folder)) as log:
            recorder = CommitRecorder()
            log.attach(recorder)
            for record in session:
                log.append(record)
                if data.draw(st.booleans()):
                    await log.wait_stored(record.session_id, record.seq)
            last = session[-1]
            await log.wait_stored(last.session_id, last.seq)
            assert recorder.records == session
            after, limit = data.draw(st.integers(0, len(session))), data.draw(st.integers(1, 20))
            page = list(await log.read(last.session_id, after, limit))
            assert page == session[after:after + limit]
            assert [record.seq for record in await log.read_without_deltas(last.session_id)] == [
                record.seq for record in session if not isinstance(record.event, m.BlockDelta)]
            upto = data.draw(st.integers(0, len(session) + 1))
            assert list(await log.read_without_deltas(last.session_id, after, upto)) == [
                record for record in session[after:upto] if not isinstance(record.event, m.BlockDelta)]


@pytest.mark.parametrize("name", COMPARED_LOGS)
@examples(20)
@given(st.lists(st.sampled_from(["make", "drop", "page"]), max_size=40), st.integers(1, 5))
async def test_pages_neither_repeat_nor_skip_while_sessions_come_and_go(
    name: str, moves: list[str], limit: int,
) -> None:
    with TemporaryDirectory() as folder:
        async with LOGS[name](Path(folder)) as log:
            await _come_and_go(log, moves, limit)


async def _come_and_go(log: EventLog, moves: list[str], limit: int) -> None:
    alive, seen, before, made = [f"s{number}" for number in range(6)], list[str](), None, 6
    await put(log, *map(created, alive))
    there_all_along = set(alive)
    for move in [*moves, *["page"] * 40]:
        if move == "make":
            alive.append(f"s{made}")
            await put(log, created(alive[-1]))
            made += 1
        elif move == "drop" and alive:
            gone = alive.pop(len(alive) // 2)
            there_all_along.discard(gone)
            await log.delete_session(gone)
        elif move == "page":
            page = await log.sessions("ann", before, limit)
            seen += [head.session_id for head in page]
            before = page[-1].ordinal if page else before
    assert len(seen) == len(set(seen))
    assert there_all_along <= set(seen)
    assert log.session_count == len(alive)


async def test_an_owner_sees_their_own(log: EventLog) -> None:
    await put(log, *(created(f"s{number}", owner) for number, owner in enumerate(["ann", "bob", "ann"])))
    assert [head.session_id for head in await log.sessions("ann")] == ["s2", "s0"]
    assert [head.session_id for head in await log.sessions("bob")] == ["s1"]
    assert len(await log.sessions(None)) == 3
    assert list(await log.sessions("eve")) == []


async def test_sessions_are_listed_in_both_directions_between_places(log: EventLog) -> None:
    for number in range(5):
        await put(log, created(f"s{number}"))
    places = [head.ordinal for head in [await log.head(f"s{number}") for number in range(5)] if head]
    oldest = await log.sessions("ann", oldest_first=True, after=places[0], limit=2)
    assert [head.session_id for head in oldest] == ["s1", "s2"]
    newest = await log.sessions("ann", before=places[4], after=places[1])
    assert [head.session_id for head in newest] == ["s3", "s2"]
    assert await log.head("nobody's") is None


async def test_turns_and_asks_are_found_while_they_last(log: EventLog) -> None:
    def at(seq: int, event: object) -> m.Record:
        return m.Record(seq=seq, at=1.0, session_id="s", turn_id="turn_1", event=event)  # type: ignore[arg-type]

    await put(log, created("s"), created("other", "bob"), at(2, m.TurnStarted(command_id="c")))
    assert [head.session_id for head in await log.sessions_in_turn()] == ["s"]
    assert [head.session_id for head in await log.sessions_in_turn("ann")] == ["s"]
    assert list(await log.sessions_in_turn("bob")) == []
    await put(log, at(3, m.InputRequested(request_id="ask_1", ask=m.QuestionAsk(questions=()))))
    assert [await log.session_of(word) for word in ("turn_1", "ask_1", "ask_2")] == ["s", "s", None]
    await put(log, at(4, m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)))
    assert list(await log.sessions_in_turn()) == []
    assert await log.session_of("turn_1") == "s"
    head = await log.head("s")
    assert head is not None and (head.head, head.owner, head.in_turn) == (4, "ann", False)


async def test_what_is_forgotten_is_gone(log: EventLog) -> None:
    turn = m.Record(seq=2, at=1.0, session_id="s", turn_id="turn_1", event=m.TurnStarted(command_id="c"))
    await put(log, created("s"), turn)
    await log.delete_session("s")
    await log.delete_session("s")
    assert list(await log.read("s")) == []
    assert list(await log.sessions("ann")) == []
    assert list(await log.sessions_in_turn()) == []
    assert await log.session_of("turn_1") is None
    assert log.session_count == 0


async def test_sessions_are_counted_while_they_come_and_go_together(log: EventLog) -> None:
    await put(log, *(created(f"old{number}") for number in range(20)))

    async def come(number: int) -> None:
        await put(log, created(f"new{number}"))

    await asyncio.gather(*(log.delete_session(f"old{number}") for number in range(20)), *map(come, range(5)))
    assert log.session_count == 5 == len(await log.sessions("ann"))


async def test_what_is_forgotten_at_once_never_comes_back(log: EventLog) -> None:
    log.append(created("s"))
    await log.delete_session("s")
    assert list(await log.read("s")) == []
    assert await log.head("s") is None


async def test_words_of_many_sessions_keep_apart(log: EventLog) -> None:
    def word(session: str, seq: int) -> m.Record:
        delta = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta=f"{session}{seq}")
        return m.Record(seq=seq, at=1.0, session_id=session, turn_id="t", event=delta)

    names = [f"s{number}" for number in range(20)]
    await put(log, *map(created, names))
    for seq in range(2, 30):
        for name in names:
            log.append(word(name, seq))
    for name in names:
        await log.wait_stored(name, 29)
        assert list(await log.read(name, 1)) == [word(name, seq) for seq in range(2, 30)]
