"""ZenFlux, outward: the documented lifecycles, event by event."""

from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.zenflux.server.projector import make_projector
from adapters.zenflux.server.stream_options import StreamOptions
from tests.support.dialect_tables import table
from tests.support.playbook import KID, Playbook, silence

START = m.TurnStarted(command_id="cmd_1")
CALL = m.ToolCall(call_id="call_1", name="search", input={"q": "x"})
OVER = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, duration_ms=3500)


class Named:
    """Compares an event by its name and the data it must have."""

    def __init__(self, event: str, **data: Any) -> None:
        self.event, self.data = event, data

    def __eq__(self, frame: object) -> bool:
        assert isinstance(frame, dict)
        payload = frame.get("payload") or frame["data"]
        data = payload["data"]
        return payload["type"] == self.event and all(data.get(key) == value for key, value in self.data.items())

    def __repr__(self) -> str:
        return f"{self.event} {self.data}"


def frame(event: str, **data: Any) -> Named:
    return Named(event, **data)


def play(**manner: Any) -> Playbook:
    manner.setdefault("throttle", 0.0)
    return Playbook(
        make_projector(table("zenflux"), StreamOptions(**manner)), manner.get("framing", "json")
    )


def message(number: int = 1) -> m.MessageStarted:
    return m.MessageStarted(message_id=f"msg_{number}", model="m-1")


def ended(number: int = 1, stop: m.StopReason = m.StopReason.END_TURN, **more: Any) -> m.MessageEnded:
    return m.MessageEnded(message_id=f"msg_{number}", stop_reason=stop, **more)


def block(kind: m.BlockKind, name: str = "b", number: int = 1, call: m.ToolCall | None = None) -> m.BlockStarted:
    return m.BlockStarted(block_id=name, message_id=f"msg_{number}", kind=kind, call=call)


def delta(kind: m.BlockKind, text: str, name: str = "b", number: int = 1) -> m.BlockDelta:
    return m.BlockDelta(block_id=name, message_id=f"msg_{number}", kind=kind, delta=text)


def stop(kind: m.BlockKind, name: str = "b", number: int = 1, **whole: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id=name, message_id=f"msg_{number}", kind=kind, **whole)


def started(**manner: Any) -> Playbook:
    return play(**manner) >> START << frame("session_start") << frame("conversation_start")


def called(talk: Playbook) -> Playbook:
    """A message with one call in it, up to the end of its block."""
    return (talk
        >> message() << frame("message_start")
        >> block(m.BlockKind.TOOL_USE, call=m.ToolCall(call_id="call_1", name="search"))
        << frame("content_start", index=0, content_block={
            "type": "tool_use", "id": "call_1", "name": "search", "input": {}})
        >> delta(m.BlockKind.TOOL_USE, '{"q": ') << frame("content_delta", index=0, delta='{"q": ')
        >> delta(m.BlockKind.TOOL_USE, '"x"}') << frame("content_delta", index=0, delta='"x"}')
        >> stop(m.BlockKind.TOOL_USE, call=CALL) << frame("content_stop", index=0))


def test_a_run_begins_with_its_session_and_its_conversation() -> None:
    facts = {"title": "Trip", "user_id": "ann", "created_at": 1_600_000_000.0, "metadata": {"tags": ["x"]}}
    talk = play(**facts) >> START
    session, conversation = talk._said
    assert session == {
        "type": "event", "event": "session_start", "seq": 1, "payload": {
            "event_uuid": session["payload"]["event_uuid"], "seq": 1, "type": "session_start", "session_id": "turn_1",
            "conversation_id": "sess_1", "timestamp": "2023-11-14T22:13:20.125000", "data": {
                "session_id": "turn_1", "user_id": "ann", "conversation_id": "sess_1", "message_id": "cmd_1",
                "timestamp": "2023-11-14T22:13:20.125000"}}}
    assert conversation["seq"] == conversation["payload"]["seq"] == 2
    assert conversation["payload"]["data"] == {
        "conversation_id": "sess_1", "title": "Trip", "created_at": "2020-09-13T12:26:40.000000",
        "updated_at": "2023-11-14T22:13:20.125000", "metadata": {"tags": ["x"]}}


def test_message_start_says_its_message_twice() -> None:
    talk = started() >> message()
    payload = talk._said[0]["payload"]
    opening = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m-1", "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
    assert payload["message"] == payload["data"]["message"] == opening
    assert payload["data"] == {
        "message": opening, "message_id": "msg_1", "session_id": "turn_1", "conversation_id": "sess_1"}


