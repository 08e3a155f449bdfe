"""The index of what was said, in every log: it finds what a look at all texts finds, by any part, in any script."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.ports import EventLog
from gateway.search_terms import keyword_terms, pairs_of
from tests.support.examples import examples
from tests.support.storage.event_logs import COMPARED_LOGS, LOGS, put

WORDS = st.text(alphabet="aBé茶红好 xß😀", max_size=6)
Said = tuple[str, str, str]
"""The title of a session, what a person said in it, and what the agent said."""


def records_of(session_id: str, said: Said, owner: str = "ann") -> list[m.Record]:
    title, *turn = said
    created = m.SessionCreated(agent="a", owner=owner, title=title)
    return numbered(session_id, 1, [created, *turn_of(*turn)])


def turn_of(question: str, answer: str) -> list[m.AnyEvent]:
    half = len(answer) // 2
    return [
        m.InputAccepted(command_id="c", command=m.SendMessage(content=question)),
        m.TurnStarted(command_id="c"),
        *(m.BlockEnded(block_id=f"b{place}", message_id="m", kind=m.BlockKind.TEXT, text=text)
          for place, text in enumerate((answer[:half], answer[half:]))),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    ]


def numbered(session_id: str, first: int, events: Sequence[m.AnyEvent]) -> list[m.Record]:
    return [m.Record(seq=seq, at=1.0, session_id=session_id, event=event) for seq, event in enumerate(events, first)]


def has(texts: Sequence[str], wanted: str) -> bool:
    return any(wanted.casefold() in text.casefold() for text in texts)


def has_terms(texts: Sequence[str], wanted: str) -> bool:
    return keyword_terms(wanted) <= {term for text in texts for term in pairs_of(text)}


async def found(log: EventLog, wanted: str, owner: str = "ann") -> Sequence[str]:
    rows = await log.mentioning(owner, wanted)
    assert rows is not None
    return [row.session_id for row in rows]


@pytest.mark.parametrize("name", COMPARED_LOGS)
@examples(25)
@given(
    talks=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5), wanted=WORDS, later=st.integers(0, 5),
    more=st.lists(st.tuples(st.integers(0, 4), WORDS, WORDS), max_size=3), gone=st.sets(st.integers(0, 4), max_size=2),
)
async def test_the_index_finds_what_a_look_at_all_texts_finds(
    name: str, talks: list[Said], wanted: str, later: int, more: list[tuple[int, str, str]], gone: set[int],
) -> None:
    """Whether the index was made before or after a session, a turn or a deletion."""
    with TemporaryDirectory() as folder:
        async with LOGS[name](Path(folder)) as log:
            texts: dict[str, list[str]] = {}
            for number, said in enumerate(talks):
                if number == later:
                    await log.mentioning("ann", "红茶")
                await put(log, *records_of(f"s{number}", said))
                texts[f"s{number}"] = [*said]
            for number, question, answer in more:
                session_id = f"s{number}"
                if session_id in texts:
                    head = await log.head(session_id)
                    assert head is not None
                    await put(log, *numbered(session_id, head.head + 1, turn_of(question, answer)))
                    texts[session_id] += [question, answer]
                    await log.mentioning("ann", question)
            for session_id in {f"s{number}" for number in gone} & texts.keys():
                await log.delete_session(session_id)
                del texts[session_id]
            rows = await log.mentioning("ann", wanted)
            assert (rows is None) is (not keyword_terms(wanted))
            if rows is not None:
                names = [row.session_id for row in rows]
                assert set(names) == {one for one, said in texts.items() if has_terms(said, wanted)}
                assert set(names) >= {one for one, said in texts.items() if has(said, wanted)}
                assert [row.ordinal for row in rows] == sorted((row.ordinal for row in rows), reverse=True)
                assert len(names) == len(set(names))


@pytest.fixture(params=LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with LOGS[request.param](tmp_path) as opened:
        yield opened


async def test_others_sessions_deleted_ones_and_other_texts_are_not_found(log: EventLog) -> None:
    await put(log, *records_of("s1", ("Green tea", "x", "y")))
    await put(log, *records_of("s2", ("", "喝一杯红茶吧", "y")))
    await put(log, *records_of("s3", ("Green tea", "x", "y"), owner="bob"))
    await put(log, *records_of("s4", ("", "", "the greenest tea")))
    assert await found(log, "GREEN TEA") == ["s1"]
    assert await found(log, "红茶") == ["s2"]
    assert await found(log, "nest te") == ["s4"], "a message is found across its blocks"
    await log.delete_session("s1")
    assert await found(log, "green tea") == []
    assert await found(log, "green tea", "bob") == ["s3"]
    assert await log.mentioning("ann", "x") is None, "a single letter has no pair"


async def test_a_session_in_a_turn_may_have_any_text(log: EventLog) -> None:
    records = records_of("s", ("", "x", "green tea"))
    await put(log, *records[:4])
    assert await found(log, "nothing like it") == ["s"]
    await put(log, *records[4:])
    assert await found(log, "nothing like it") == []
    assert await found(log, "green tea") == ["s"]


async def test_a_title_that_was_changed_is_found(log: EventLog) -> None:
    records = records_of("s", ("Green tea", "x", "y"))
    await put(log, *records)
    assert await found(log, "black tea") == []
    await put(log, *numbered("s", len(records) + 1, [m.SessionUpdated(title="Black tea")]))
    assert await found(log, "black tea") == ["s"]


async def test_the_last_of_many_sessions_is_found_after_most_were_deleted(log: EventLog) -> None:
    for number in range(5):
        await put(log, *records_of(f"s{number}", (f"Tea number {number}", "x", "y")))
    assert await found(log, "number 4") == ["s4"]
    for number in range(4):
        await log.delete_session(f"s{number}")
    assert await found(log, "number 4") == ["s4"]
    assert await found(log, "number 1") == []
