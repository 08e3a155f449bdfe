"""How AAP asks people, by tool calls that are left open, and what an answer to such a call means."""

from msgspec import Struct

import gateway.model as m

CANCELLED = "Tool call cancelled"


class WireAnswer(Struct, frozen=True, kw_only=True):
    """An answer as AAP can carry it: the content of a tool message, or a decision."""

    content: m.Content = ""
    is_error: bool = False
    granted: bool | None = None
    reason: str | None = None


def wire_answer(ask: m.AnyAsk, answer: m.Answer) -> WireAnswer:
    """What an answer means for the call that it is about; a command that does not answer the ask cancels the call."""
    match ask, answer:
        case m.PermissionAsk(), m.DecidePermission(granted=granted, reason=reason):
            denied = f"Tool call denied: {reason}" if reason else "Tool call denied"
            return WireAnswer(granted=granted, reason=reason, content="" if granted else denied, is_error=not granted)
        case m.PermissionAsk(), _:
            return WireAnswer(granted=False, reason="nobody decided", content=CANCELLED, is_error=True)
        case m.QuestionAsk(), m.AnswerQuestion():
            return WireAnswer(content=m.format_answer(ask, answer))
        case _, m.ReturnResult(content=content, is_error=is_error):
            return WireAnswer(content=content, is_error=is_error)
        case m.ContinuationAsk(), _:
            return WireAnswer(content="yes" if isinstance(answer, m.ContinueTurn) and answer.proceed else "no")
        case m.RollbackAsk(), _:
            return WireAnswer(content=(answer.option or "") if isinstance(answer, m.RollBack) else "")
    return WireAnswer(content=CANCELLED, is_error=True)
