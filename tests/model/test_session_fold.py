"""Records in, the state of a session out."""

from gateway.model import (
    PRIVATE,
    ROOT,
    AnnotationTopic,
    AnyEvent,
    BlockEnded,
    BlockKind,
    BlockStarted,
    CloseReason,
    ContinuationAsk,
    ContinueTurn,
    DataPart,
    ImagePart,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    Outcome,
    PermissionAsk,
    Record,
    Resolution,
    Role,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    SeedMessage,
    SendMessage,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionStatus,
    SessionUpdated,
    SessionView,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolOrigin,
    ToolReturned,
    ToolUsePart,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Usage,
    fold,
    part_of,
)

CALL = ToolCall(call_id="c1", name="clock")


def told(*events: AnyEvent) -> SessionView:
    return fold("s", [
        Record(seq=seq, at=float(seq), session_id="s", turn_id="t1", event=event)
        for seq, event in enumerate(events, 1)
    ])


def block(kind: BlockKind, **whole: object) -> BlockEnded:
    return BlockEnded(block_id="b", message_id="m1", kind=kind, **whole)  # type: ignore[arg-type]


TURN = (
    SessionCreated(agent="a", title="T", history=(SeedMessage(role=Role.SYSTEM, content="be kind"),)),
    InputAccepted(command_id="cmd", command=SendMessage(content="hi")),
    TurnStarted(command_id="cmd"),
    MessageStarted(message_id="m1", model="x-1"),
    block(BlockKind.THINKING, text="hm", signature="sig"),
    block(BlockKind.TEXT, text="hello"),
    BlockStarted(block_id="b", message_id="m1", kind=BlockKind.TOOL_USE, call=CALL),
    block(BlockKind.TOOL_USE, call=CALL),
    MessageAnnotated(message_id="m1", topic=AnnotationTopic.SEARCH, content="found"),
    MessageEnded(message_id="m1", stop_reason=StopReason.TOOL_USE, usage=Usage(output_tokens=3)),
)


def test_history_is_what_was_said_in_order() -> None:
    view = told(*TURN, ToolReturned(call_id="c1", content="noon"))
    assert [(entry.role, entry.content) for entry in view.entries] == [
        (Role.SYSTEM, "be kind"),
        (Role.USER, "hi"),
        (Role.ASSISTANT, (ThinkingPart(text="hm", signature="sig"), TextPart(text="hello"), ToolUsePart(call=CALL))),
        (Role.TOOL, "noon"),
    ]
    said = view.entries[2]
    assert (said.model, said.stop_reason, said.usage) == ("x-1", StopReason.TOOL_USE, Usage(output_tokens=3))
    assert said.annotations == {AnnotationTopic.SEARCH: "found"}
    assert view.calls == {}


def test_status_and_asks_follow_the_turn() -> None:
    asked = InputRequested(request_id="r1", ask=PermissionAsk(call=CALL), call_id="c1")
    assert told(*TURN).status is SessionStatus.RUNNING
    waiting = told(*TURN, asked, TurnSuspended(pending=("r1",)))
    assert waiting.status is SessionStatus.SUSPENDED
    assert waiting.ask_of_call("c1") is waiting.asks["r1"]
    assert waiting.ask_of_call("c2") is None
    settled = (InputResolved(request_id="r1", resolution=Resolution.GRANTED), TurnResumed(settled=("r1",)))
    resumed = told(*TURN, asked, TurnSuspended(pending=("r1",)), *settled)
    assert resumed.status is SessionStatus.RUNNING
    assert resumed.asks == {}
    ended = TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN, usage=Usage(input_tokens=5))
    over = told(*TURN, ToolReturned(call_id="c1"), ended)
    assert (over.status, over.turn_id, over.ended, over.turns) == (SessionStatus.IDLE, None, ended, 1)
    assert over.usage == Usage(input_tokens=5)


def test_an_update_changes_what_it_names() -> None:
    view = told(TURN[0], SessionUpdated(metadata={"a": 1}))
    assert (view.title, view.metadata) == ("T", {"a": 1})
    assert told(TURN[0], SessionUpdated(title="U")).title == "U"


def test_a_summary_stands_for_what_it_sums_up() -> None:
    summed = SessionCompacted(compaction_id="k", summary="they met")
    view = told(*TURN, ToolReturned(call_id="c1", content="noon"), summed)
    assert len(view.entries) == 4, "the full history keeps everything"
    assert [entry.content for entry in view.compacted[:3]] == ["be kind", "they met", "hi"], "instructions hold on"
    assert len(view.compacted) == 5, "what this turn has said is not yet history"
    assert told(TURN[0]).compacted == told(TURN[0]).entries


def test_results_stand_in_history_in_the_place_of_the_message_that_brings_them() -> None:
    result = SeedMessage(role=Role.TOOL, content="noon", call_id="c0")
    view = told(TURN[0], InputAccepted(command_id="cmd", command=SendMessage(content="in words", results=(result,))))
    assert [(entry.role, entry.content, entry.call_id, entry.origin) for entry in view.entries[1:]] == [
        (Role.TOOL, "noon", "c0", ToolOrigin.CLIENT)]


