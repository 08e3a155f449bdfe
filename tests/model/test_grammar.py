"""Which event may follow which: each law broken once by hand."""

import pytest

from gateway.model import (
    ROOT,
    AnnotationTopic,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Event,
    Grammar,
    GrammarError,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    NoticePosted,
    Outcome,
    PermissionAsk,
    Resolution,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    StopReason,
    ToolCall,
    ToolOutput,
    ToolReturned,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    event_id_of,
    seq_of_event,
)

CALL = ToolCall(call_id="c1", name="clock", input={"zone": "UTC"})
OPEN = ToolCall(call_id="c1", name="clock")
START = TurnStarted(command_id="x")
END = TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN)
M1, M2 = MessageStarted(message_id="m1"), MessageStarted(message_id="m2")
END_M1 = MessageEnded(message_id="m1")
TEXT = BlockStarted(block_id="b1", message_id="m1", kind=BlockKind.TEXT)
TOOL = BlockStarted(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE, call=OPEN)
END_TOOL = BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE, call=CALL)
ASKED = InputRequested(request_id="a1", ask=PermissionAsk(call=CALL), call_id="c1")
KID = (ScopeOpened(parent=ROOT), "kid")


def text(delta: str, block: str = "b1") -> BlockDelta:
    return BlockDelta(block_id=block, message_id="m1", kind=BlockKind.TEXT, delta=delta)


def json(delta: str) -> BlockDelta:
    return BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE, delta=delta)


def end_text(whole: str) -> BlockEnded:
    return BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TEXT, text=whole)


def speak(*said: Event | tuple[Event, str]) -> Grammar:
    grammar = Grammar()
    for one in said:
        event, scope_id = one if isinstance(one, tuple) else (one, ROOT)
        grammar.check(event, scope_id)
    return grammar


@pytest.mark.parametrize(("lawful", "breach", "law"), [
    ([], M1, "message.started while the turn is idle"),
    ([START], START, "turn.started while the turn is running"),
    ([], END, "turn.ended while the turn is idle"),
    ([START, M1], M2, "in_message"),
    ([START, M1], END, "in message m1"),
    ([START], END_M1, "quiet"),
    ([START, M1, TEXT], TEXT, "in_block"),
    ([START, M1, TEXT], END_M1, "in_block"),
    ([START, M1, TEXT], MessageAnnotated(message_id="m1", topic=AnnotationTopic.SEARCH), "in_block"),
    ([START, M1], MessageEnded(message_id="m2"), "of message m2 inside message m1"),
    ([START, M1], text("x"), "in_message"),
    ([START, M1, TEXT], text("x", block="b2"), "not the open block"),
    ([START, M1, TEXT], json("x"), "delta of tool_use b1, which is not the open block"),
    ([START, M1, TEXT], BlockDelta(block_id="b1", message_id="m2", kind=BlockKind.TEXT, delta="x"),
     "of message m2 inside message m1"),
    ([START, M1, TEXT, text("x")], end_text("y"), "do not add up"),
    ([START, M1, TEXT, text("x")], BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.THINKING, text="x"),
     "not the open block"),
    ([START, M1], BlockStarted(block_id="b", message_id="m1", kind=BlockKind.TOOL_USE), "starts with its call"),
    ([START, M1], BlockStarted(block_id="b", message_id="m1", kind=BlockKind.TEXT, call=OPEN), "starts with its call"),
    ([START, M1, TOOL, json('{"zone":')], END_TOOL, "not JSON"),
    ([START, M1, TOOL, json('{"zone":"CET"}')], END_TOOL, "do not add up to its input"),
    ([START, M1, TOOL], BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TOOL_USE,
                                   call=ToolCall(call_id="c2", name="clock")), "another call"),
    ([START, M1, TEXT], BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TEXT, text="", torn=True), "torn"),
    ([START, M1, TOOL], ToolOutput(call_id="c1", delta="x"), "not open"),
    ([START, M1, TOOL, END_TOOL, ToolReturned(call_id="c1")], ToolReturned(call_id="c1"), "not open"),
    ([START, M1, TOOL, END_TOOL, END_M1], END, "has not come back"),
    ([START, M1, TOOL, END_TOOL, TOOL], END_TOOL, "was made before"),
    ([START], ASKED, "not open"),
    ([START], TurnSuspended(pending=()), "every open ask"),
    ([START, M1, TOOL, END_TOOL, END_M1, ASKED], ASKED, "open already"),
    ([START, M1, TOOL, END_TOOL, ASKED], TurnSuspended(pending=("a1",)), "in message m1"),
    ([START, M1, TOOL, END_TOOL, END_M1, ASKED], TurnSuspended(pending=("a1", "a2")), "every open ask"),
    ([START, M1, TOOL, END_TOOL, END_M1, ASKED, TurnSuspended(pending=("a1",))], M2, "suspended"),
    ([START], InputResolved(request_id="a1", resolution=Resolution.GRANTED), "not open"),
    ([START, M1, TOOL, END_TOOL, END_M1, ASKED, ToolReturned(call_id="c1")], END, "ask a1 is open"),
    ([START], (M1, "kid"), "never opened"),
    ([START, KID], KID, "open already"),
    ([START], (ScopeOpened(parent="nobody"), "kid"), "never opened"),
    ([START], ScopeStatusChanged(status=ScopeStatus.ENDED), "no sub-agent"),
    ([START, KID, (M1, "kid")], (ScopeStatusChanged(status=ScopeStatus.ENDED), "kid"), "ended in message"),
    ([START], TurnResumed(), "turn.resumed while the turn is running"),
])
def test_a_breach_is_named_and_changes_nothing(lawful: list, breach: Event | tuple[Event, str], law: str) -> None:
    grammar = speak(*lawful)
    before = (grammar.turn, set(grammar.scopes), set(grammar.calls), set(grammar.asks))
    event, scope_id = breach if isinstance(breach, tuple) else (breach, ROOT)
    with pytest.raises(GrammarError, match=law):
        grammar.check(event, scope_id)
    assert (grammar.turn, set(grammar.scopes), set(grammar.calls), set(grammar.asks)) == before