def test_the_documented_lifecycle() -> None:
    """Spec 2, lifecycle listing: two rounds, indexes that go on, the result first in the second round."""
    usage = m.Usage(input_tokens=4, output_tokens=2)
    talk = started()
    (talk
        >> message() << frame("message_start")
        >> block(m.BlockKind.THINKING, "t") << frame("content_start", index=0, content_block={
            "type": "thinking", "thinking": ""})
        >> delta(m.BlockKind.THINKING, "hm", "t") << frame("content_delta", index=0, delta="hm")
        >> stop(m.BlockKind.THINKING, "t", text="hm") << frame("content_stop", index=0)
        >> block(m.BlockKind.TEXT, "w") << frame("content_start", index=1, content_block={"type": "text", "text": ""})
        >> delta(m.BlockKind.TEXT, "Let me see.", "w") << frame("content_delta", index=1, delta="Let me see.")
        >> stop(m.BlockKind.TEXT, "w", text="Let me see.") << frame("content_stop", index=1)
        >> block(m.BlockKind.TOOL_USE, "c", call=m.ToolCall(call_id="call_1", name="search"))
        << frame("content_start", index=2)
        >> stop(m.BlockKind.TOOL_USE, "c", call=CALL)
        << frame("content_delta", index=2, delta='{"q":"x"}') << frame("content_stop", index=2)
        >> ended(stop=m.StopReason.TOOL_USE, usage=usage) << silence
        >> m.ToolReturned(call_id="call_1", content="found") << silence
        >> message(2)
        << frame("message_delta", type="usage", content={
            "stop_reason": "tool_use", "input_tokens": 4, "output_tokens": 2})
        << frame("message_stop")
        << frame("message_start")
        << frame("content_start", index=3, content_block={
            "type": "tool_result", "tool_use_id": "call_1", "content": "", "is_error": False})
        << frame("content_delta", index=3, delta="found")
        << frame("content_stop", index=3)
        >> block(m.BlockKind.TEXT, "z", 2) << frame("content_start", index=4)
        >> delta(m.BlockKind.TEXT, "Done.", "z", 2) << frame("content_delta", index=4, delta="Done.")
        >> stop(m.BlockKind.TEXT, "z", 2, text="Done.") << frame("content_stop", index=4)
        >> ended(2, usage=usage)
        << frame("message_delta", type="usage", content={
            "stop_reason": "end_turn", "input_tokens": 4, "output_tokens": 2})
        << frame("message_delta", type="billing")
        << frame("message_stop")
        >> OVER << frame("session_end", session_id="turn_1", status="completed", duration_ms=3500)
        << silence)


def test_one_message_holds_all_rounds_where_that_is_wanted() -> None:
    talk = called(started(multi_message=False))
    (talk
        >> ended(stop=m.StopReason.TOOL_USE, usage=m.Usage(input_tokens=1)) << silence
        >> m.ToolReturned(call_id="call_1", content="found", is_error=True)
        << frame("content_start", index=1, content_block={
            "type": "tool_result", "tool_use_id": "call_1", "content": "", "is_error": True})
        << frame("content_delta", index=1, delta="found") << frame("content_stop", index=1)
        >> message(2) << silence
        >> block(m.BlockKind.TEXT, "w", 2) << frame("content_start", index=2)
        >> stop(m.BlockKind.TEXT, "w", 2, text="") << frame("content_stop", index=2)
        >> ended(2, usage=m.Usage(input_tokens=2)) << silence
        >> OVER
        << frame("message_delta", type="usage", content={
            "stop_reason": "end_turn", "input_tokens": 3, "output_tokens": 0})
        << frame("message_delta", type="billing") << frame("message_stop") << frame("session_end"))


def test_the_bill_adds_up_as_documented() -> None:
    usage = m.Usage(
        input_tokens=100, output_tokens=200, thinking_tokens=50, cache_read_tokens=30, cache_write_tokens=10
    )
    talk = started() >> message() << frame("message_start") >> ended(usage=usage)
    bill = talk._said[1]["payload"]["data"]["content"]
    assert bill == {
        "prompt_tokens": 100, "completion_tokens": 200, "thinking_tokens": 50, "cache_read_tokens": 30,
        "cache_write_tokens": 10, "total_tokens": 390, "latency": 0.25, "llm_calls": 1, "model": "m-1"}


