"""Blade's small parts: names, questions, blocks, turns, bodies, and what clients may send."""

from typing import Any

import pytest
from pydantic import ValidationError

import gateway.model as m
from adapters.blade import asks, wire
from adapters.blade.server import inbound, turn_state, views
from adapters.blade.server.session_projection import command_seq
from adapters.blade.server.socket import WrongAnswer, final_result, refusal_name, run_id_of_receipt
from gateway.errors import Busy, Invalid, NotFound, NotPending, Unsupported
from gateway.ports import Receipt
from tests.support.dialect_tables import table
from tests.support.dialects.blade.messages import listed_messages

CALL = m.ToolCall(call_id="call_1", name="calc")


# -- names ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("house", "wire_id"), [
    ("call_1f", "tc_1f"), ("tc_1f", "tc_1f"), ("ask_2", "tc_2"), ("toolu_01", "tc_toolu_01"), ("", "tc_"),
])
def test_ids_have_the_prefix_that_clients_know(house: str, wire_id: str) -> None:
    assert turn_state.wire_call_id(house) == wire_id


def test_a_sub_agent_has_a_loop_of_its_own() -> None:
    loop = turn_state.make_loop("scope_1", "root", "call_7", "Helper")
    assert (loop.fork, loop.title, len(loop.loop_id)) == ("tc_7", "Helper", 14)
    alone = turn_state.make_loop("scope_1", "root", None, None)
    assert (alone.fork, alone.loop_id) == ("tc_1", loop.loop_id)


def test_a_chat_goes_by_the_command_that_began_it() -> None:
    accepted = m.Record(seq=9, at=1.0, session_id="sess_ab", event=m.InputAccepted(
        command_id="c", command=m.SendMessage(content="")))
    assert run_id_of_receipt("sess_ab", Receipt("turn_1", (accepted,), 9, True)) == "chat_ab_9"


def test_the_name_of_a_chat_says_where_it_began() -> None:
    assert command_seq("sess_ab", "chat_ab_9") == 9
    numbers = ("09", "-9", "٩", "9" * 5000, "")
    for wrong in (None, 9, "", "nonsense", "chat_ac_9", *(f"chat_ab_{number}" for number in numbers)):
        assert command_seq("sess_ab", wrong) == 0


# -- words held back --------------------------------------------------------------------------------------------------

def test_words_wait_longer_in_a_long_turn() -> None:
    turn = turn_state.TurnEntry("msg_1", 0, turn_state.Loop(), "root", "assistant", 0.0)  # type: ignore[arg-type]
    turn.hold("text", "a", 1, 5.0)
    assert turn.is_much
    assert turn.release() == "a"
    turn.size = 10_000
    turn.hold("text", "b" * 10, 2, 6.0)
    assert not turn.is_much
    assert turn.due == pytest.approx(6.0 + 3 * turn_state.PAUSE)
    turn.hold("text", "c" * 400, 3, 6.1)
    assert turn.is_much
    assert (turn.release(), turn.text) == ("b" * 10 + "c" * 400, "a" + "b" * 10 + "c" * 400)


# -- asking -----------------------------------------------------------------------------------------------------------

def open_ask(ask: Any, call_id: str | None = None) -> m.OpenAsk:
    return m.OpenAsk(request_id="ask_1", ask=ask, seq=1, at=0.0, turn_id="t", scope_id="root", call_id=call_id)


def test_an_ask_goes_by_its_own_call_or_by_the_one_it_is_about() -> None:
    ask = open_ask(m.PermissionAsk(call=CALL), "call_9")
    view = m.SessionView(session_id="s", asks={"ask_1": ask})
    assert inbound.pending_ask("tc_1", view) is ask
    assert inbound.pending_ask("tc_9", view) is ask
    with pytest.raises(NotPending):
        inbound.pending_ask("tc_2", view)


