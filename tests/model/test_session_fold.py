"""Records in, the state of a session out."""

import gateway.model as m

CALL = m.ToolCall(call_id="c1", name="clock")


def told(*events: m.AnyEvent) -> m.SessionView:
    return m.fold("s", [
        m.Record(seq=seq, at=float(seq), session_id="s", turn_id="t1", event=event)
        for seq, event in enumerate(events, 1)
    ])


def block(kind: m.BlockKind, **whole: object) -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id="m1", kind=kind, **whole)  # type: ignore[arg-type]


TURN = (
    m.SessionCreated(agent="a", title="T", history=(m.SeedMessage(role=m.Role.SYSTEM, content="be kind"),)),
    m.InputAccepted(command_id="cmd", command=m.SendMessage(content="hi")),
    m.TurnStarted(command_id="cmd"),
    m.MessageStarted(message_id="m1", model="x-1"),
    block(m.BlockKind.THINKING, text="hm", signature="sig"),
    block(m.BlockKind.TEXT, text="hello"),
    m.BlockStarted(block_id="b", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL),
    block(m.BlockKind.TOOL_USE, call=CALL),
    m.MessageAnnotated(message_id="m1", topic=m.AnnotationTopic.SEARCH, content="found"),
    m.MessageEnded(message_id="m1", stop_reason=m.StopReason.TOOL_USE, usage=m.Usage(output_tokens=3)),
)


def test_history_is_what_was_said_in_order() -> None:
    view = told(*TURN, m.ToolReturned(call_id="c1", content="noon"))
    assert [(entry.role, entry.content) for entry in view.entries] == [
        (m.Role.SYSTEM, "be kind"),
        (m.Role.USER, "hi"),
        (
            m.Role.ASSISTANT,
            (m.ThinkingPart(text="hm", signature="sig"), m.TextPart(text="hello"), m.ToolUsePart(call=CALL)),
        ),
        (m.Role.TOOL, "noon"),
    ]
    said = view.entries[2]
    assert (said.model, said.stop_reason, said.usage) == ("x-1", m.StopReason.TOOL_USE, m.Usage(output_tokens=3))
    assert said.annotations == {m.AnnotationTopic.SEARCH: "found"}
    assert view.calls == {}


def test_status_and_asks_follow_the_turn() -> None:
    asked = m.InputRequested(request_id="r1", ask=m.PermissionAsk(call=CALL), call_id="c1")
    assert told(*TURN).status is m.SessionStatus.RUNNING
    waiting = told(*TURN, asked, m.TurnSuspended(pending=("r1",)))
    assert waiting.status is m.SessionStatus.SUSPENDED
    assert waiting.ask_of_call("c1") is waiting.asks["r1"]
    assert waiting.ask_of_call("c2") is None
    settled = (m.InputResolved(request_id="r1", resolution=m.Resolution.GRANTED), m.TurnResumed(settled=("r1",)))
    resumed = told(*TURN, asked, m.TurnSuspended(pending=("r1",)), *settled)
    assert resumed.status is m.SessionStatus.RUNNING
    assert resumed.asks == {}
    ended = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, usage=m.Usage(input_tokens=5))
    over = told(*TURN, m.ToolReturned(call_id="c1"), ended)
    assert (over.status, over.turn_id, over.ended, over.turns) == (m.SessionStatus.IDLE, None, ended, 1)
    assert over.usage == m.Usage(input_tokens=5)


def test_an_update_changes_what_it_names() -> None:
    view = told(TURN[0], m.SessionUpdated(metadata={"a": 1}))
    assert (view.title, view.metadata) == ("T", {"a": 1})
    assert told(TURN[0], m.SessionUpdated(title="U")).title == "U"


def test_a_summary_stands_for_what_it_sums_up() -> None:
    summed = m.SessionCompacted(compaction_id="k", summary="they met")
    view = told(*TURN, m.ToolReturned(call_id="c1", content="noon"), summed)
    assert len(view.entries) == 4, "the full history keeps everything"
    assert [entry.content for entry in view.compacted[:3]] == ["be kind", "they met", "hi"], "instructions hold on"
    assert len(view.compacted) == 5, "what this turn has said is not yet history"
    assert told(TURN[0]).compacted == told(TURN[0]).entries


def test_results_stand_in_history_in_the_place_of_the_message_that_brings_them() -> None:
    result = m.SeedMessage(role=m.Role.TOOL, content="noon", call_id="c0")
    view = told(
        TURN[0], m.InputAccepted(command_id="cmd", command=m.SendMessage(content="in words", results=(result,)))
    )
    assert [(entry.role, entry.content, entry.call_id, entry.origin) for entry in view.entries[1:]] == [
        (m.Role.TOOL, "noon", "c0", m.ToolOrigin.CLIENT)]


