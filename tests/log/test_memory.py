"""The memory log keeps order, pages without repeating or skipping, and forgets what it is told to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.log import MemoryLog
from gateway.model import NoticePosted, Record, SessionCreated


def created(session_id: str, owner: str = "ann") -> Record:
    return Record(seq=1, at=1.0, session_id=session_id, event=SessionCreated(agent="a", owner=owner))


def note(session_id: str, seq: int) -> Record:
    return Record(seq=seq, at=1.0, session_id=session_id, event=NoticePosted(topic="t", title=str(seq)))


async def test_records_come_back_in_order_after_any_place() -> None:
    log, told = MemoryLog(), []
    log.on_commit = told.extend
    records = [created("s"), *(note("s", seq) for seq in range(2, 8))]
    for record in records:
        log.append(record)
    assert told == records
    for after in range(9):
        assert list(await log.read("s", after)) == records[after:]
        assert list(await log.read("s", after, 2)) == records[after:after + 2]
    assert list(await log.read("nobody's")) == []


@given(st.lists(st.sampled_from(["make", "drop", "page"]), max_size=40), st.integers(1, 5))
async def test_pages_neither_repeat_nor_skip_while_sessions_come_and_go(moves: list[str], limit: int) -> None:
    log, alive, seen, before, made = MemoryLog(), [], [], None, 0
    for _ in range(6):
        made += 1
        log.append(created(f"s{made}"))
        alive.append(f"s{made}")
    there_all_along = set(alive)
    for move in [*moves, *["page"] * 40]:
        if move == "make":
            made += 1
            log.append(created(f"s{made}"))
            alive.append(f"s{made}")
        elif move == "drop" and alive:
            gone = alive.pop(len(alive) // 2)
            there_all_along.discard(gone)
            await log.forget(gone)
        elif move == "page":
            page = await log.sessions("ann", before, limit)
            seen += [head.session_id for head in page]
            before = page[-1].ordinal if page else before
    assert len(seen) == len(set(seen))
    assert there_all_along <= set(seen)


async def test_an_owner_sees_their_own() -> None:
    log = MemoryLog()
    for number, owner in enumerate(["ann", "bob", "ann"]):
        log.append(created(f"s{number}", owner))
    assert [head.session_id for head in await log.sessions("ann")] == ["s2", "s0"]
    assert [head.session_id for head in await log.sessions("bob")] == ["s1"]
    assert len(await log.sessions(None)) == 3
    assert list(await log.sessions("eve")) == []


async def test_sessions_are_listed_in_both_directions_between_places() -> None:
    log = MemoryLog()
    for number in range(5):
        log.append(created(f"s{number}"))
    places = [head.ordinal for head in [await log.head(f"s{number}") for number in range(5)] if head]
    oldest = await log.sessions("ann", oldest_first=True, after=places[0], limit=2)
    assert [head.session_id for head in oldest] == ["s1", "s2"]
    newest = await log.sessions("ann", before=places[4], after=places[1])
    assert [head.session_id for head in newest] == ["s3", "s2"]
    assert await log.head("nobody's") is None


async def test_what_is_forgotten_is_gone() -> None:
    log = MemoryLog()
    log.append(created("s"))
    await log.forget("s")
    await log.forget("s")
    assert list(await log.read("s")) == []
    assert list(await log.sessions("ann")) == []


@pytest.mark.parametrize("seq", [1, 99])
async def test_what_was_taken_is_safe(seq: int) -> None:
    assert await MemoryLog().settled("s", seq) is None
