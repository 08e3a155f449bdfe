"""How CAS asks people, by a tool use, and what an answer to it means."""

import gateway.model as m


def is_shown_by_call(ask: m.AnyAsk) -> bool:
    """Whether an ask was told by the call it is about."""
    return isinstance(ask, m.PermissionAsk | m.ClientToolAsk) or (
        isinstance(ask, m.QuestionAsk) and m.is_question_call(ask.call)
    )


def ask_event_id(view: m.SessionView, ask: m.OpenAsk) -> str:
    """The id of the event that an ask was told by, and that its answer has to name."""
    place = view.call_places.get(ask.call_id or "") if is_shown_by_call(ask.ask) else None
    return m.event_id_of(view.session_id, ask.seq if place is None else place)


QUESTION_TOOL, CONTINUATION_TOOL, ROLLBACK_TOOL = "AskUserQuestion", "confirm_continue", "choose_rollback"
"""Asks that are told as tool uses of these names, because CAS has no others."""