def test_picks_and_answers_are_two_ways_to_say_the_same() -> None:
    rollback = m.RollbackAsk(task_id="t", options=({"id": "a"}, {"target": "b"}, {"action": "c"}, {"x": 1}))
    given = asks.answer_bindings(open_ask(rollback), {"0": (1,)}, {})
    assert given == {"option": "b"}
    assert asks.picks_of_answer(rollback, m.RollBack(request_id="r", option="c")) == ({"0": (2,)}, {})
    assert asks.picks_of_answer(rollback, m.RollBack(request_id="r", option="z")) == ({}, {"0": "z"})
    assert asks.picks_of_answer(rollback, m.RollBack(request_id="r")) == ({}, {"0": "none"})
    assert asks.answer_bindings(open_ask(rollback), {}, {"0": " None "}) == {"option": None}
    called_so = m.RollbackAsk(task_id="t", options=({"id": "none"},))
    assert asks.answer_bindings(open_ask(called_so), {}, {"0": "none"}) == {"option": "none"}
    permission = m.PermissionAsk(call=CALL)
    assert asks.answer_bindings(open_ask(permission), {"0": (1,)}, {"0": "no"}) == {"granted": False, "reason": "no"}
    assert asks.picks_of_answer(permission, m.DecidePermission(request_id="r", granted=False, reason="no")) == (
        {"0": (1,)}, {"0": "no"})
    assert asks.picks_of_answer(permission, m.Withdraw(request_id="r")) is None
    question = m.QuestionAsk(questions=(m.Question(question="?"),))
    assert asks.picks_of_answer(question, m.AnswerQuestion(request_id="r", custom={"0": "x"})) == ({}, {"0": "x"})
    assert asks.picks_in_words(question.questions, {"0": (4,)}, {"0": "x"}) == "?: x"


def test_only_a_call_with_questions_asks_by_itself() -> None:
    assert asks.is_ask_call(m.ToolCall(call_id="c", name="AskUserQuestion", input={"questions": []}))
    assert not asks.is_ask_call(m.ToolCall(call_id="c", name="AskUserQuestion", input={}))
    assert not asks.is_ask_call(CALL)
    assert turn_state.OpenTurns().entries == 0


# -- blocks -----------------------------------------------------------------------------------------------------------

def test_what_a_person_sent_is_named() -> None:
    parts = (m.TextPart(text="hi"), m.TextPart(text=""), m.ImagePart(url="data:image/png;base64,AAAA"),
             m.FilePart(name="a.txt"), m.DataPart(type="x"))
    assert [block.content for block in turn_state.blocks_of_parts(parts)] == ["hi", "![image](data:)", "[a.txt]"]


def test_a_page_gets_only_what_has_a_shape() -> None:
    call = turn_state.TurnCall("tc_1", "x", meta={"bridge": {"action": "a"}, "ui": "no object"})
    assert [block.type for block in turn_state.meta_blocks(call)] == ["tool_bridge"]
    assert turn_state.data_block("nobody_knows", "words", None).content == "words"


@pytest.mark.parametrize(("content", "result"), [
    ('{"ok": true}', {"ok": True, "_meta": {"x": 1}}), ("words", {"content": "words", "_meta": {"x": 1}}),
    ("[1]", {"content": [1], "_meta": {"x": 1}}),
])
def test_a_result_for_the_page_is_an_object(content: str, result: Any) -> None:
    call = turn_state.TurnCall("tc_1", "x", content=content, meta={"x": 1})
    assert views.result(table("blade"), call) == result


def test_what_was_rewound_is_not_shown() -> None:
    events: list[Any] = [
        m.InputAccepted(command_id="cmd_1", command=m.SendMessage(content="one")), m.TurnStarted(command_id="cmd_1"),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
        m.InputAccepted(command_id="cmd_2", command=m.SendMessage(content="two")), m.TurnStarted(command_id="cmd_2"),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
        m.SessionRewound(to_seq=3),
    ]
    records = [m.Record(seq=n, at=float(n), session_id="s", event=event) for n, event in enumerate(events, 1)]
    assert [turn["turn_id"] for turn in listed_messages(records)] == ["turn_1"]


