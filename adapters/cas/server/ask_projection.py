"""Projects the input of people: messages, and answers to asks."""

from typing import Any

import gateway.model as m
from adapters.cas.asks import is_shown_by_call
from gateway.ports import NO_FRAMES, Frames

from .frame_writer import FrameWriter
from .stream_options import thread_id_of
from .turn_state import AnswerableAsk, TurnState

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


class AskProjection:
    """The commands of clients, the asks of agents and how they were settled."""

    def __init__(self, writer: FrameWriter, turn: TurnState) -> None:
        self._writer = writer
        self._turn = turn

    def accepted(self, record: m.Record, event: m.InputAccepted) -> Frames:
        command = event.command
        if isinstance(command, m.CustomCommand):
            return self._custom(record, command)
        if not isinstance(command, m.ANSWERS):
            return self._writer.write_if_visible(record, event)
        pending = self._turn.asks.get(command.request_id)  # type: ignore[union-attr]  # all answers have it
        if pending is None or not self._writer.is_visible(pending.scope_id):
            return NO_FRAMES
        thread = thread_id_of(record.session_id, pending.scope_id) if pending.scope_id != m.ROOT else None
        return self._writer.write(record, thread=thread, answers=pending.event_id, **_answer_names(command, pending))

    def _custom(self, record: m.Record, command: m.CustomCommand) -> Frames:
        """CAS has two custom commands; those of other dialects have no frames."""
        if command.name not in (OUTCOME_COMMAND, SYSTEM_COMMAND) or not self._writer.is_visible(m.ROOT):
            return NO_FRAMES
        if command.name == SYSTEM_COMMAND:
            return self._writer.write(record, "system.said", fields=command.payload)
        own = f"outc_{record.event_id.removeprefix('evt_')}"
        return self._writer.write(record, "outcome.defined", thread=command.payload.get("session_thread_id"),
                                  fields=command.payload, outcome_id=command.payload.get("outcome_id") or own)

    def requested(self, record: m.Record, event: m.InputRequested) -> Frames:
        shown = self._turn.calls.get(event.call_id or "") if is_shown_by_call(event.ask) else None
        self._turn.asks[event.request_id] = AnswerableAsk(shown or record.event_id, event.ask, record.scope_id)
        if (shown and isinstance(event.ask, m.QuestionAsk)) or not self._writer.is_visible(record.scope_id):
            return NO_FRAMES
        call = m.question_call(event.ask, event.request_id) if isinstance(event.ask, m.QuestionAsk) else None
        questions = call.input["questions"] if call else None
        return self._writer.write(record, questions=questions, how_to_answer=m.HOW_TO_ANSWER)

    def resolved(self, record: m.Record, event: m.InputResolved) -> Frames:
        pending = self._turn.asks.pop(event.request_id, None)
        if (
            pending is None
            or not isinstance(pending.ask, m.ContinuationAsk)
            or not self._writer.is_visible(pending.scope_id)
        ):
            return NO_FRAMES
        is_error = event.resolution in (m.Resolution.CANCELLED, m.Resolution.EXPIRED)
        return self._writer.write(record, "continuation.settled", answers=pending.event_id, words=str(event.resolution),
                                  is_error=is_error)


def _answer_names(command: object, pending: AnswerableAsk) -> dict[str, Any]:
    if isinstance(command, m.DecidePermission | m.ContinueTurn):
        yes = command.granted if isinstance(command, m.DecidePermission) else command.proceed
        return {"decision": m.Permission.ALLOW if yes else m.Permission.DENY}
    if isinstance(command, m.AnswerQuestion) and isinstance(pending.ask, m.QuestionAsk):
        return {"content": _content_as_text(command.said or m.format_answer(pending.ask, command))}
    if isinstance(command, m.ReturnResult):
        return {"content": _content_as_text(command.content)}
    return {"words": command.option or ""} if isinstance(command, m.RollBack) else {"words": ""}


def _content_as_text(content: m.Content) -> m.Content:
    """CAS keeps a result as blocks of text (the seed's event table); the agent gets the images, too."""
    return content if isinstance(content, str) else tuple(_part_as_text(part) for part in content)


def _part_as_text(part: m.AnyPart) -> m.AnyPart:
    if isinstance(part, m.ImagePart):
        return m.TextPart(text=m.image_markdown(part))
    return m.TextPart(text=f"[{part.name}]({part.url or part.file_id})") if isinstance(part, m.FilePart) else part
