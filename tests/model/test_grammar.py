"""Which event may follow which: each law broken once by hand."""

import pytest

import gateway.model as m

CALL = m.ToolCall(call_id="c1", name="clock", input={"zone": "UTC"})
OPEN = m.ToolCall(call_id="c1", name="clock")
START = m.TurnStarted(command_id="x")
END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
M1, M2 = m.MessageStarted(message_id="m1"), m.MessageStarted(message_id="m2")
END_M1 = m.MessageEnded(message_id="m1")
TEXT = m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT)
TOOL = m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=OPEN)
END_TOOL = m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL)
ASKED = m.InputRequested(request_id="a1", ask=m.PermissionAsk(call=CALL), call_id="c1")
KID = (m.ScopeOpened(parent=m.ROOT), "kid")


def text(delta: str, block: str = "b1") -> m.BlockDelta:
    return m.BlockDelta(block_id=block, message_id="m1", kind=m.BlockKind.TEXT, delta=delta)


def json(delta: str) -> m.BlockDelta:
    return m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, delta=delta)


def end_text(whole: str) -> m.BlockEnded:
    return m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, text=whole)


def speak(*said: m.Event | tuple[m.Event, str]) -> m.Grammar:
    grammar = m.Grammar()
    for one in said:
        event, scope_id = one if isinstance(one, tuple) else (one, m.ROOT)
        grammar.check(event, scope_id)
    return grammar


@pytest.mark.parametrize(
    ("lawful", "breach", "law"),
    [
        ([], M1, "message.started while the turn is idle"),
        ([START], START, "turn.started while the turn is running"),
        ([], END, "turn.ended while the turn is idle"),
        ([START, M1], M2, "in_message"),
        ([START, M1], END, "in message m1"),
        ([START], END_M1, "quiet"),
        ([START, M1, TEXT], TEXT, "in_block"),
        ([START, M1, TEXT], END_M1, "in_block"),
        ([START, M1, TEXT], m.MessageAnnotated(message_id="m1", topic=m.AnnotationTopic.SEARCH), "in_block"),
        ([START, M1], m.MessageEnded(message_id="m2"), "of message m2 inside message m1"),
        ([START, M1], text("x"), "in_message"),
        ([START, M1, TEXT], text("x", block="b2"), "not the open block"),
        ([START, M1, TEXT], json("x"), "delta of tool_use b1, which is not the open block"),
        (
            [START, M1, TEXT],
            m.BlockDelta(block_id="b1", message_id="m2", kind=m.BlockKind.TEXT, delta="x"),
            "of message m2 inside message m1",
        ),
        ([START, M1, TEXT, text("x")], end_text("y"), "do not add up"),
        (
            [START, M1, TEXT, text("x")],
            m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.THINKING, text="x"),
            "not the open block",
        ),
        ([START, M1], m.BlockStarted(block_id="b", message_id="m1", kind=m.BlockKind.TOOL_USE), "starts with its call"),
        (
            [START, M1],
            m.BlockStarted(block_id="b", message_id="m1", kind=m.BlockKind.TEXT, call=OPEN),
            "starts with its call",
        ),
        ([START, M1, TOOL, json('{"zone":')], END_TOOL, "not JSON"),
        ([START, M1, TOOL, json('{"zone":"CET"}')], END_TOOL, "do not add up to its input"),
        (
            [START, M1, TOOL],
            m.BlockEnded(
                block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=m.ToolCall(call_id="c2", name="clock")
            ),
            "another call",
        ),
        (
            [START, M1, TEXT],
            m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, text="", torn=True),
            "torn",
        ),
        ([START, M1, TOOL], m.ToolOutput(call_id="c1", delta="x"), "not open"),
        ([START, M1, TOOL, END_TOOL, m.ToolReturned(call_id="c1")], m.ToolReturned(call_id="c1"), "not open"),
        ([START, M1, TOOL, END_TOOL, END_M1], END, "has not come back"),
        ([START, M1, TOOL, END_TOOL, TOOL], END_TOOL, "was made before"),
        ([START], ASKED, "not open"),
        ([START], m.TurnSuspended(pending=()), "every open ask"),
        ([START, M1, TOOL, END_TOOL, END_M1, ASKED], ASKED, "open already"),
        ([START, M1, TOOL, END_TOOL, ASKED], m.TurnSuspended(pending=("a1",)), "in message m1"),
        ([START, M1, TOOL, END_TOOL, END_M1, ASKED], m.TurnSuspended(pending=("a1", "a2")), "every open ask"),
        ([START, M1, TOOL, END_TOOL, END_M1, ASKED, m.TurnSuspended(pending=("a1",))], M2, "suspended"),
        ([START], m.InputResolved(request_id="a1", resolution=m.Resolution.GRANTED), "not open"),
        ([START, M1, TOOL, END_TOOL, END_M1, ASKED, m.ToolReturned(call_id="c1")], END, "ask a1 is open"),
        ([START], (M1, "kid"), "never opened"),
        ([START, KID], KID, "open already"),
        ([START], (m.ScopeOpened(parent="nobody"), "kid"), "never opened"),
        ([START], m.ScopeStatusChanged(status=m.ScopeStatus.ENDED), "no sub-agent"),
        ([START, KID, (M1, "kid")], (m.ScopeStatusChanged(status=m.ScopeStatus.ENDED), "kid"), "ended in message"),
        ([START], m.TurnResumed(), "turn.resumed while the turn is running"),
    ],
)
def test_a_breach_is_named_and_changes_nothing(lawful: list, breach: m.Event | tuple[m.Event, str], law: str) -> None:
    grammar = speak(*lawful)
    before = (grammar.turn, set(grammar.scopes), set(grammar.calls), set(grammar.asks))
    event, scope_id = breach if isinstance(breach, tuple) else (breach, m.ROOT)
    with pytest.raises(m.GrammarError, match=law):
        grammar.check(event, scope_id)
    assert (grammar.turn, set(grammar.scopes), set(grammar.calls), set(grammar.asks)) == before


