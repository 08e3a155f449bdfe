"""What is asked, recognised: whatever our own servers would have put so, and a question where that is not certain."""

import pytest

from adapters.blade import asks
from adapters.blade.client.ask_readers import guess_ask, read_questions
from gateway.model import (
    AnyAsk,
    ClientToolAsk,
    ContinuationAsk,
    PermissionAsk,
    Question,
    QuestionAsk,
    RollbackAsk,
    ToolCall,
)

ASKING = ToolCall(call_id="tc_9", name="AskUserQuestion")
CALC, CLOCK = ToolCall(call_id="tc_1", name="calc"), ToolCall(call_id="tc_2", name="clock")


@pytest.mark.parametrize("ask", [
    PermissionAsk(call=CALC, description="Run calc?"),
    ClientToolAsk(call=CLOCK),
    ContinuationAsk(turn=1, message="Go on?"),
    RollbackAsk(task_id="tc_9", options=({"id": "step"}, {"id": "all"}), error="It broke."),
    QuestionAsk(questions=(Question(question="Which?"), Question(question="What?")), call=ASKING),
    QuestionAsk(questions=(Question(question="Which?", header="Permission"),), call=ASKING),
])
def test_an_ask_is_known_by_how_it_is_put(ask: AnyAsk) -> None:
    assert guess_ask(asks.questions_of(ask), ASKING, [CALC, CLOCK]) == ask


def test_a_permission_is_for_one_call_or_for_none() -> None:
    """What could be about either is left a question: nobody is to allow what they do not see."""
    said = asks.questions_of(PermissionAsk(call=CALC, description="May I?"))
    assert guess_ask(said, ASKING, [CALC, CLOCK]) == PermissionAsk(call=CALC, description="May I?")
    assert guess_ask(said, ASKING, []) == QuestionAsk(questions=said, call=ASKING)
    assert guess_ask(said, ASKING, [CLOCK]) == QuestionAsk(questions=said, call=ASKING)
    twice = asks.questions_of(PermissionAsk(call=CALC))
    other = ToolCall(call_id="tc_3", name="calc", input={"expression": "1/0"})
    assert isinstance(guess_ask(twice, ASKING, [CALC, other]), QuestionAsk)


def test_questions_are_read_with_all_their_choices() -> None:
    [question] = read_questions({"questions": [{"question": "Which?", "options": ["a", 7, {"label": "c"}]}, "?"]}, "x")
    assert [choice.label for choice in question.options] == ["a", "", "c"], "picks go by number"
    assert read_questions({"questions": "?"}, "Confirm")[0].question == "Confirm waits for an answer."