@pytest.mark.parametrize("odd", [
    text("x", block="b2"), json("x"), BlockDelta(block_id="b1", message_id="m2", kind=BlockKind.TEXT, delta="x"),
])
def test_words_are_taken_together_only_if_all_belong_there(odd: BlockDelta) -> None:
    grammar = speak(START, M1, TEXT)
    assert not grammar.take_deltas([text("a"), odd])
    assert grammar.take_deltas([text("a"), text("b")])
    grammar.check(end_text("ab"))


def test_two_voices_may_interleave() -> None:
    speak(
        START, M1, KID, (M2, "kid"), TEXT,
        (BlockStarted(block_id="b9", message_id="m2", kind=BlockKind.TEXT), "kid"), text("a"),
        (BlockDelta(block_id="b9", message_id="m2", kind=BlockKind.TEXT, delta="z"), "kid"), text("b"), end_text("ab"),
        (BlockEnded(block_id="b9", message_id="m2", kind=BlockKind.TEXT, text="z"), "kid"),
        (MessageEnded(message_id="m2"), "kid"), END_M1,
    )


def test_a_notice_may_be_posted_at_any_time() -> None:
    speak(NoticePosted(topic="t", title="x"), START, M1, NoticePosted(topic="t", title="x"))


def test_a_sub_agent_is_archived_when_it_has_ended_and_not_before() -> None:
    archived = (ScopeStatusChanged(status=ScopeStatus.ARCHIVED), "kid")
    ended = (ScopeStatusChanged(status=ScopeStatus.ENDED), "kid")
    speak(START, KID, ended, archived, END, archived)
    with pytest.raises(GrammarError, match="archived of kid"):
        speak(START, KID, archived)
    with pytest.raises(GrammarError, match="archived of root"):
        speak((ScopeStatusChanged(status=ScopeStatus.ARCHIVED), ROOT))
    with pytest.raises(GrammarError, match="ended of kid"):
        speak(ended)


def test_an_event_is_known_by_its_place() -> None:
    assert event_id_of("sess_ab", 12) == "evt_ab_12"
    assert seq_of_event("sess_ab", "evt_ab_12") == 12
    for wrong in ("evt_ac_12", "evt_ab_", "evt_ab_x", "evt_ab_012", "evt_ab_0", "evt_ab_-1", "evt_ab_\u0661", "12", "",
                  "evt_ab_" + "9" * 30):
        assert seq_of_event("sess_ab", wrong) is None, wrong
