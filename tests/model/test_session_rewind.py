"""Rewinding hides what was said since from people and from the agent, and loses nothing."""

import pytest

import gateway.model as m

END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
SEED = m.SeedMessage(role=m.Role.USER, content="seed")


def told(*said: m.AnyEvent | str) -> list[m.Record]:
    """A string is a whole turn that somebody starts by saying it."""
    records: list[m.Record] = []

    def say(event: m.AnyEvent, turn_id: str | None = None) -> None:
        seq = len(records) + 1
        records.append(m.Record(seq=seq, at=float(seq), session_id="s", event=event, turn_id=turn_id))

    say(m.SessionCreated(agent="a", history=(SEED,)))
    for one in said:
        if not isinstance(one, str):
            say(one)
            continue
        say(m.InputAccepted(command_id=one, command=m.SendMessage(content=one)), one)
        say(m.TurnStarted(command_id=one), one)
        say(END, one)
    return records


def words(view: m.SessionView) -> list[object]:
    return [entry.content for entry in view.entries]


def test_a_session_can_be_rewound_to_its_start_and_to_the_end_of_each_turn() -> None:
    view = m.fold("s", told("one", "two"))
    assert [(mark.seq, mark.turn_id, mark.entries) for mark in view.checkpoints] == [
        (1, None, 1), (4, "one", 2), (7, "two", 3),
    ]


def test_what_was_said_since_is_hidden() -> None:
    view = m.fold("s", told("one", "two", "three", m.SessionRewound(to_seq=4), "four"))
    assert words(view) == ["seed", "one", "four"]
    assert words(view) == [entry.content for entry in view.compacted]
    assert [mark.turn_id for mark in view.checkpoints] == [None, "one", "four"]


def test_back_at_the_start_nothing_has_ended() -> None:
    view = m.fold("s", told("one", m.SessionRewound(to_seq=1)))
    assert (words(view), view.ended) == (["seed"], None)


def test_between_two_checkpoints_the_earlier_one_counts() -> None:
    assert words(m.fold("s", told("one", "two", m.SessionRewound(to_seq=6)))) == ["seed", "one"]
    assert words(m.fold("s", told("one", m.SessionRewound(to_seq=0)))) == ["seed"]


def test_a_summary_goes_with_what_it_was_made_of() -> None:
    def compacted(number: int) -> m.SessionCompacted:
        return m.SessionCompacted(compaction_id=f"c{number}", summary=f"sum {number}")

    records = told("one", compacted(1), "two", compacted(2), "three", m.SessionRewound(to_seq=8))
    view = m.fold("s", records)
    assert view.compaction == compacted(1)
    assert [entry.content for entry in view.compacted] == ["sum 1", "two"]
    assert m.fold("s", told("one", compacted(1), "two", m.SessionRewound(to_seq=4))).compaction is None


def test_records_of_rewound_turns_do_not_stand() -> None:
    records = told("one", "two", m.SessionUpdated(title="T"), m.SessionRewound(to_seq=4), "three")
    assert [record.seq for record in m.without_rewound(records)] == [1, 2, 3, 4, 8, 9, 10, 11, 12]
    assert words(m.fold("s", m.without_rewound(records))) == words(m.fold("s", records))


def test_a_session_is_rewound_only_while_nothing_runs() -> None:
    grammar = m.Grammar()
    grammar.check(m.SessionRewound(to_seq=1))
    grammar.check(m.TurnStarted(command_id="x"))
    with pytest.raises(m.GrammarError, match=r"session\.rewound while the turn is running"):
        grammar.check(m.SessionRewound(to_seq=1))


def test_it_is_written_and_read() -> None:
    record = told(m.SessionRewound(to_seq=1, reason="wrong way"))[-1]
    assert m.decode_record(m.encode_record(record)) == record