@pytest.mark.parametrize("odd", [
    text("x", block="b2"), json("x"), m.BlockDelta(block_id="b1", message_id="m2", kind=m.BlockKind.TEXT, delta="x"),
])
def test_words_are_taken_together_only_if_all_belong_there(odd: m.BlockDelta) -> None:
    grammar = speak(START, M1, TEXT)
    assert not grammar.take_deltas([text("a"), odd])
    assert grammar.take_deltas([text("a"), text("b")])
    grammar.check(end_text("ab"))


def test_two_voices_may_interleave() -> None:
    speak(
        START,
        M1,
        KID,
        (M2, "kid"),
        TEXT,
        (m.BlockStarted(block_id="b9", message_id="m2", kind=m.BlockKind.TEXT), "kid"),
        text("a"),
        (m.BlockDelta(block_id="b9", message_id="m2", kind=m.BlockKind.TEXT, delta="z"), "kid"),
        text("b"),
        end_text("ab"),
        (m.BlockEnded(block_id="b9", message_id="m2", kind=m.BlockKind.TEXT, text="z"), "kid"),
        (m.MessageEnded(message_id="m2"), "kid"),
        END_M1,
    )


def test_a_notice_may_be_posted_at_any_time() -> None:
    speak(m.NoticePosted(topic="t", title="x"), START, M1, m.NoticePosted(topic="t", title="x"))


def test_a_sub_agent_is_archived_when_it_has_ended_and_not_before() -> None:
    archived = (m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED), "kid")
    ended = (m.ScopeStatusChanged(status=m.ScopeStatus.ENDED), "kid")
    speak(START, KID, ended, archived, END, archived)
    with pytest.raises(m.GrammarError, match="archived of kid"):
        speak(START, KID, archived)
    with pytest.raises(m.GrammarError, match="archived of root"):
        speak((m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED), m.ROOT))
    with pytest.raises(m.GrammarError, match="ended of kid"):
        speak(ended)


def test_an_event_is_known_by_its_place() -> None:
    assert m.event_id_of("sess_ab", 12) == "evt_ab_12"
    assert m.seq_of_event("sess_ab", "evt_ab_12") == 12
    for wrong in ("evt_ac_12", "evt_ab_", "evt_ab_x", "evt_ab_012", "evt_ab_0", "evt_ab_-1", "evt_ab_\u0661", "12", "",
                  "evt_ab_" + "9" * 30):
        assert m.seq_of_event("sess_ab", wrong) is None, wrong
