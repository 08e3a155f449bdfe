"""Lists of sessions: whatever the filter, the rows are those of a look at all sessions, and so is their number."""

from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.engine.session_lists import SessionLists
from gateway.ports import SessionFilter
from gateway.storage.log import MemoryLog
from tests.support.examples import examples

LABELS = ("open", "agent=a", "agent=b", "nova.user_id", "nova.user_id=ann", "nova.user_id=bob", "nobody's")
SESSIONS = st.lists(st.tuples(
    st.sampled_from(("a", "b")), st.sampled_from(("ann", "bob", None)),
    st.sampled_from(("Tea", "Green tea", "茶", None)), st.booleans(),
), max_size=12)
FILTERS = st.builds(
    SessionFilter, labels=st.lists(st.sampled_from(LABELS), max_size=2, unique=True).map(tuple),
    without=st.sampled_from((None, "nova.user_id", "nobody's")), unless=st.sampled_from((None, "nova.user_id=ann")),
    prefix=st.sampled_from(("", "nova.user_id=a", "agent=")), title=st.sampled_from(("", "TEA", "茶", "x")),
)


def log_of(sessions: list[tuple[str, str | None, str | None, bool]]) -> MemoryLog:
    log = MemoryLog()
    for number, (agent, user, title, is_closed) in enumerate(sessions):
        metadata = {m.PRIVATE: {"nova": {"user_id": user}}} if user else {}
        made = m.SessionCreated(agent=agent, owner="me", title=title, metadata=metadata)
        log.append(m.Record(seq=1, at=float(number), session_id=f"s{number}", event=made))
        if is_closed:
            closed = m.SessionClosed(reason=m.CloseReason.ARCHIVED)
            log.append(m.Record(seq=2, at=100.0 - number, session_id=f"s{number}", event=closed))
    return log


def fits(summary: m.SessionSummary, wanted: SessionFilter) -> bool:
    labels = summary.labels
    is_refused = wanted.without in labels and wanted.unless not in labels
    has_prefix = not wanted.prefix or any(label.startswith(wanted.prefix) for label in labels)
    has_title = wanted.title.casefold() in (summary.title or "").casefold()
    return set(wanted.labels) <= set(labels) and not is_refused and has_prefix and has_title


@examples(150)
@given(sessions=SESSIONS, wanted=FILTERS, offset=st.integers(0, 5), limit=st.integers(1, 5))
async def test_a_list_has_all_that_fits_and_nothing_else(
    sessions: list[tuple[str, str | None, str | None, bool]], wanted: SessionFilter, offset: int, limit: int,
) -> None:
    log = log_of(sessions)
    for order in ("created", "updated"):
        everything = await log.listed("me", m.EVERY_SESSION, order, limit=100)  # type: ignore[arg-type]
        expected = [row for row in everything if fits(row.summary, wanted)]
        found, total = await SessionLists(log).find("me", wanted, order, offset, limit)  # type: ignore[arg-type]
        assert (list(found), total) == (expected[offset:offset + limit], len(expected))


async def test_other_peoples_sessions_are_not_listed() -> None:
    log = log_of([("a", None, None, False)])
    assert await SessionLists(log).find("you", SessionFilter(), "created", 0, 10) == ([], 0)