@pytest.mark.parametrize(("status", "ended", "word"), [
    (m.SessionStatus.IDLE, None, "created"), (m.SessionStatus.IDLE, m.Outcome.COMPLETED, "completed"),
    (m.SessionStatus.IDLE, m.Outcome.FAILED, "failed"), (m.SessionStatus.IDLE, m.Outcome.INTERRUPTED, "interrupted"),
    (m.SessionStatus.RUNNING, m.Outcome.FAILED, "running"), (m.SessionStatus.SUSPENDED, None, "waiting_for_input"),
])
def test_a_session_has_a_status(status: m.SessionStatus, ended: m.Outcome | None, word: str) -> None:
    over = m.TurnEnded(outcome=ended, stop_reason=m.StopReason.END_TURN) if ended else None
    view = m.SessionView(session_id="s", status=status, ended=over)
    assert views.session_body(table("blade"), view)["status"] == word


# -- what clients send ------------------------------------------------------------------------------------------------

def test_null_is_as_good_as_absent() -> None:
    sent = {"message": "hi", "mode": None, "model": None, "headless": None, "output_schema": None, "runtime_env": None,
            "askuser_answer": None, "whatif": {"from_step": 1}}
    assert wire.ChatSend.model_validate(sent) == wire.ChatSend(message="hi")
    answer = wire.AskUserAnswer.model_validate({"tool_call_id": "x", "selections": {0: [1]}, "custom": None})
    assert (answer.selections, answer.custom) == ({"0": [1]}, {})


@pytest.mark.parametrize("sent", [
    {"message": 5}, {"message": [{"type": "text"}]}, {"message": "x", "headless": "yes"}, {"message": "x", "mode": "x"},
    {"message": "", "askuser_answer": {"selections": {}}}, {"message": "", "askuser_answer": {
        "tool_call_id": "x", "selections": {"0": [True]}}},
    {"message": "x", "runtime_env": {"A": 1}},
])
def test_nonsense_is_refused(sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        wire.ChatSend.model_validate(sent)


def test_pictures_are_for_agents_that_take_them() -> None:
    body = wire.ChatSend.model_validate({"message": [
        {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]})
    takes = m.AgentCard(name="a", capabilities=m.AgentCapabilities(images=("http",)))
    command = inbound.message_of(body, [], {}, takes, table("blade"))
    assert command == m.SendMessage(content=(m.TextPart(text="a"), m.ImagePart(url="https://x/y.png")))
    with pytest.raises(Unsupported):
        inbound.message_of(body, [], {}, m.AgentCard(name="a"), table("blade"))


def test_files_are_decoded_once() -> None:
    message = wire.ChatSend.model_validate({"message": [
        {"type": "file", "name": "a.txt", "data": "dGVh"},
        {"type": "file", "name": "b", "data": "data:x/y;base64,dGVh"},
    ]}).message
    assert [(up.name, up.media_type, up.content) for up in inbound.uploads_of(message)] == [
        ("a.txt", "text/plain", b"tea"), ("b", "application/octet-stream", b"tea"),
    ]
    assert list(inbound.uploads_of("words")) == []


def test_every_refusal_has_its_words() -> None:
    assert [refusal_name(error) for error in (NotFound(""), Busy(""), WrongAnswer(Invalid("")), Invalid(""))] == [
        "refusal.access", "refusal.busy", "refusal.answer", "refusal",
    ]
    assert final_result.__doc__


def test_a_card_whose_address_a_browser_would_run_is_not_handed_to_the_page() -> None:
    for address in ("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//x", 5):
        assert turn_state.page_meta({"ui": {"resourceUri": address}, "bridge": {"a": 1}}) == {"bridge": {"a": 1}}
    for meta in ({"ui": {"resourceUri": "HTTPS://x"}}, {"ui": {"resourceHTML": "<p>"}}, {"ui": 5}, {}, None):
        assert turn_state.page_meta(meta) == meta
