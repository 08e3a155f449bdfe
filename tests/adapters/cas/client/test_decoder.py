"""CAS heard: what the projector says comes back as what it was; what others may say is taken kindly, and lawfully."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

import gateway.model as m
from adapters.cas.client.decoder import Decoder, read_event
from adapters.cas.server.stream_options import StreamOptions
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports.remote import ParsedFrame, RemoteAsk, RemoteTurnEnd
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.cas.facts import CheckedDecoder, Facts, Turn, of_records
from tests.support.dialects.cas.reader import read_stream
from tests.support.examples import examples
from tests.support.record_streams import sessions

BOTH = ("agent.message", "agent.thinking")
MODES = {
    "events": StreamOptions(),
    "deltas": StreamOptions(deltas=BOTH),
    "some deltas": StreamOptions(deltas=("agent.thinking",)),
    "raw": StreamOptions(incremental=True, raw=True),
}
modes = pytest.mark.parametrize("mode", MODES)


def frames_of(records: Sequence[m.Record], mode: StreamOptions) -> Iterator[list[ParsedFrame]]:
    """What a server says of each record: in the threads of its sub-agents first, then on the session's stream."""
    scopes = dict.fromkeys(record.scope_id for record in records if record.scope_id != m.ROOT)
    readings = [*(changed(mode, thread=scope_id) for scope_id in scopes), mode]
    projectors = [dialect("cas").projector(table("cas"), reading) for reading in readings]
    for record in records:
        said = b"".join(frame.body for projector in projectors for frame in projector.feed(record))
        yield [ParsedFrame(frame.type, frame.body, frame.id) for frame in read_stream(said)]


def is_stored(frame: ParsedFrame) -> bool:
    return not read_event(frame).is_preview


def heard(frames: Sequence[ParsedFrame], hearing: Decoder | None = None) -> CheckedDecoder:
    hearing, witness = hearing or Decoder(make_mint("t")), CheckedDecoder()
    for frame in frames:
        witness.hear(hearing.feed(frame), hearing.paused)
    return witness


def everything(records: Sequence[m.Record], mode: StreamOptions) -> list[ParsedFrame]:
    return [frame for frames in frames_of(records, mode) for frame in frames]


def same(told: Facts, known: Facts, mode: str, *, stops: bool = True) -> None:
    """See `hearing_facts` for what is compared."""
    assert len(told.turns) == len(known.turns)
    for one, other in zip(told.turns, known.turns, strict=True):
        assert _comparable(one, mode, stops) == _comparable(other, mode, stops)
    assert told.client_results == known.client_results, "a client's call comes back too, if only when the turn ends"


def _comparable(turn: Turn, mode: str, stops: bool) -> Turn:
    """The stop reasons of messages and turns are told by the raw stream alone.

    The raw stream has no pictures, and its `agent.message` events come when the message ends, so that words,
    thoughts and calls are each in their order, and not beside each other.
    """
    messages = {
        scope_id: [replace(
            message, stop=message.stop if mode == "raw" and stops else None,
            parts=sorted(message.parts, key=lambda part: str(part[0])) if mode == "raw" else message.parts,
        ) for message in messages] for scope_id, messages in turn.messages.items()
    }
    told = mode == "raw" and stops and m.ROOT in turn.messages
    ended = turn.ended and (turn.ended[0] if told else None, *turn.ended[1:])
    return replace(turn, messages=messages, ended=ended)


@modes
@examples(20)
@given(records=sessions())
def test_what_is_said_comes_back_as_what_it_was(mode: str, records: list[m.Record]) -> None:
    same(heard(everything(records, MODES[mode])).facts, of_records(records), mode)


@modes
@examples(20)
@given(records=sessions())
def test_an_event_that_is_told_twice_is_heard_once(mode: str, records: list[m.Record]) -> None:
    twice = [again for frame in everything(records, MODES[mode]) for again in [frame] * (1 + is_stored(frame))]
    same(heard(twice).facts, of_records(records), mode)


@modes
@examples(20)
@given(records=sessions(), data=st.data())
def test_a_stream_that_is_cut_is_heard_once(mode: str, records: list[m.Record], data: st.DataObject) -> None:
    """After each cut the server tells again whatever followed the last whole event, or what it has from then on."""
    frames, hearing, witness = everything(records, MODES[mode]), Decoder(make_mint("t")), CheckedDecoder()
    cuts, again, at = data.draw(st.sets(st.integers(0, len(frames)), max_size=6)), data.draw(st.booleans()), 0
    while at < len(frames):
        witness.hear(hearing.feed(frames[at]), hearing.paused)
        at += 1
        if at in cuts:
            cuts.remove(at)
            hearing.on_reconnect()
            if again:
                while at and not is_stored(frames[at - 1]):
                    at -= 1
            else:
                while at < len(frames) and not is_stored(frames[at]):
                    at += 1
    same(witness.facts, of_records(records), mode, stops=again)


