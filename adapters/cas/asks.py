"""How CAS asks people, by a tool use, and what an answer to it means."""

import gateway.model as m


def is_shown_by_call(ask: m.AnyAsk) -> bool:
    """Whether the call that an ask is about shows the ask."""
    return isinstance(ask, m.PermissionAsk | m.ClientToolAsk) or (
        isinstance(ask, m.QuestionAsk) and m.is_question_call(ask.call)
    )


def ask_event_id(view: m.SessionView, ask: m.OpenAsk) -> str:
    """The id of the event that shows an ask; an answer has to name it."""
    place = view.call_places.get(ask.call_id or "") if is_shown_by_call(ask.ask) else None
    return m.event_id_of(view.session_id, ask.seq if place is None else place)


QUESTION_TOOL, CONTINUATION_TOOL, ROLLBACK_TOOL = "AskUserQuestion", "confirm_continue", "choose_rollback"
"""The names of the tool uses that stand for asks which CAS does not have."""