def test_a_provider_tool_comes_back_within_its_message() -> None:
    call = m.ToolCall(call_id="call_1", name="web", origin=m.ToolOrigin.PROVIDER)
    (started()
        >> message() << frame("message_start")
        >> block(m.BlockKind.TOOL_USE, call=call) << frame("content_start", index=0, content_block={
            "type": "server_tool_use", "id": "call_1", "name": "web", "input": {}})
        >> stop(m.BlockKind.TOOL_USE, call=call)
        << frame("content_delta", index=0, delta="{}") << frame("content_stop", index=0)
        >> block(m.BlockKind.TEXT, "w") << frame("content_start", index=1)
        >> m.ToolReturned(call_id="call_1", content="", origin=m.ToolOrigin.PROVIDER) << silence
        >> stop(m.BlockKind.TEXT, "w", text="") << frame("content_stop", index=1)
        << frame("content_start", index=2) << frame("content_delta", index=2, delta="")
        << frame("content_stop", index=2))


def test_whole_blocks_are_one_delta_each() -> None:
    (started(whole=True)
        >> message() << frame("message_start")
        >> block(m.BlockKind.TEXT) << frame("content_start", index=0)
        >> delta(m.BlockKind.TEXT, "a") << silence
        >> delta(m.BlockKind.TEXT, "b") << silence
        >> stop(m.BlockKind.TEXT, text="ab") << frame("content_delta", index=0, delta="ab")
        << frame("content_stop", index=0))


def test_words_are_merged_until_something_else_is_said() -> None:
    (started(throttle=1.0)
        >> message() << frame("message_start")
        >> block(m.BlockKind.TEXT) << frame("content_start", index=0)
        >> delta(m.BlockKind.TEXT, "a") << frame("content_delta", delta="a")
        >> delta(m.BlockKind.TEXT, "b") << silence
        >> (KID, m.ScopeOpened(parent=m.ROOT)) << silence
        >> delta(m.BlockKind.TEXT, "c") << silence
        >> stop(m.BlockKind.TEXT, text="abc") << frame("content_delta", delta="bc") << frame("content_stop"))


def test_a_timer_says_what_is_due_with_the_time_it_was_due() -> None:
    outbound = make_projector(table("zenflux"), StreamOptions())
    talk = Playbook(outbound, "json")
    (talk >> START << frame("session_start") << frame("conversation_start")
        >> message() << frame("message_start")
        >> block(m.BlockKind.TEXT) << frame("content_start")
        >> delta(m.BlockKind.TEXT, "a") << frame("content_delta", delta="a")
        >> delta(m.BlockKind.TEXT, "b") << silence)
    due = outbound.deadline
    assert due == pytest.approx(1_700_000_000 + 4 / 8 + 0.15)
    assert outbound.flush(due - 0.001) == ()
    [said] = outbound.flush(due + 5)
    assert orjson.loads(said.body)["payload"]["timestamp"] == "2023-11-14T22:13:20.650000"
    assert outbound.deadline is None


# -- ends -------------------------------------------------------------------------------------------------------------

def test_a_run_that_somebody_stops() -> None:
    (started()
        >> message() << frame("message_start")
        >> block(m.BlockKind.TEXT) << frame("content_start", index=0)
        >> stop(m.BlockKind.TEXT, text="") << frame("content_stop", index=0)
        >> ended(stop=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED) << silence
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << frame("message_delta", type="usage", content={
            "stop_reason": "cancelled", "input_tokens": 0, "output_tokens": 0})
        << frame("message_delta", type="billing") << frame("message_stop")
        << frame("session_stopped", session_id="turn_1", reason="user_requested")
        << frame("session_end", status="cancelled"))


def test_results_of_a_run_broken_off_are_in_its_last_message() -> None:
    (called(started())
        >> ended(stop=m.StopReason.TOOL_USE) << silence
        >> m.ToolReturned(call_id="call_1", content="interrupted", is_error=True) << silence
        >> m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        << frame("content_start", index=1) << frame("content_delta", delta="interrupted")
        << frame("content_stop", index=1)
        << frame("message_delta", type="usage") << frame("message_delta", type="billing") << frame("message_stop")
        << frame("session_stopped") << frame("session_end"))


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (m.FaultCode.BACKEND, "internal_error"),
        (m.FaultCode.TIMEOUT, "timeout_error"),
        (m.FaultCode.INTERNAL, "internal_error"),
        (m.FaultCode.OVERLOADED, "overloaded_error"),
        (m.FaultCode.RATE_LIMITED, "overloaded_error"),
        (m.FaultCode.INVALID, "validation_error"),
    ],
)
def test_an_error_comes_before_the_end_of_its_message(code: m.FaultCode, word: str) -> None:
    """A reader of server-sent events leaves at message_stop."""
    fault = m.Fault(code=code, message="broke")
    (started()
        >> message() << frame("message_start")
        >> ended(stop=m.StopReason.ERROR, outcome=m.Outcome.FAILED) << silence
        >> m.FaultRaised(fault=fault) << silence
        >> m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=fault)
        << frame("error", error={"type": word, "message": "broke"})
        << frame("message_stop") << frame("session_end", status="failed"))