def test_an_ask_and_its_answer_are_kept() -> None:
    answer = m.ContinueTurn(request_id="r1", proceed=True, said="yes")
    asked = [m.InputRequested(request_id=name, ask=m.ContinuationAsk(turn=1, message="on?")) for name in ("r1", "r2")]
    settled = [m.InputResolved(request_id="r1", resolution=m.Resolution.ANSWERED),
               m.InputResolved(request_id="r2", resolution=m.Resolution.CANCELLED)]
    view = told(*TURN, *asked, m.InputAccepted(command_id="c2", command=answer), *settled)
    assert not view.asks
    assert [(past.asked.request_id, past.answer, past.settled) for past in view.past_asks.values()] == [
        ("r1", answer, 13), ("r2", None, 15)]


def test_a_closed_session_says_why() -> None:
    view = told(TURN[0], m.SessionClosed(reason=m.CloseReason.ARCHIVED))
    assert (view.closed, view.status) == (m.CloseReason.ARCHIVED, m.SessionStatus.CLOSED)


def test_what_a_block_leaves_behind() -> None:
    image, data = m.ImagePart(url="https://x.test/p.png"), m.DataPart(type="plan")
    assert m.part_of(block(m.BlockKind.IMAGE, image=image)) is image
    assert m.part_of(block(m.BlockKind.DATA, data=data)) is data
    assert m.part_of(block(m.BlockKind.TEXT, text="")) is None
    assert m.part_of(block(m.BlockKind.THINKING, text="")) is None
    assert m.part_of(block(m.BlockKind.TOOL_USE, call=CALL, torn=True)) is None


def test_a_torn_call_is_not_pending() -> None:
    view = told(*TURN[:7], block(m.BlockKind.TOOL_USE, call=CALL, torn=True))
    assert view.calls == {}


def test_a_message_that_said_nothing_leaves_nothing() -> None:
    view = told(*TURN[:4], m.MessageEnded(message_id="m1"))
    assert [entry.role for entry in view.entries] == [m.Role.SYSTEM, m.Role.USER]


def test_a_turn_is_found_by_a_place_in_it() -> None:
    view = told(*TURN)
    assert [view.turn_start(cursor) for cursor in (0, 1, 2, 9)] == [0, 0, 2, 2]


def test_what_is_private_stays_when_metadata_are_replaced() -> None:
    own = {m.PRIVATE: {"nova": {"x": 1}}}
    view = told(m.SessionCreated(agent="a", metadata={"k": "v", **own}), m.SessionUpdated(metadata={"n": "w"}))
    assert (view.shown_metadata, view.private("nova"), view.private("other")) == ({"n": "w"}, {"x": 1}, {})
    view = told(m.SessionCreated(agent="a", metadata={"k": "v"}), m.SessionUpdated(metadata={}))
    assert (view.metadata, view.private("nova")) == ({}, {})
    assert told(m.SessionCreated(agent="a", metadata={m.PRIVATE: "forged"})).private("nova") == {}


def test_a_call_is_placed_where_it_was_begun() -> None:
    view = told(*TURN)
    assert view.call_places == {"c1": 7}
    assert told(*TURN, m.ToolReturned(call_id="c1", content="noon")).call_places == {}
    torn = m.BlockEnded(block_id="b", message_id="m1", kind=m.BlockKind.TOOL_USE, call=CALL, torn=True)
    assert told(*TURN[:7], torn).call_places == {}


def test_sub_agents_are_kept_with_what_they_do() -> None:
    events = [
        (m.ROOT, TURN[6]),
        ("kid", m.ScopeOpened(parent=m.ROOT, call_id="c1", agent="helper", title="Helper")),
        ("kid", m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.END_TURN)),
        ("kid", m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED)),
        ("unknown", m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED)),
    ]
    view = m.fold("s", [m.Record(seq=seq, at=float(seq), session_id="s", scope_id=scope, event=event)
                      for seq, (scope, event) in enumerate(events, 1)])
    [kid] = view.scopes.values()
    assert (kid.scope_id, kid.parent, kid.agent, kid.title, kid.cause) == ("kid", m.ROOT, "helper", "Helper", 1)
    assert (kid.status, kid.created_at, kid.updated_at, kid.archived_at) == (m.ScopeStatus.ARCHIVED, 2.0, 4.0, 4.0)


def test_only_running_counts_as_active() -> None:
    turn = (m.TurnStarted(command_id="c"), m.TurnSuspended(pending=("a",)), m.TurnResumed())
    assert (told(*turn).active_seconds, told(*turn).running_since) == (1.0, 3.0)
    ended = told(*turn, m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    assert (ended.active_seconds, ended.running_since) == (2.0, None)