@examples(20)
@given(records=sessions(), data=st.data())
def test_a_stream_that_ends_anywhere_is_closed_lawfully(records: list[m.Record], data: st.DataObject) -> None:
    frames = everything(records, MODES[data.draw(st.sampled_from([*MODES]))])
    hearing = Decoder(make_mint("t"))
    witness = heard(frames[:data.draw(st.integers(0, len(frames)))], hearing)
    witness.hear(hearing.end(), hearing.paused)
    if witness.in_turn:
        witness.hear([RemoteTurnEnd()])
    assert hearing.end() == []


@examples(50)
@given(records=sessions(turns=1), data=st.data())
def test_frames_in_any_order_are_lawful_or_refused(records: list[m.Record], data: st.DataObject) -> None:
    frames = data.draw(st.permutations(everything(records, MODES[data.draw(st.sampled_from([*MODES]))])))
    hearing, witness = Decoder(make_mint("t")), CheckedDecoder()
    try:
        for frame in frames:
            witness.hear(hearing.feed(frame), hearing.paused)
    except BackendFailed:
        pass


# -- faults and ends, one by one --------------------------------------------------------------------------------------

def frame(type: str, id: str, **body: Any) -> ParsedFrame:
    return ParsedFrame(type, {"type": type, "id": id, **body}, id)


def error(id: str, retry: str = "exhausted") -> ParsedFrame:
    told = {"type": "model_overloaded_error", "message": "Too much.", "retry_status": {"type": retry}}
    return frame("session.error", id, error=told)


WORDS = frame("agent.message", "e5", content="Here I am.")


def idle(why: str = "end_turn") -> ParsedFrame:
    return frame("session.status_idle", "e9", stop_reason={"type": why})


@pytest.mark.parametrize(("frames", "raised", "ended"), [
    ([WORDS, error("e6"), idle()], 0, (m.StopReason.ERROR, m.Outcome.FAILED)),
    ([error("e4"), WORDS, idle()], 1, (m.StopReason.END_TURN, m.Outcome.COMPLETED)),
    ([error("e4"), frame("session.updated", "e5", title="t"), idle()], 0, (m.StopReason.ERROR, m.Outcome.FAILED)),
    ([error("e4", "retrying"), idle()], 1, (m.StopReason.END_TURN, m.Outcome.COMPLETED)),
    ([error("e4"), error("e5"), idle()], 1, (m.StopReason.ERROR, m.Outcome.FAILED)),
    ([WORDS, idle("cancelled")], 0, (m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED)),
    ([WORDS, idle("retries_exhausted")], 0, (m.StopReason.ERROR, m.Outcome.FAILED)),
    ([WORDS, idle("max_tokens")], 0, (m.StopReason.MAX_TOKENS, m.Outcome.COMPLETED)),
    ([WORDS, idle("bored")], 0, (m.StopReason.END_TURN, m.Outcome.COMPLETED)),
    ([WORDS, frame("session.status_idle", "e9")], 0, (m.StopReason.END_TURN, m.Outcome.COMPLETED)),
])
def test_a_fault_is_told_with_the_end_it_brings_or_by_itself(
    frames: list[ParsedFrame], raised: int, ended: tuple[m.StopReason, m.Outcome],
) -> None:
    [turn, _] = heard(frames).facts.turns
    assert turn.ended[:2] == ended
    assert turn.faults == [(m.FaultCode.OVERLOADED, "Too much.")] * raised
    assert (turn.ended[2] is not None) is (ended[1] is m.Outcome.FAILED)


def test_a_fault_before_an_ask_is_told_before_it() -> None:
    asking = frame("agent.tool_use", "e4", name="risky", evaluated_permission="ask")
    waiting = frame("session.status_idle", "e6", stop_reason={"type": "requires_action", "event_ids": ["e4"]})
    hearing = Decoder(make_mint("t"))
    said = [one for told in (asking, error("e5"), waiting) for one in hearing.feed(told)]
    assert hearing.paused
    assert [type(one) for one in said[-3:]] == [m.FaultRaised, m.MessageEnded, RemoteAsk]


def test_turns_follow_each_other() -> None:
    late, second = frame("agent.message", "e10", content="late"), frame("agent.message", "e7", content="b")
    begun = [frame("user.message", "u2"), frame("session.status_running", "r2")]
    facts = heard([WORDS, idle(), late, *begun, second, frame("session.status_idle", "e8")]).facts
    assert [turn.words("text") for turn in facts.turns] == [["Here I am."], ["b"], []]


def test_what_a_session_is_called_is_heard_between_turns_too() -> None:
    hearing = Decoder(make_mint("t"))
    told = [hearing.feed(one) for one in (idle(), frame("session.updated", "e10", title="", metadata={"a": "b"}))]
    assert told[1] == [m.SessionUpdated(title="", metadata={"a": "b"})]
