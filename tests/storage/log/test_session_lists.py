"""What every log promises of lists: the right sessions in the right order, by labels, whatever happened before."""

from collections.abc import AsyncIterator, Iterable
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.ports import EventLog, ListOrder
from tests.support.examples import examples
from tests.support.storage.event_logs import COMPARED_LOGS, LOGS, put

LABELS = ("", "open", "failed", "agent=a", "nova.user_id", "nova.user_id=ann", "nova.user_id=bob", "nobody's")
ORDERS: tuple[ListOrder, ...] = ("created", "updated")


def _user(name: str | None) -> dict[str, object]:
    return {} if name is None else {m.PRIVATE: {"nova": {"user_id": name}}}


EVENTS: st.SearchStrategy[m.AnyEvent] = st.one_of(
    st.builds(lambda title: m.SessionUpdated(title=title), st.sampled_from(("x", "y"))),
    st.builds(lambda name: m.SessionUpdated(metadata=_user(name)), st.sampled_from(("ann", "bob", None))),
    st.builds(lambda reason: m.SessionClosed(reason=reason), st.sampled_from(m.CloseReason)),
    st.builds(lambda outcome: m.TurnEnded(outcome=outcome, stop_reason=m.StopReason.ERROR), st.sampled_from(m.Outcome)),
    st.builds(lambda: m.NoticePosted(topic="t", title="beside the lists")),
)
Step = tuple[int, m.AnyEvent | None]
"""Which session, and what happens to it; None: it is deleted, or created again."""


class NaiveLists:
    """All sessions, looked through for every question."""

    def __init__(self) -> None:
        self.records: dict[str, list[m.Record]] = {}
        self._created: list[str] = []

    def add(self, record: m.Record) -> None:
        if record.session_id not in self.records:
            self._created.append(record.session_id)
        self.records.setdefault(record.session_id, []).append(record)

    def listed(self, owner: str, label: str, order: ListOrder) -> list[str]:
        rows = []
        for ordinal, session_id in enumerate(self._created):
            summary = m.summarize(None, self.records.get(session_id, ()))
            if summary is not None and label in summary.labels and _owner(session_id) == owner:
                rows.append(((0.0 if order == "created" else summary.updated_at), ordinal, session_id))
        return [session_id for *_, session_id in sorted(rows, reverse=True)]


    def created_between(self, owner: str, first: float, last: float) -> list[str]:
        rows = [(records[0].at, session_id) for session_id, records in self.records.items()
                if first <= records[0].at <= last and _owner(session_id) == owner]
        return [session_id for _, session_id in sorted(rows)]


def _owner(session_id: str) -> str:
    return "ann" if int(session_id.rpartition("-")[2]) % 3 else "bob:ann"


class Player:
    """Does the same to a log and to the naive lists; no two changes have the same time."""

    def __init__(self, log: EventLog) -> None:
        self.log, self.naive, self._at, self._lives = log, NaiveLists(), 0.0, dict[int, int]()

    async def play(self, steps: Iterable[Step]) -> None:
        for number, event in steps:
            session_id = f"s-{self._lives.setdefault(number, 0)}-{number}"
            has_it = session_id in self.naive.records
            if event is None and has_it:
                await self.log.delete_session(session_id)
                del self.naive.records[session_id]
                self._lives[number] += 1
            elif has_it and event is not None:
                await self._append(session_id, event)
            elif not has_it:
                await self._append(
                    session_id, m.SessionCreated(agent="a", owner=_owner(session_id), metadata=_user("ann")))

    async def _append(self, session_id: str, event: m.AnyEvent) -> None:
        self._at += 1.0
        seq = len(self.naive.records.get(session_id, ())) + 1
        record = m.Record(seq=seq, at=self._at, session_id=session_id, event=event)
        await put(self.log, record)
        self.naive.add(record)


async def expect_equal(log: EventLog, naive: NaiveLists) -> None:
    for owner in ("ann", "bob:ann", "bob"):
        for label in LABELS:
            assert await log.count_listed(owner, label) == len(naive.listed(owner, label, "created"))
            for order in ORDERS:
                rows = await log.listed(owner, label, order, limit=1000)
                assert [row.session_id for row in rows] == naive.listed(owner, label, order), (owner, label, order)
                for row in rows:
                    assert row.summary == m.summarize(None, naive.records[row.session_id])
                if len(rows) > 1:
                    assert list(await log.listed(owner, label, order, offset=1, limit=1)) == list(rows[1:2])
        for first, last in ((-inf, inf), (2.0, inf), (2.0, 5.0), (-inf, 3.0), (5.0, 2.0)):
            found = await log.created_between(owner, first, last, 1000)
            assert found is not None
            assert [row.session_id for row in found] == naive.created_between(owner, first, last), (owner, first, last)
            assert await log.created_between(owner, first, last, 1) == found[:1]


@pytest.mark.parametrize("name", COMPARED_LOGS)
@examples(15)
@given(steps=st.lists(st.tuples(st.integers(0, 4), st.one_of(EVENTS, st.none())), max_size=30))
async def test_lists_have_what_a_look_at_all_sessions_finds(name: str, steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        async with LOGS[name](Path(folder)) as log:
            player = Player(log)
            await player.play(steps)
            await expect_equal(log, player.naive)


@pytest.fixture(params=LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with LOGS[request.param](tmp_path) as opened:
        yield opened


async def test_a_session_with_an_older_time_has_its_place_by_time(log: EventLog) -> None:
    for session_id, at in (("s1", 5.0), ("s2", 9.0), ("s3", 7.0)):
        await put(log, m.Record(seq=1, at=at, session_id=session_id, event=m.SessionCreated(agent="a")))
    assert [row.session_id for row in await log.listed("", "", "updated")] == ["s2", "s3", "s1"]
    assert [row.session_id for row in await log.listed("", "", "created")] == ["s3", "s2", "s1"]
    assert [row.session_id for row in await log.created_between("", 6.0, 9.0, 5) or ()] == ["s3", "s2"]


async def test_a_page_beyond_the_end_is_empty(log: EventLog) -> None:
    await put(log, m.Record(seq=1, at=1.0, session_id="s", event=m.SessionCreated(agent="a")))
    assert list(await log.listed("", "", "created", offset=5)) == []
    assert list(await log.listed("", "", "created", limit=0)) == []
    assert await log.count_listed("", "") == 1