def test_an_agent_that_is_away_is_an_error_of_the_network() -> None:
    fault = m.Fault(code=m.FaultCode.BACKEND, message="away", retryable=True)
    (started()
        >> m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=fault)
        << frame("error", error={"type": "network_error", "message": "away"}) << frame("session_end", status="failed"))


def test_a_fault_that_the_run_survives_is_no_error() -> None:
    started() >> m.FaultRaised(fault=m.Fault(code=m.FaultCode.BACKEND, message="again")) << silence


def test_a_run_that_says_nothing() -> None:
    started() >> OVER << frame("session_end") << silence


def test_a_conversation_stop_where_it_is_wanted() -> None:
    (started(conversation_stop=True) >> OVER
        << frame("conversation_stop", conversation_id="sess_1", final_status="completed", summary={})
        << frame("session_end"))


def test_server_sent_events_end_with_done() -> None:
    talk = play(framing="sse", multi_message=False) >> START
    assert talk._said[0]["data"]["type"] == "session_start"
    assert set(talk._said[0]) == {"data"}
    talk._said = []
    talk >> OVER << frame("session_end") << {"event": "done", "data": {"type": "done", "data": {"type": "done"}}}


# -- the conversation -------------------------------------------------------------------------------------------------

def test_changes_of_the_conversation_wait_for_the_first_message() -> None:
    (started()
        >> m.SessionUpdated(title="Trip") << silence
        >> message() << frame("message_start") << frame("conversation_delta", conversation_id="sess_1", title="Trip")
        >> m.SessionUpdated(metadata={"tags": ["a"], "dragoman.private": {"x": 1}})
        << frame("conversation_delta", metadata={"tags": ["a"]})
        >> m.SessionUpdated() << silence
        >> m.SessionCompacted(compaction_id="c", summary="short", archived=5)
        << frame("conversation_delta", compressed={"summary": "short", "trimmed_count": 5}))


def test_a_title_given_before_the_run_is_told_at_its_start() -> None:
    talk = play() >> m.SessionUpdated(title="Trip") << silence >> START << frame("session_start")
    talk << frame("conversation_start", title="Trip")


# -- notes and pictures -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("topic", "given", "content", "parsed"), [
    (m.AnnotationTopic.RECOMMENDED, {"questions": ["a?"]}, '{"questions":["a?"]}', {"questions": ["a?"]}),
    (m.AnnotationTopic.PREFACE, "Well", "Well", "Well"),
    (m.AnnotationTopic.SEARCH, {"hits": 1}, '{"hits":1}', '{"hits":1}'),
    (m.AnnotationTopic.KNOWLEDGE, "Known", "Known", "Known"),
    (m.AnnotationTopic.INTENT, {"intent": "x"}, {"intent": "x"}, {"intent": "x"}),
    (m.AnnotationTopic.BILLING, {"total": 1}, {"total": 1}, {"total": 1}),
])
def test_notes_are_said_in_the_shape_of_their_topic(
    topic: m.AnnotationTopic, given: Any, content: Any, parsed: Any
) -> None:
    (started() >> message() << frame("message_start")
        >> m.MessageAnnotated(message_id="msg_1", topic=topic, content=given)
        << frame("message_delta", type=topic, content=content, delta={"type": topic, "content": parsed}))


def test_a_picture_is_a_block() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    (started() >> message() << frame("message_start")
        >> block(m.BlockKind.IMAGE) << silence
        >> stop(m.BlockKind.IMAGE, image=m.ImagePart(url="data:image/png;base64,AAAA"))
        << frame("content_start", index=0, content_block={"type": "image", "source": source})
        << frame("content_stop", index=0)
        >> block(m.BlockKind.DATA, "d") << silence
        >> stop(m.BlockKind.DATA, "d", data=m.DataPart(type="plan")) << silence)


# -- asks -------------------------------------------------------------------------------------------------------------

def asked(ask: Any, request_id: str = "ask_1") -> m.InputRequested:
    return m.InputRequested(request_id=request_id, ask=ask, call_id=None, expires_at=1_700_000_600.0)


