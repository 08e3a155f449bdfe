"""CAS, outward: what people say and settle."""

from typing import Any

from gateway.model import (
    ANSWERS,
    HOW_TO_ANSWER,
    ROOT,
    AnswerQuestion,
    AnyPart,
    Content,
    ContinuationAsk,
    ContinueTurn,
    CustomCommand,
    DecidePermission,
    FilePart,
    ImagePart,
    InputAccepted,
    InputRequested,
    InputResolved,
    Permission,
    QuestionAsk,
    Record,
    Resolution,
    ReturnResult,
    RollBack,
    TextPart,
    as_call,
    in_markdown,
    in_words,
)

from .inbound import told_by_call
from .previews import SILENCE, Frames
from .reading import thread_id_of
from .turn import Pending
from .voice import Voice

OUTCOME, SYSTEM = "define_outcome", "system_message"

CUES = {
    "outcome.defined": ("outcome_id", "fields"),
    "system.said": ("fields",),
    "continuation.settled": ("answers", "words", "is_error"),
}
NAMES = {
    "input.accepted": ("answers", "decision", "words", "content"),
    "input.requested": ("questions", "how_to_answer"),
}


class Asking(Voice):
    """Messages, asks and answers."""

    def _accepted(self, record: Record, event: InputAccepted) -> Frames:
        command = event.command
        if isinstance(command, CustomCommand):
            return self._custom(record, command)
        if not isinstance(command, ANSWERS):
            return self._plain(record, event)
        pending = self.turn.asks.get(command.request_id)  # type: ignore[union-attr]  # all answers have it
        if pending is None or not self._heard(pending.scope_id):
            return SILENCE
        thread = thread_id_of(record.session_id, pending.scope_id) if pending.scope_id != ROOT else None
        return self._say(record, thread=thread, answers=pending.event_id, **_answer_names(command, pending))

    def _custom(self, record: Record, command: CustomCommand) -> Frames:
        """What other dialects have of their own is not told."""
        if command.name not in (OUTCOME, SYSTEM) or not self._heard(ROOT):
            return SILENCE
        if command.name == SYSTEM:
            return self._say(record, "system.said", fields=command.payload)
        own = f"outc_{record.event_id.removeprefix('evt_')}"
        return self._say(record, "outcome.defined", thread=command.payload.get("session_thread_id"),
                         fields=command.payload, outcome_id=command.payload.get("outcome_id") or own)

    def _requested(self, record: Record, event: InputRequested) -> Frames:
        told = self.turn.calls.get(event.call_id or "") if told_by_call(event.ask) else None
        self.turn.asks[event.request_id] = Pending(told or record.event_id, event.ask, record.scope_id)
        if (told and isinstance(event.ask, QuestionAsk)) or not self._heard(record.scope_id):
            return SILENCE
        asked = as_call(event.ask, event.request_id) if isinstance(event.ask, QuestionAsk) else None
        questions = asked.input["questions"] if asked else None
        return self._say(record, questions=questions, how_to_answer=HOW_TO_ANSWER)

    def _resolved(self, record: Record, event: InputResolved) -> Frames:
        pending = self.turn.asks.pop(event.request_id, None)
        if pending is None or not isinstance(pending.ask, ContinuationAsk) or not self._heard(pending.scope_id):
            return SILENCE
        failed = event.resolution in (Resolution.CANCELLED, Resolution.EXPIRED)
        return self._say(record, "continuation.settled", answers=pending.event_id, words=str(event.resolution),
                         is_error=failed)


def _answer_names(command: Any, pending: Pending) -> dict[str, Any]:
    if isinstance(command, DecidePermission | ContinueTurn):
        yes = command.granted if isinstance(command, DecidePermission) else command.proceed
        return {"decision": Permission.ALLOW if yes else Permission.DENY}
    if isinstance(command, AnswerQuestion) and isinstance(pending.ask, QuestionAsk):
        return {"content": _in_texts(command.said or in_words(pending.ask, command))}
    if isinstance(command, ReturnResult):
        return {"content": _in_texts(command.content)}
    return {"words": command.option or ""} if isinstance(command, RollBack) else {"words": ""}


def _in_texts(content: Content) -> Content:
    """A result is kept as blocks of text (the seed's event table); the agent has its pictures all the same."""
    return content if isinstance(content, str) else tuple(_in_text(part) for part in content)


def _in_text(part: AnyPart) -> AnyPart:
    if isinstance(part, ImagePart):
        return TextPart(text=in_markdown(part))
    return TextPart(text=f"[{part.name}]({part.url or part.file_id})") if isinstance(part, FilePart) else part
