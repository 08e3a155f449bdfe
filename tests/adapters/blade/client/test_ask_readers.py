"""What is asked, recognised: whatever our own servers would have put so, and a question where that is not certain."""

import pytest

import gateway.model as m
from adapters.blade import asks
from adapters.blade.client.readers import guess_ask, read_call_questions

ASKING = m.ToolCall(call_id="tc_9", name="AskUserQuestion")
CALC, CLOCK = m.ToolCall(call_id="tc_1", name="calc"), m.ToolCall(call_id="tc_2", name="clock")


@pytest.mark.parametrize("ask", [
    m.PermissionAsk(call=CALC, description="Run calc?"),
    m.ClientToolAsk(call=CLOCK),
    m.ContinuationAsk(turn=1, message="Go on?"),
    m.RollbackAsk(task_id="tc_9", options=({"id": "step"}, {"id": "all"}), error="It broke."),
    m.QuestionAsk(questions=(m.Question(question="Which?"), m.Question(question="What?")), call=ASKING),
    m.QuestionAsk(questions=(m.Question(question="Which?", header="Permission"),), call=ASKING),
])
def test_an_ask_is_known_by_how_it_is_put(ask: m.AnyAsk) -> None:
    assert guess_ask(asks.questions_of(ask), ASKING, [CALC, CLOCK]) == ask


def test_a_permission_is_for_one_call_or_for_none() -> None:
    """What could be about either is left a question: nobody is to allow what they do not see."""
    said = asks.questions_of(m.PermissionAsk(call=CALC, description="May I?"))
    assert guess_ask(said, ASKING, [CALC, CLOCK]) == m.PermissionAsk(call=CALC, description="May I?")
    assert guess_ask(said, ASKING, []) == m.QuestionAsk(questions=said, call=ASKING)
    assert guess_ask(said, ASKING, [CLOCK]) == m.QuestionAsk(questions=said, call=ASKING)
    twice = asks.questions_of(m.PermissionAsk(call=CALC))
    other = m.ToolCall(call_id="tc_3", name="calc", input={"expression": "1/0"})
    assert isinstance(guess_ask(twice, ASKING, [CALC, other]), m.QuestionAsk)


def test_questions_are_read_with_all_their_choices() -> None:
    given = {"questions": [{"question": "Which?", "options": ["a", 7, {"label": "c"}]}, "?"]}
    [question] = read_call_questions(given, "x")
    assert [choice.label for choice in question.options] == ["a", "", "c"], "picks go by number"
    assert read_call_questions({"questions": "?"}, "Confirm")[0].question == "Confirm waits for an answer."
