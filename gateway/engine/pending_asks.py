"""Open asks: which answer fits which ask, and when all of a turn's asks are settled."""

import asyncio

import gateway.model as m
from gateway.errors import Invalid, NotPending

ANSWER_TYPES: dict[type[m.Ask], type[m.Command]] = {
    m.QuestionAsk: m.AnswerQuestion,
    m.PermissionAsk: m.DecidePermission,
    m.ClientToolAsk: m.ReturnResult,
    m.ContinuationAsk: m.ContinueTurn,
    m.RollbackAsk: m.RollBack,
}


class PendingAsks:
    """The asks that one turn waits for; an ask is settled once, and a second answer changes nothing."""

    def __init__(self) -> None:
        self._open: dict[str, m.AnyAsk] = {}
        self._answers: dict[str, m.Answer] = {}
        self._all_settled: asyncio.Future[None] | None = None

    @property
    def pending(self) -> tuple[str, ...]:
        return tuple(self._open)

    @property
    def settled(self) -> tuple[str, ...]:
        return tuple(self._answers)

    @property
    def given(self) -> dict[str, m.Answer]:
        return self._answers

    def open(self, asks: dict[str, m.AnyAsk], answers: dict[str, m.Answer] | None = None) -> None:
        """Wait for these asks, of which some may be answered already."""
        self._answers = answers or {}
        self._open = {request_id: ask for request_id, ask in asks.items() if request_id not in self._answers}
        self._all_settled = asyncio.get_running_loop().create_future()

    async def answers(self) -> dict[str, m.Answer]:
        """Wait until every ask is settled."""
        assert self._all_settled is not None, "nothing was asked"
        await self._all_settled
        return self._answers

    def check(self, answer: m.Answer) -> None:
        """Refuse an answer to no open ask, or one that does not fit its ask."""
        ask = self._open.get(answer.request_id)
        if ask is None:
            raise NotPending(f"nothing is pending under '{answer.request_id}'")
        if not isinstance(answer, (ANSWER_TYPES[type(ask)], m.Withdraw)):
            raise Invalid(f"a {ask.kind} cannot be settled by {answer.kind}")
        if isinstance(answer, m.AnswerQuestion) and isinstance(ask, m.QuestionAsk):
            _check_answers(ask, answer)

    def settle(self, answer: m.Answer) -> m.Resolution:
        del self._open[answer.request_id]
        self._answers[answer.request_id] = answer
        return m.resolution_of(answer)

    def resume(self) -> None:
        """Let the backend go on; called when no ask is pending."""
        if self._all_settled is not None and not self._all_settled.done():
            self._all_settled.set_result(None)


def _check_answers(ask: m.QuestionAsk, answer: m.AnswerQuestion) -> None:
    questions = {str(number): question for number, question in enumerate(ask.questions)}
    for number in (*answer.selections, *answer.custom):
        if number not in questions:
            raise Invalid(f"there is no question {number}; there are {len(questions)}, counted from 0")
    for number, question in questions.items():
        _check_picks(number, question, answer)


def _check_picks(number: str, question: m.Question, answer: m.AnswerQuestion) -> None:
    picks = answer.selections.get(number, ())
    if not picks and not answer.custom.get(number):
        raise Invalid(f"question {number} is not answered; give a selection or custom text")
    if len(picks) > 1 and not question.multi_select:
        raise Invalid(f"question {number} takes one choice, not {len(picks)}")
    for pick in picks:
        if not 0 <= pick < len(question.options):
            raise Invalid(f"question {number} has no choice {pick}; its choices are 0 to {len(question.options) - 1}")
