"""Who carries a call out, and what a call that a server left open asks of people.

AAP's history: what was said, what the client was asked, and what it returned, in the order in which it happened.

A message that stands in history stays in its place and stays as it is; only the message that is being written grows.
"""

from msgspec import Struct

from gateway.model import (
    Answer,
    AnswerQuestion,
    AnyAsk,
    Content,
    ContinuationAsk,
    ContinueTurn,
    DecidePermission,
    PermissionAsk,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    format_answer,
)


class WireAnswer(Struct, frozen=True, kw_only=True):
    """An answer as AAP can carry it: the content of a tool message, or a decision."""

    content: Content = ""
    is_error: bool = False
    granted: bool | None = None
    reason: str | None = None


def wire_answer(ask: AnyAsk, answer: Answer) -> WireAnswer:
    """What an answer is to the call it is about; whatever is no answer to the ask takes it back."""
    match ask, answer:
        case PermissionAsk(), DecidePermission(granted=granted, reason=reason):
            denied = f"Tool call denied: {reason}" if reason else "Tool call denied"
            return WireAnswer(granted=granted, reason=reason, content="" if granted else denied, is_error=not granted)
        case PermissionAsk(), _:
            return WireAnswer(granted=False, reason="nobody decided", content="Tool call cancelled", is_error=True)
        case QuestionAsk(), AnswerQuestion():
            return WireAnswer(content=format_answer(ask, answer))
        case _, ReturnResult(content=content, is_error=is_error):
            return WireAnswer(content=content, is_error=is_error)
        case ContinuationAsk(), _:
            return WireAnswer(content="yes" if isinstance(answer, ContinueTurn) and answer.proceed else "no")
        case RollbackAsk(), _:
            return WireAnswer(content=(answer.option or "") if isinstance(answer, RollBack) else "")
    return WireAnswer(content="Tool call cancelled", is_error=True)


CANCELLED = "Tool call cancelled"
