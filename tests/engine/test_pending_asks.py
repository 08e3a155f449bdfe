"""Which answer fits which ask."""

import pytest

import gateway.model as m
from gateway.engine.pending_asks import PendingAsks
from gateway.errors import Invalid, NotPending

CALL = m.ToolCall(call_id="c", name="t")
QUESTIONS = m.QuestionAsk(questions=(
    m.Question(question="One?", options=(m.Choice(label="a"), m.Choice(label="b"))),
    m.Question(question="Many?", options=(m.Choice(label="x"), m.Choice(label="y")), multi_select=True),
))
ASKS = {
    "question": QUESTIONS,
    "permission": m.PermissionAsk(call=CALL),
    "client_tool": m.ClientToolAsk(call=CALL),
    "continuation": m.ContinuationAsk(turn=1, message="more?"),
    "rollback": m.RollbackAsk(task_id="t", options=()),
}
ANSWERS = {
    "question": m.AnswerQuestion(request_id="question", selections={"0": (1,), "1": (0, 1)}),
    "permission": m.DecidePermission(request_id="permission", granted=False),
    "client_tool": m.ReturnResult(request_id="client_tool"),
    "continuation": m.ContinueTurn(request_id="continuation"),
    "rollback": m.RollBack(request_id="rollback", option="o"),
}
RESOLUTIONS = {
    "question": m.Resolution.ANSWERED, "permission": m.Resolution.DENIED, "client_tool": m.Resolution.RETURNED,
    "continuation": m.Resolution.ANSWERED, "rollback": m.Resolution.ANSWERED,
}


@pytest.fixture
async def desk() -> PendingAsks:
    desk = PendingAsks()
    desk.open(ASKS)
    return desk


@pytest.mark.parametrize("asked", ASKS)
@pytest.mark.parametrize("answered", ANSWERS)
async def test_only_the_right_kind_of_answer_fits(desk: PendingAsks, asked: str, answered: str) -> None:
    fields = ANSWERS[answered].__struct_fields__
    answer = type(ANSWERS[answered])(**{f: getattr(ANSWERS[answered], f) for f in fields} | {"request_id": asked})
    if asked == answered:
        desk.check(answer)
        assert desk.settle(answer) is RESOLUTIONS[asked]
    else:
        with pytest.raises(Invalid, match=asked):
            desk.check(answer)


@pytest.mark.parametrize("asked", ASKS)
async def test_anything_can_be_withdrawn(desk: PendingAsks, asked: str) -> None:
    desk.check(m.Withdraw(request_id=asked))
    assert desk.settle(m.Withdraw(request_id=asked)) is m.Resolution.CANCELLED


@pytest.mark.parametrize(("selections", "custom", "complaint"), [
    ({}, {}, "question 0 is not answered"),
    ({"0": (0,)}, {}, "question 1 is not answered"),
    ({"0": (0, 1), "1": (0,)}, {}, "question 0 takes one choice"),
    ({"0": (2,), "1": (0,)}, {}, "no choice 2"),
    ({"0": (-1,), "1": (0,)}, {}, "no choice -1"),
    ({"0": (0,), "1": (0,), "2": (0,)}, {}, "no question 2"),
    ({"0": (0,)}, {"1": ""}, "question 1 is not answered"),
    ({"0": (0,)}, {"7": "x"}, "no question 7"),
])
async def test_an_answer_must_settle_every_question(
    desk: PendingAsks, selections: dict, custom: dict, complaint: str
) -> None:
    with pytest.raises(Invalid, match=complaint):
        desk.check(m.AnswerQuestion(request_id="question", selections=selections, custom=custom))
    assert "question" in desk.pending


async def test_free_text_is_an_answer(desk: PendingAsks) -> None:
    desk.check(m.AnswerQuestion(request_id="question", custom={"0": "neither", "1": "both"}))


async def test_what_is_settled_is_no_longer_pending(desk: PendingAsks) -> None:
    desk.settle(ANSWERS["rollback"])
    with pytest.raises(NotPending):
        desk.check(ANSWERS["rollback"])
    assert desk.settled == ("rollback",)
