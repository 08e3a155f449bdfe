"""The index of what was said: every session that has a text is found by any part of it, in any script."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.storage import Database
from gateway.storage.log import SqliteLog
from tests.support.examples import examples
from tests.support.storage.event_logs import put

WORDS = st.text(alphabet="aBé茶红好 xß😀", max_size=6)
Said = tuple[str, str, str]
"""The title of a session, what a person said in it, and what the agent said."""


def records_of(session_id: str, said: Said, owner: str = "ann") -> list[m.Record]:
    title, question, answer = said
    half = len(answer) // 2
    events: list[m.AnyEvent] = [
        m.SessionCreated(agent="a", owner=owner, title=title),
        m.InputAccepted(command_id="c", command=m.SendMessage(content=question)),
        m.TurnStarted(command_id="c"),
        *(m.BlockEnded(block_id=f"b{place}", message_id="m", kind=m.BlockKind.TEXT, text=text)
          for place, text in enumerate((answer[:half], answer[half:]))),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    ]
    return [m.Record(seq=seq, at=1.0, session_id=session_id, event=event) for seq, event in enumerate(events, 1)]


def has(said: Said, wanted: str) -> bool:
    return any(wanted.casefold() in text.casefold() for text in said)


async def found(log: SqliteLog, wanted: str, owner: str = "ann") -> Sequence[str]:
    rows = await log.mentioning(owner, wanted)
    assert rows is not None
    return [row.session_id for row in rows]


@examples(25)
@given(talks=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5), wanted=WORDS, later=st.integers(0, 5))
async def test_no_session_is_missed(talks: list[Said], wanted: str, later: int) -> None:
    """Whether the index was made before or after the session."""
    with TemporaryDirectory() as folder:
        log = SqliteLog(Database(Path(folder) / "log.db"))
        await log.open()
        for number, said in enumerate(talks):
            if number == later:
                await log.mentioning("ann", "红茶")
            await put(log, *records_of(f"s{number}", said))
        rows = await log.mentioning("ann", wanted)
        if rows is not None:
            expected = {f"s{number}" for number, said in enumerate(talks) if has(said, wanted)}
            assert expected <= {row.session_id for row in rows}
            assert [row.ordinal for row in rows] == sorted((row.ordinal for row in rows), reverse=True)
        await log.close()


async def test_others_sessions_deleted_ones_and_other_texts_are_not_found(tmp_path: Path) -> None:
    log = SqliteLog(Database(tmp_path / "log.db"))
    await log.open()
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
    await log.close()


async def test_a_session_in_a_turn_may_have_any_text(tmp_path: Path) -> None:
    log = SqliteLog(Database(tmp_path / "log.db"))
    await log.open()
    records = records_of("s", ("", "x", "green tea"))
    await put(log, *records[:4])
    assert await found(log, "nothing like it") == ["s"]
    await put(log, *records[4:])
    assert await found(log, "nothing like it") == []
    assert await found(log, "green tea") == ["s"]
    await log.close()
