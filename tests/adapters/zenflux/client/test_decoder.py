"""ZenFlux heard: what our own outbound says comes back as what it was, and what others say is taken as they mean it."""

from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.client.decoder import Decoder
from adapters.zenflux.server.stream_options import StreamOptions
from gateway.client import SseDecoder
from gateway.errors import BackendFailed
from gateway.ports.remote import DecodedItem, ParsedFrame
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.zenflux.facts import as_heard, facts, lawful, told
from tests.support.record_streams import sessions

MANNERS = {
    "socket": StreamOptions(), "single": StreamOptions(multi_message=False), "whole": StreamOptions(whole=True),
    "sse": StreamOptions(framing="sse", multi_message=False, throttle=0.0),
    "wordy": StreamOptions(throttle=0.0, conversation_stop=True),
}


def hearing() -> Decoder:
    numbers = count(1)
    return Decoder(lambda prefix: f"{prefix}_h{next(numbers)}")


def frames(manner: StreamOptions, records: list[m.Record]) -> list[ParsedFrame]:
    outbound = dialect("zenflux").projector(table("zenflux"), manner)
    said = [frame.body for record in records for frame in outbound.feed(record)]
    if manner.framing == "json":
        return [ParsedFrame("", orjson.loads(frame)) for frame in said]
    decoder = SseDecoder()
    return [ParsedFrame(one.name, orjson.loads(one.data), one.id) for frame in said for one in decoder.feed(frame)]


def hear(said: list[ParsedFrame]) -> list[DecodedItem]:
    ears = hearing()
    return [heard for frame in said for heard in ears.feed(frame)] + list(ears.end())


# -- our own outbound, reversed ---------------------------------------------------------------------------------------

def ended_as_it_was_told(records: list[m.Record]) -> list[m.Record]:
    """As the engine has it: why a turn ended is why its last message did, unless that made way for something else."""
    last, made = m.StopReason.END_TURN, []
    for record in records:
        event = record.event
        if isinstance(event, m.TurnStarted):
            last = m.StopReason.END_TURN
        elif isinstance(event, m.MessageEnded) and record.scope_id == m.ROOT:
            waits = event.stop_reason in (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
            last = m.StopReason.END_TURN if waits else event.stop_reason
        elif isinstance(event, m.TurnEnded):
            record = replace(record, event=replace(event, stop_reason=last))
        made.append(record)
    return made


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@given(records=sessions())
def test_what_was_said_is_heard(manner: StreamOptions, records: list[m.Record]) -> None:
    records = ended_as_it_was_told(records)
    heard = facts(hear(frames(manner, records)))
    assert [as_heard(turn) for turn in heard] == [as_heard(turn) for turn in told(records)]


# -- whatever comes, what is heard is lawful --------------------------------------------------------------------------

@st.composite
def mangled(draw: Any) -> list[ParsedFrame]:
    """Frames of ours of which some are lost, some come twice, some too early or too late, and some are bent."""
    manner = draw(st.sampled_from([*MANNERS.values()]))
    said = frames(manner, draw(sessions()))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(said) - 1)))
        match draw(st.integers(0, 3)):
            case 0:
                del said[at:at + 1]
            case 1:
                said.insert(draw(st.integers(0, len(said))), said[at]) if said else None
            case 2 if said:
                said.append(said.pop(at))
            case 3 if said:
                said[at] = ParsedFrame(said[at].name, draw(bent(said[at].body)))
    return said


@st.composite
def bent(draw: Any, body: Any) -> Any:
    """The same, with one of its values exchanged for another."""
    other = st.sampled_from([None, 0, -1, 7, True, "", "x", "{}", [], {}, [1], {"a": 1}, 2.5, "tool_result", "text"])
    if not isinstance(body, dict) or not body or draw(st.integers(0, 5)) == 0:
        return draw(other)
    key = draw(st.sampled_from(sorted(body)))
    return {**body, key: draw(bent(body[key]))}


def frame(event: str, run_id: str = "run_1", **data: Any) -> ParsedFrame:
    return ParsedFrame("", {"type": event, "session_id": run_id, "data": data})


SAID = [frame("message_start"), frame("content_start", index=0, content_block={"type": "tool_use", "name": "t"}),
        frame("content_stop", index=0)]
NAMELESS = {"type": "tool_use", "id": "c"}


CALLED = [frame("content_start", run_id="run_2", index=0, content_block={**NAMELESS, "name": "t"}),
          frame("content_stop", run_id="run_2", index=0)]


@example([*CALLED, frame("message_start"), *CALLED])
@example([frame("content_start", index=0, content_block={"type": ""})])
@example([frame("content_start", index=0, content_block=NAMELESS)])
@example([*SAID, frame("message_stop"), frame("content_delta", index=5, delta=7)])
@example([*SAID, frame("content_start", run_id="run_2", index=0, content_block=NAMELESS)])
@example([*SAID, ParsedFrame("", {"type": "content_start", "session_id": "run_2", "data": []})])
@given(mangled())
def test_whatever_comes_is_lawful_or_refused(said: list[ParsedFrame]) -> None:
    ears, heard = hearing(), list[DecodedItem]()
    try:
        for frame in said:
            heard += ears.feed(frame)
        heard += ears.end()
    except BackendFailed:
        heard += ears.end()
    lawful(heard)


@given(sessions())
def test_a_hearing_that_is_broken_off_ends_what_is_open(records: list[m.Record]) -> None:
    said = frames(MANNERS["socket"], records)
    for length in range(0, len(said), 3):
        ears = hearing()
        heard = [one for frame in said[:length] for one in ears.feed(frame)] + list(ears.end())
        grammar = lawful(heard)
        assert all(scope.phase.name == "QUIET" for scope in grammar.scopes.values())
        assert ears.end() == []