def test_a_confirmation_comes_before_the_end_of_the_message_that_needs_it() -> None:
    talk = called(started()) >> ended(stop=m.StopReason.TOOL_USE) << silence
    talk >> asked(m.PermissionAsk(call=CALL, description="Search the web?"))
    data = talk._said.pop(0)["payload"]["data"]
    assert data["type"] == data["delta"]["type"] == "confirmation_request"
    assert orjson.loads(data["content"]) == data["delta"]["content"]
    told = data["delta"]["content"]
    assert told.items() >= {
        "request_id": "ask_1", "session_id": "turn_1", "tool_name": "search", "description": 'search {"q":"x"}',
        "options": ["approve", "reject"], "question": "Search the web?", "confirmation_type": "yes_no"}.items()
    assert told["timeout"] == 599
    (talk >> m.TurnSuspended(pending=("ask_1",)) << silence
        >> m.InputResolved(request_id="ask_1", resolution=m.Resolution.GRANTED) << silence
        >> m.TurnResumed() << silence
        >> m.ToolReturned(call_id="call_1", content="ok") << silence
        >> message(2) << frame("message_delta", type="usage") << frame("message_stop") << frame("message_start")
        << frame("content_start", index=1) << frame("content_delta") << frame("content_stop"))


def test_nothing_hides_a_form_that_is_open() -> None:
    """A front end closes the form when a block begins."""
    (called(started(multi_message=False))
        >> ended(stop=m.StopReason.TOOL_USE) << silence
        >> asked(m.PermissionAsk(call=CALL)) << frame("message_delta", type="confirmation_request")
        >> m.ToolReturned(call_id="call_2", content="other") << silence
        >> m.InputResolved(request_id="ask_1", resolution=m.Resolution.GRANTED)
        << frame("content_start", index=1) << frame("content_delta", delta="other") << frame("content_stop", index=1))


def test_questions_are_a_form() -> None:
    questions = (
        m.Question(question="Which?", header="Colour", options=(m.Choice(label="Red", description="hot"),)),
        m.Question(question="Many?", multi_select=True, options=(m.Choice(label="A"), m.Choice(label="B"))),
        m.Question(question="Why?"),
    )
    talk = started() >> message() << frame("message_start") >> (KID, asked(m.QuestionAsk(questions=questions)))
    told = talk._said[0]["payload"]["data"]["delta"]["content"]
    assert told["confirmation_type"] == "form"
    assert [(q["id"], q["type"], q["options"]) for q in told["questions"]] == [
        ("0", "single_choice", ["Red"]), ("1", "multiple_choice", ["A", "B"]), ("2", "text_input", [])]


def test_an_ask_before_any_message_has_one_of_its_own() -> None:
    (started() >> asked(m.ClientToolAsk(call=CALL)) << frame("message_start") << frame("message_delta")
        >> OVER << frame("message_delta", type="usage") << frame("message_delta", type="billing")
        << frame("message_stop") << frame("session_end"))


def test_long_work_asks_whether_to_go_on() -> None:
    (started() >> asked(m.ContinuationAsk(turn=15, message="Go on?"))
        << frame("long_running_confirm", turn=15, message="Go on?") << silence)


ROLLBACK = m.RollbackAsk(
    task_id="task-1", error="broke", reason="a step failed",
    options=({"id": "step", "action": "undo", "target": "last"}, {"id": "all"}),
)


@pytest.mark.parametrize(("objects", "options"), [(False, ["undo: last", "all"]), (True, list(ROLLBACK.options))])
def test_a_rollback_is_offered_and_done(objects: bool, options: list[Any]) -> None:
    (started(rollback_objects=objects) >> asked(ROLLBACK)
        << frame("rollback_options", task_id="task-1", options=options, option_ids=["step", "all"],
                 error="broke", reason="a step failed")
        >> m.InputResolved(request_id="ask_1", resolution=m.Resolution.ANSWERED) << frame("rollback_completed"))


def test_a_rollback_nobody_wanted_is_not_done() -> None:
    (started() >> asked(ROLLBACK) << frame("rollback_options")
        >> m.InputResolved(request_id="ask_1", resolution=m.Resolution.EXPIRED) << silence)


@pytest.mark.parametrize("event", [
    message(), block(m.BlockKind.TEXT), delta(m.BlockKind.TEXT, "psst"), stop(m.BlockKind.TEXT, text="psst"), ended(),
    m.ToolReturned(call_id="c", content="x"),
    m.MessageAnnotated(message_id="m", topic=m.AnnotationTopic.PREFACE, content="x"),
])
def test_sub_agents_are_not_heard(event: m.AnyEvent) -> None:
    started() >> (KID, m.ScopeOpened(parent=m.ROOT)) << silence >> (KID, event) << silence
