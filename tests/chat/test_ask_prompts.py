"""What an agent asks, and what becomes of what a person says to it."""

import io
from typing import Any

import pytest

import gateway.model as m
from gateway.chat.ask_prompts import DECLINED, AskPrompter
from gateway.chat.terminal_input import InterruptWatcher, LinePrompt
from gateway.ports.remote import RemoteAsk
from tests.support.chat.scripted_server import RecordingScreen, ScriptedUser

CALL = m.ToolCall(call_id="c", name="calc", input={"a": 1})
COLOURS = (m.Choice(label="Red", description="like a poppy"), m.Choice(label="Blue"))
ONE = m.Question(question="Which?", options=COLOURS, header="Colour")
MANY = m.Question(question="Which ones?", options=COLOURS, multi_select=True)
FREE = m.Question(question="Why?")
PERMISSION = m.PermissionAsk(call=CALL, description="Run it?")
BACK = m.RollbackAsk(task_id="t", options=({"id": "one", "label": "First"}, {"id": "two"}), error="oops", reason="why")
LONG = m.ContinuationAsk(turn=1, message="Go on?")


def answered(ask: m.AnyAsk, *lines: str) -> tuple[Any, RecordingScreen, ScriptedUser]:
    board, person = RecordingScreen(), ScriptedUser(*lines)
    [(_, answer)] = AskPrompter(board, person).answers([RemoteAsk(ask=ask, ref="r")])
    return answer, board, person


@pytest.mark.parametrize(("question", "lines", "given"), [
    (ONE, ["2"], {"selections": {"0": (1,)}}),
    (ONE, ["green"], {"custom": {"0": "green"}}),
    (ONE, ["3", "0", "12", "1"], {"selections": {"0": (0,)}}),
    (MANY, ["1, 7", "1"], {"selections": {"0": (0,)}}),
    (ONE, ["3 of them"], {"custom": {"0": "3 of them"}}),
    (FREE, ["3"], {"custom": {"0": "3"}}),
    (ONE, ["1, 2", "", "1"], {"selections": {"0": (0,)}}),
    (MANY, ["2 1,2"], {"selections": {"0": (1, 0)}}),
    (FREE, ["", "because"], {"custom": {"0": "because"}}),
])
def test_a_question(question: m.Question, lines: list[str], given: dict[str, Any]) -> None:
    answer, _, person = answered(m.QuestionAsk(questions=(question,)), *lines)
    assert answer == m.AnswerQuestion(request_id="r", **given)
    assert person.lines == []


def test_a_question_is_shown_with_its_choices() -> None:
    _, board, person = answered(m.QuestionAsk(questions=(ONE, MANY)), "1", "1")
    assert board.shown[:3] == ["? Colour: Which?", "  1. Red - like a poppy", "  2. Blue"]
    assert person.labels == ["a number, or your own words: ", "numbers, or your own words: "]


def test_an_option_that_is_not_there_is_told() -> None:
    _, board, _ = answered(m.QuestionAsk(questions=(ONE,)), "7", "1")
    assert board.shown[3:] == ["there is no option 7: say 1 to 2"]
    _, board, _ = answered(BACK, "3", "x", "1")
    assert board.shown[4:] == ["there is no option 3: say 1 to 2", "type one number"]


def test_whoever_says_nothing_again_and_again_has_no_answer() -> None:
    answer, _, _ = answered(m.QuestionAsk(questions=(ONE,)), *[""] * 5)
    assert answer == m.Withdraw(request_id="r")


@pytest.mark.parametrize(("line", "granted", "reason"), [
    ("y", True, None), ("YES", True, None), ("", False, None), ("n", False, None), ("too risky", False, "too risky"),
])
def test_a_permission(line: str, granted: bool, reason: str | None) -> None:
    answer, board, _ = answered(PERMISSION, line)
    assert answer == m.DecidePermission(request_id="r", granted=granted, reason=reason)
    assert board.shown == ["? Run it?", '  calc {"a":1}']


def test_a_permission_that_nobody_has_put_into_words() -> None:
    _, board, _ = answered(m.PermissionAsk(call=PERMISSION.call), "y")
    assert board.shown == ['? May the agent call calc {"a":1}']


def test_nobody_is_to_allow_what_they_have_not_seen() -> None:
    words = "rm -rf /; " * 20
    call = m.ToolCall(call_id="c", name="shell", input={"cwd": "/tmp", "command": words})
    for ask in (m.PermissionAsk(call=call), m.ClientToolAsk(call=call)):
        _, board, _ = answered(ask, "no")
        assert board.shown[0].endswith(" shell")
        assert board.shown[1:] == ["  {", '    "cwd": "/tmp",', f'    "command": "{words}"', "  }"]



def test_a_tool_of_the_clients_own() -> None:
    assert answered(m.ClientToolAsk(call=CALL), "42")[0] == m.ReturnResult(request_id="r", content="42")
    assert answered(m.ClientToolAsk(call=CALL), " ")[0] == m.ReturnResult(
        request_id="r", content=DECLINED, is_error=True
    )


@pytest.mark.parametrize(("line", "proceed"), [("", True), ("y", True), ("n", False), ("stop", False)])
def test_whether_to_go_on(line: str, proceed: bool) -> None:
    assert answered(LONG, line)[0] == m.ContinueTurn(request_id="r", proceed=proceed)


@pytest.mark.parametrize(("lines", "option"), [(["2"], "two"), (["9", "1"], "one"), ([""], None), (["x"] * 5, None)])
def test_where_to_go_back_to(lines: list[str], option: str | None) -> None:
    answer, board, _ = answered(BACK, *lines)
    assert answer == m.RollBack(request_id="r", option=option)
    assert board.shown[:4] == ["? oops", "? why", "  1. First", "  2. two"]


def test_lines_of_a_pipe_are_what_somebody_would_have_typed() -> None:
    with InterruptWatcher() as bell:
        prompt = LinePrompt(bell, io.StringIO("one\r\ntwo"))
        assert [prompt.read("> "), prompt.read("> ")] == ["one", "two"]
        with pytest.raises(EOFError):
            prompt.read("> ")