def test_an_ask_and_its_answer_are_kept() -> None:
    answer = ContinueTurn(request_id="r1", proceed=True, said="yes")
    asked = [InputRequested(request_id=name, ask=ContinuationAsk(turn=1, message="on?")) for name in ("r1", "r2")]
    settled = [InputResolved(request_id="r1", resolution=Resolution.ANSWERED),
               InputResolved(request_id="r2", resolution=Resolution.CANCELLED)]
    view = told(*TURN, *asked, InputAccepted(command_id="c2", command=answer), *settled)
    assert not view.asks
    assert [(past.asked.request_id, past.answer, past.settled) for past in view.past_asks.values()] == [
        ("r1", answer, 13), ("r2", None, 15)]


def test_a_closed_session_says_why() -> None:
    view = told(TURN[0], SessionClosed(reason=CloseReason.ARCHIVED))
    assert (view.closed, view.status) == (CloseReason.ARCHIVED, SessionStatus.CLOSED)


def test_what_a_block_leaves_behind() -> None:
    image, data = ImagePart(url="https://x.test/p.png"), DataPart(type="plan")
    assert part_of(block(BlockKind.IMAGE, image=image)) is image
    assert part_of(block(BlockKind.DATA, data=data)) is data
    assert part_of(block(BlockKind.TEXT, text="")) is None
    assert part_of(block(BlockKind.THINKING, text="")) is None
    assert part_of(block(BlockKind.TOOL_USE, call=CALL, torn=True)) is None


def test_a_torn_call_is_not_pending() -> None:
    view = told(*TURN[:7], block(BlockKind.TOOL_USE, call=CALL, torn=True))
    assert view.calls == {}


def test_a_message_that_said_nothing_leaves_nothing() -> None:
    view = told(*TURN[:4], MessageEnded(message_id="m1"))
    assert [entry.role for entry in view.entries] == [Role.SYSTEM, Role.USER]


def test_entries_since_a_record() -> None:
    view = told(*TURN, ToolReturned(call_id="c1", content="noon"))
    assert [entry.role for entry in view.entries_since(3)] == [Role.ASSISTANT, Role.TOOL]
    assert view.entries_since(99) == []


def test_a_turn_is_found_by_a_place_in_it() -> None:
    view = told(*TURN)
    assert [view.turn_start(cursor) for cursor in (0, 1, 2, 9)] == [0, 0, 2, 2]


def test_what_is_private_stays_when_metadata_are_replaced() -> None:
    own = {PRIVATE: {"nova": {"x": 1}}}
    view = told(SessionCreated(agent="a", metadata={"k": "v", **own}), SessionUpdated(metadata={"n": "w"}))
    assert (view.shown_metadata, view.private("nova"), view.private("other")) == ({"n": "w"}, {"x": 1}, {})
    view = told(SessionCreated(agent="a", metadata={"k": "v"}), SessionUpdated(metadata={}))
    assert (view.metadata, view.private("nova")) == ({}, {})
    assert told(SessionCreated(agent="a", metadata={PRIVATE: "forged"})).private("nova") == {}


def test_a_call_is_placed_where_it_was_begun() -> None:
    view = told(*TURN)
    assert view.call_places == {"c1": 7}
    assert told(*TURN, ToolReturned(call_id="c1", content="noon")).call_places == {}
    torn = BlockEnded(block_id="b", message_id="m1", kind=BlockKind.TOOL_USE, call=CALL, torn=True)
    assert told(*TURN[:7], torn).call_places == {}


def test_sub_agents_are_kept_with_what_they_do() -> None:
    events = [
        (ROOT, TURN[6]),
        ("kid", ScopeOpened(parent=ROOT, call_id="c1", agent="helper", title="Helper")),
        ("kid", ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=StopReason.END_TURN)),
        ("kid", ScopeStatusChanged(status=ScopeStatus.ARCHIVED)),
        ("unknown", ScopeStatusChanged(status=ScopeStatus.ARCHIVED)),
    ]
    view = fold("s", [Record(seq=seq, at=float(seq), session_id="s", scope_id=scope, event=event)
                      for seq, (scope, event) in enumerate(events, 1)])
    [kid] = view.scopes.values()
    assert (kid.scope_id, kid.parent, kid.agent, kid.title, kid.cause) == ("kid", ROOT, "helper", "Helper", 1)
    assert (kid.status, kid.created_at, kid.updated_at, kid.archived_at) == (ScopeStatus.ARCHIVED, 2.0, 4.0, 4.0)


def test_only_running_counts_as_active() -> None:
    turn = (TurnStarted(command_id="c"), TurnSuspended(pending=("a",)), TurnResumed())
    assert (told(*turn).active_seconds, told(*turn).running_since) == (1.0, 3.0)
    ended = told(*turn, TurnEnded(outcome=Outcome.COMPLETED, stop_reason=StopReason.END_TURN))
    assert (ended.active_seconds, ended.running_since) == (2.0, None)
