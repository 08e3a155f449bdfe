"""CAS, outward: what people say and settle."""

from typing import Any

from adapters.cas.asks import is_shown_by_call
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
    format_answer,
    image_markdown,
    question_call,
)

from .frame_writer import AnswerableAsk, FrameWriter
from .previews import NO_FRAMES, Frames
from .stream_options import thread_id_of

OUTCOME_COMMAND, SYSTEM_COMMAND = "define_outcome", "system_message"

ASK_CUES = {
    "outcome.defined": ("outcome_id", "fields"),
    "system.said": ("fields",),
    "continuation.settled": ("answers", "words", "is_error"),
}
ASK_NAMES = {
    "input.accepted": ("answers", "decision", "words", "content"),
    "input.requested": ("questions", "how_to_answer"),
}


class AskProjection(FrameWriter):
    """Messages, asks and answers."""

    def _accepted(self, record: Record, event: InputAccepted) -> Frames:
        command = event.command
        if isinstance(command, CustomCommand):
            return self._custom(record, command)
        if not isinstance(command, ANSWERS):
            return self.write_if_visible(record, event)
        pending = self.turn.asks.get(command.request_id)  # type: ignore[union-attr]  # all answers have it
        if pending is None or not self.is_visible(pending.scope_id):
            return NO_FRAMES
        thread = thread_id_of(record.session_id, pending.scope_id) if pending.scope_id != ROOT else None
        return self.write(record, thread=thread, answers=pending.event_id, **_answer_names(command, pending))

    def _custom(self, record: Record, command: CustomCommand) -> Frames:
        """What other dialects have of their own is not told."""
        if command.name not in (OUTCOME_COMMAND, SYSTEM_COMMAND) or not self.is_visible(ROOT):
            return NO_FRAMES
        if command.name == SYSTEM_COMMAND:
            return self.write(record, "system.said", fields=command.payload)
        own = f"outc_{record.event_id.removeprefix('evt_')}"
        return self.write(record, "outcome.defined", thread=command.payload.get("session_thread_id"),
                         fields=command.payload, outcome_id=command.payload.get("outcome_id") or own)

    def _requested(self, record: Record, event: InputRequested) -> Frames:
        told = self.turn.calls.get(event.call_id or "") if is_shown_by_call(event.ask) else None
        self.turn.asks[event.request_id] = AnswerableAsk(told or record.event_id, event.ask, record.scope_id)
        if (told and isinstance(event.ask, QuestionAsk)) or not self.is_visible(record.scope_id):
            return NO_FRAMES
        asked = question_call(event.ask, event.request_id) if isinstance(event.ask, QuestionAsk) else None
        questions = asked.input["questions"] if asked else None
        return self.write(record, questions=questions, how_to_answer=HOW_TO_ANSWER)

    def _resolved(self, record: Record, event: InputResolved) -> Frames:
        pending = self.turn.asks.pop(event.request_id, None)
        if pending is None or not isinstance(pending.ask, ContinuationAsk) or not self.is_visible(pending.scope_id):
            return NO_FRAMES
        failed = event.resolution in (Resolution.CANCELLED, Resolution.EXPIRED)
        return self.write(record, "continuation.settled", answers=pending.event_id, words=str(event.resolution),
                         is_error=failed)


def _answer_names(command: Any, pending: AnswerableAsk) -> dict[str, Any]:
    if isinstance(command, DecidePermission | ContinueTurn):
        yes = command.granted if isinstance(command, DecidePermission) else command.proceed
        return {"decision": Permission.ALLOW if yes else Permission.DENY}
    if isinstance(command, AnswerQuestion) and isinstance(pending.ask, QuestionAsk):
        return {"content": _content_as_text(command.said or format_answer(pending.ask, command))}
    if isinstance(command, ReturnResult):
        return {"content": _content_as_text(command.content)}
    return {"words": command.option or ""} if isinstance(command, RollBack) else {"words": ""}


def _content_as_text(content: Content) -> Content:
    """A result is kept as blocks of text (the seed's event table); the agent has its pictures all the same."""
    return content if isinstance(content, str) else tuple(_part_as_text(part) for part in content)


def _part_as_text(part: AnyPart) -> AnyPart:
    if isinstance(part, ImagePart):
        return TextPart(text=image_markdown(part))
    return TextPart(text=f"[{part.name}]({part.url or part.file_id})") if isinstance(part, FilePart) else part
