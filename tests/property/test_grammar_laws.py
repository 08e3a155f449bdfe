"""Laws 1 to 5 on streams nobody wrote: the lawful pass, and what is left out is missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.model.stream_closer import missing_ends
from tests.support.record_streams import sessions

OPENS_OR_CLOSES = (
    m.BlockStarted,
    m.BlockEnded,
    m.MessageStarted,
    m.MessageEnded,
    m.ToolReturned,
    m.TurnStarted,
    m.TurnEnded,
)


def check(records: list[m.Record]) -> m.Grammar:
    grammar = m.Grammar()
    for record in records:
        grammar.check(record.event, record.scope_id)
    return grammar


@given(sessions())
def test_a_lawful_session_ends_with_nothing_open(records: list[m.Record]) -> None:
    grammar = check(records)
    assert grammar.turn is m.TurnPhase.IDLE
    assert not grammar.calls
    assert not grammar.asks
    assert [scope.phase for scope in grammar.scopes.values()] == [m.ScopePhase.QUIET]


@given(sessions(turns=1), st.data())
def test_no_opening_and_no_closing_can_be_left_out(records: list[m.Record], data: st.DataObject) -> None:
    places = [at for at, record in enumerate(records) if isinstance(record.event, OPENS_OR_CLOSES)]
    at = data.draw(st.sampled_from(places))
    left_out = records[at].event
    grammar = m.Grammar()
    with pytest.raises(m.GrammarError):
        for record in [*records[:at], *records[at + 1:]]:
            grammar.check(record.event, record.scope_id)
        if isinstance(left_out, m.TurnEnded):
            grammar.check(m.TurnStarted(command_id="next"))


@given(sessions(turns=1), st.data())
def test_no_word_can_be_changed_on_the_way(records: list[m.Record], data: st.DataObject) -> None:
    places = [at for at, record in enumerate(records)
              if isinstance(record.event, m.BlockDelta) and record.event.kind is not m.BlockKind.TOOL_USE]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    delta = records[at].event
    assert isinstance(delta, m.BlockDelta)
    grammar = m.Grammar()
    with pytest.raises(m.GrammarError, match="add up"):
        for place, record in enumerate(records):
            event = record.event
            if place == at:
                event = m.BlockDelta(
                    block_id=delta.block_id, message_id=delta.message_id, kind=delta.kind, delta=delta.delta + "!",
                )
            grammar.check(event, record.scope_id)


@given(sessions(turns=1), st.data())
def test_whatever_is_cut_off_can_be_ended_well(records: list[m.Record], data: st.DataObject) -> None:
    starts = next(at for at, record in enumerate(records) if isinstance(record.event, m.TurnStarted))
    cut = data.draw(st.integers(starts + 1, len(records) - 1))
    grammar = check(records[:cut])
    for scope_id, event in missing_ends(grammar, m.Outcome.FAILED, m.StopReason.ERROR):
        grammar.check(event, scope_id)
    grammar.check(m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR))
    assert grammar.turn is m.TurnPhase.IDLE


@given(sessions())
def test_a_record_read_back_from_the_log_is_the_same(records: list[m.Record]) -> None:
    assert [m.decode_record(m.encode_record(record)) for record in records] == records


@given(sessions())
def test_history_has_every_whole_text_and_every_result_once(records: list[m.Record]) -> None:
    view = m.fold("sess_walk", records)
    said = [r.event.text for r in records if isinstance(r.event, m.BlockEnded) and r.event.text]
    kept = [part.text for entry in view.entries if not isinstance(entry.content, str)
            for part in entry.content if hasattr(part, "text")]
    assert sorted(kept) == sorted(said)
    returned = [r.event.call_id for r in records if isinstance(r.event, m.ToolReturned)]
    assert [entry.call_id for entry in view.entries if entry.call_id] == returned
    assert not view.asks
    assert view.head == records[-1].seq
