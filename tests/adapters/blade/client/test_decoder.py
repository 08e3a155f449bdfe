"""Blade heard on streams nobody wrote: what our own servers say in it comes back as what it was."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.blade.server.stream_options import StreamOptions
from gateway.ports.remote import RemoteTurnEnd
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.blade.facts import CheckedDecoder, Facts, as_told, asked_like, made_up_calls, said_in
from tests.support.dialects.blade.messages import listed_messages
from tests.support.examples import examples
from tests.support.record_streams import sessions


def frames_of(records: list[m.Record], options: StreamOptions | None = None) -> list[tuple[str, Any]]:
    outbound = dialect("blade").projector(table("blade"), options or StreamOptions())
    frames = [frame for record in records for frame in outbound.feed(record)]
    return [(frame.name, orjson.loads(frame.body)) for frame in frames]


# -- streams nobody wrote ---------------------------------------------------------------------------------------------

@given(sessions())
def test_what_is_said_in_blade_is_heard_as_it_was(records: list[m.Record]) -> None:
    compare(records, frames_of(records))


@given(sessions())
def test_without_snapshots_as_well(records: list[m.Record]) -> None:
    compare(records, frames_of(records, StreamOptions(is_bare=True)))


def compare(records: list[m.Record], frames: list[tuple[str, Any]]) -> CheckedDecoder:
    """The same messages with the same parts, results, asks, titles, notices and ends, in the same scopes.

    Lost, as the table's `support` says: where one block of words ends and the next begins; pictures (Markdown); what
    tools print; annotations and custom events; stop reasons of messages. A question that no call has put comes back
    with a call that puts it, and a sub-agent that no call brought about with one that does.
    """
    ear = CheckedDecoder()
    for name, body in frames:
        ear.hear(name, body)
    said = said_in(records)
    heard = ear.facts.close(without=made_up_calls(ear.facts, said))
    assert heard.messages == said.messages
    assert heard.results == said.results
    assert heard.titles == said.titles
    assert heard.notices == said.notices
    asked_like(heard.asks, said.asks)
    assert heard.ends == [as_told(end) for end in said.ends]
    return ear


@examples(50)
@given(sessions(suspend=False))
def test_what_was_spent_is_added_up(records: list[m.Record]) -> None:
    """In all; a message whose calls come back late may be charged to the next one of its scope, if there is one."""
    heard, said = compare(records, frames_of(records)).facts.usage, said_in(records).usage
    assert sum_of(heard) <= sum_of(said)
    if not overlapping(records):
        assert heard == said


def sum_of(usages: dict[str, m.Usage]) -> int:
    return sum(usage.input_tokens + usage.output_tokens for usage in usages.values())


def overlapping(records: list[m.Record]) -> bool:
    """Whether a scope goes on speaking while a call of its last message is not back, or a sub-agent without a call."""
    last: dict[str, set[str]] = {}
    for record in records:
        event = record.event
        if isinstance(event, m.ScopeOpened) and event.call_id is None:
            last.setdefault(event.parent, set()).add(record.scope_id)
        elif isinstance(event, m.MessageStarted):
            if last.get(record.scope_id):
                return True
            last[record.scope_id] = set()
        elif isinstance(event, m.BlockEnded) and event.call is not None:
            last[record.scope_id].add(event.call.call_id)
        elif isinstance(event, m.ToolReturned):
            for calls in last.values():
                calls.discard(event.call_id)
    return False


@examples(50)
@given(sessions(), st.data())
def test_what_was_missed_is_made_up_for_by_the_turns_as_they_are(records: list[m.Record], data: st.DataObject) -> None:
    """After a gap the turns of the chat are fetched, and what follows is heard: the same words, calls and results."""
    frames, ear = frames_of(records), CheckedDecoder()
    start = data.draw(st.integers(0, len(frames)))
    run = next((n for n, (name, _) in enumerate(frames[start:]) if not name.startswith("turn:")), len(frames) - start)
    end = start + data.draw(st.integers(0, run))
    books: dict[str, dict[str, Any]] = {}
    for at, (name, body) in enumerate(frames[:end]):
        if name.startswith("turn:"):
            turn = body["data"]["turn"] if name == "turn:patch" else body
            books[turn["turn_id"]] = turn
        if at < start and any(isinstance(heard, RemoteTurnEnd) for heard in ear.hear(name, body)):
            books.clear()
    for turn in books.values() if end > start else ():
        ear.hear("turn:start" if turn["status"] == "streaming" else "turn:end", turn)
    for name, body in frames[end:]:
        ear.hear(name, body)
    assert loose(ear, said_in(records)) == loose(None, said_in(records))


@examples(50)
@given(sessions())
def test_a_server_that_only_shows_turns_as_they_are(records: list[m.Record]) -> None:
    ear = CheckedDecoder()
    for name, body in frames_of(records):
        if name == "turn:patch":
            body = {"session_id": body["session_id"], "patch_type": "sync", "data": {"turn": body["data"]["turn"]}}
        ear.hear(name, body)
    assert loose(ear, said_in(records)) == loose(None, said_in(records))


@examples(50)
@given(sessions())
def test_what_can_be_fetched_is_what_was_heard(records: list[m.Record]) -> None:
    ear = CheckedDecoder()
    ear.go_on()
    for turn in listed_messages(records):
        ear.hear("turn:end", turn)
    ear.hear("chat:end", {"status": "failed"})
    assert loose(ear, said_in(records)) == loose(None, said_in(records))


def loose(ear: CheckedDecoder | None, said: Facts) -> tuple[Any, ...]:
    """Words by scope and kind, calls and results, whatever their order."""
    facts = said if ear is None else ear.facts.close(without=made_up_calls(ear.facts, said))
    words: dict[tuple[str, str], str] = {}
    for scope, listed in facts.messages.items():
        for part in [part for message in listed for part in message if part[0] in ("text", "thinking")]:
            words[scope, part[0]] = words.get((scope, part[0]), "") + part[1]
    return words, sorted(map(repr, facts.calls)), facts.results


@pytest.mark.parametrize("code", m.FaultCode)
def test_a_fault_that_ends_nothing_keeps_its_code(code: m.FaultCode) -> None:
    fault = m.Fault(code=code, message="It broke.")
    said = [m.TurnStarted(command_id="c"), m.FaultRaised(fault=fault), m.NoticePosted(topic="plan", title="Go on.")]
    records = [m.Record(seq=seq, at=1.0, session_id="s", turn_id="t", event=event) for seq, event in enumerate(said, 1)]
    ear = CheckedDecoder()
    for name, body in frames_of(records):
        ear.hear(name, body)
    assert [one.fault for one in ear.said if isinstance(one, m.FaultRaised)] == [fault]
