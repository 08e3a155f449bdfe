"""Who carries a call out, and what a call that a server left open asks of people.

AAP's history: what was said, what the client was asked, and what it returned, in the order in which it happened.

A message that stands in history stays in its place and stays as it is; only the message that is being written grows.
"""

from msgspec import Struct

import gateway.model as m


class WireAnswer(Struct, frozen=True, kw_only=True):
    """An answer as AAP can carry it: the content of a tool message, or a decision."""

    content: m.Content = ""
    is_error: bool = False
    granted: bool | None = None
    reason: str | None = None


def wire_answer(ask: m.AnyAsk, answer: m.Answer) -> WireAnswer:
    """What an answer is to the call it is about; whatever is no answer to the ask takes it back."""
    match ask, answer:
        case m.PermissionAsk(), m.DecidePermission(granted=granted, reason=reason):
            denied = f"Tool call denied: {reason}" if reason else "Tool call denied"
            return WireAnswer(granted=granted, reason=reason, content="" if granted else denied, is_error=not granted)
        case m.PermissionAsk(), _:
            return WireAnswer(granted=False, reason="nobody decided", content="Tool call cancelled", is_error=True)
        case m.QuestionAsk(), m.AnswerQuestion():
            return WireAnswer(content=m.format_answer(ask, answer))
        case _, m.ReturnResult(content=content, is_error=is_error):
            return WireAnswer(content=content, is_error=is_error)
        case m.ContinuationAsk(), _:
            return WireAnswer(content="yes" if isinstance(answer, m.ContinueTurn) and answer.proceed else "no")
        case m.RollbackAsk(), _:
            return WireAnswer(content=(answer.option or "") if isinstance(answer, m.RollBack) else "")
    return WireAnswer(content="Tool call cancelled", is_error=True)


CANCELLED = "Tool call cancelled"
