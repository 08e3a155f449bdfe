"""CAS servers whose turns are told wrongly: ids, order, ends, and parts."""

import asyncio
from typing import Any

from conformance.faults.cas.freedoms import OtherEndings
from conformance.faults.cas.memory import Body, Talk, mint
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault

ONE_ID, RESUMED = "turns.a_turn_has_one_id", "turns.a_resumed_turn_keeps_its_id"
ORDER, WHY, SPANS = "turns.a_turn_is_told_in_order", "turns.idle_says_why", "turns.spans_name_model_and_usage"
CUT = "turns.an_end_before_its_time_says_so"
SAID, TOOL = "turns.thinking_and_text_have_their_fields", "turns.an_allowed_tool_runs"
ALLOWED, CUSTOM = "asks.an_allowed_call_is_run", "asks.a_custom_tool_is_answered"


class _Changing(CasServer):
    """Changes events of one type as they are stored."""

    kind: str

    def changed(self, event: Body) -> Body:
        return event

    def store(self, talk: Talk, event: Body) -> None:
        super().store(talk, self.changed(dict(event)) if event["type"] == self.kind else event)


@fault("CAS-EV-10", cases=f"{ONE_ID} {RESUMED}")
class IdleOfNoTurn(_Changing):
    """status_idle has no turn_id."""

    kind = "session.status_idle"

    def changed(self, event: Body) -> Body:
        event.pop("turn_id", None)
        return event


@fault("CAS-EV-10", cases=ONE_ID)
class OneTurnForAll(CasServer):
    """All turns have the same id."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        return super().event(talk, kind, **told) | {"turn_id": "turn_1"}


@fault("CAS-EV-10", cases=RESUMED)
class NewTurnWhenResumed(CasServer):
    """A turn that goes on has another id."""

    def go(self, talk: Talk) -> None:
        if talk.is_waiting:
            talk.turn_id = mint("turn")
        super().go(talk)


@fault("CAS-EV-12", cases=ORDER)
class StartsUntold(_Changing):
    """A turn begins without status_running."""

    kind = "session.status_running"

    def changed(self, event: Body) -> Body:
        return event | {"type": "session.updated"}


@fault("CAS-EV-12", cases=ORDER)
class SpeaksUnasked(CasServer):
    """The agent speaks outside of model requests."""

    def open_span(self, talk: Talk) -> None:
        return None


@fault("CAS-EV-12", "CAS-EV-17", cases=f"{ORDER} {SPANS}")
class SpansLeftOpen(CasServer):
    """Model requests do not end."""

    def close_span(self, talk: Talk, is_error: bool = False) -> None:
        return None


@fault("CAS-EV-17", cases=SPANS)
class SpansEndOthers(_Changing):
    """The end of a span names a start that was not."""

    kind = "span.model_request_end"

    def changed(self, event: Body) -> Body:
        return event | {"model_request_start_id": mint("evt")}


@fault("CAS-EV-17", cases=SPANS)
class ModelUnnamed(_Changing):
    """The model of a request is not named."""

    kind = "span.model_request_start"

    def changed(self, event: Body) -> Body:
        del event["model"]
        return event


@fault("CAS-EV-13", cases=WHY)
class UsageUntold(_Changing):
    """status_idle has no usage."""

    kind = "session.status_idle"

    def changed(self, event: Body) -> Body:
        del event["usage"]
        return event


@fault("CAS-EV-13", cases=WHY)
class ReasonAsText(_Changing):
    """The stop reason is a string."""

    kind = "session.status_idle"

    def changed(self, event: Body) -> Body:
        return event | {"stop_reason": event["stop_reason"]["type"]}


@fault("CAS-EV-13", "CAS-EV-16", cases=f"{WHY} asks.every_pending_call_is_listed asks.all_can_be_answered_at_once")
class PendingUnlisted(_Changing):
    """requires_action has no event_ids."""

    kind = "session.status_idle"

    def changed(self, event: Body) -> Body:
        return event | {"stop_reason": {"type": event["stop_reason"]["type"]}}


class _Ending(CasServer):
    """Says that turns came to their natural end, though they did not."""

    cut: tuple[str, ...]

    def idle(self, talk: Talk, reason: Body) -> Body:
        return super().idle(talk, {"type": "end_turn"} if reason["type"] in self.cut else reason)


@fault("CAS-EV-20", cases=CUT)
class FailuresEnd(_Ending):
    """A turn that failed says end_turn."""

    cut = ("error",)


@fault("CAS-EV-20", cases=CUT)
class RefusalsEnd(_Ending):
    """A turn that was refused says end_turn."""

    cut = ("refusal",)


@fault("CAS-EV-20", cases=CUT)
class CutAnswersEnd(_Ending):
    """A turn that was cut off for its length says end_turn."""

    cut = ("max_tokens",)


@fault("CAS-EV-20", cases=CUT)
class InterruptedTurnsEnd(_Ending):
    """A turn that was interrupted says end_turn."""

    cut = ("cancelled",)


@fault("CAS-EV-12", cases="turns.a_message_in_place_of_an_answer_has_a_turn_of_its_own")
class LateEnds(OtherEndings):
    """The end of a turn that a message took the place of is told again after the message."""

    given_up: str | None = None

    async def give_up(self, talk: Talk, task: "asyncio.Task[None]") -> None:
        self.given_up = talk.turn_id
        await super().give_up(talk, task)

    def hear(self, talk: Talk, event: Body) -> Body:
        stored = super().hear(talk, event)
        if self.given_up is not None:
            self.store(talk, self.idle(talk, {"type": "cancelled"}) | {"turn_id": self.given_up})
        return stored


@fault("CAS-EV-14", cases=SAID)
class ThoughtsAsText(_Changing):
    """A thought has text instead of thinking."""

    kind = "agent.thinking"

    def changed(self, event: Body) -> Body:
        return event | {"text": event.pop("thinking")}


@fault("CAS-EV-14", cases=SAID)
class MessagesAsStrings(_Changing):
    """The content of a message is a string."""

    kind = "agent.message"

    def changed(self, event: Body) -> Body:
        return event | {"content": event["content"][0]["text"]}


@fault("CAS-EV-14", cases=f"{TOOL} {ALLOWED}")
class PermissionUntold(_Changing):
    """A tool call does not say whether it is allowed."""

    kind = "agent.tool_use"

    def changed(self, event: Body) -> Body:
        del event["evaluated_permission"]
        return event


@fault("CAS-EV-14", cases=CUSTOM)
class CustomInputAsText(_Changing):
    """The input of a custom tool is a string."""

    kind = "agent.custom_tool_use"

    def changed(self, event: Body) -> Body:
        return event | {"input": str(event["input"])}


@fault("CAS-EV-15", cases=f"{TOOL} {ALLOWED}")
class ResultsOfNothing(_Changing):
    """A result names a call that was not made."""

    kind = "agent.tool_result"

    def changed(self, event: Body) -> Body:
        return event | {"tool_use_id": mint("evt")}


@fault("CAS-EV-15", cases="asks.an_answer_names_the_event")
class AnswersRenamed(CasServer):
    """An answer comes back with another id of the call."""

    def hear_answer(self, talk: Talk, event: Body) -> Body:
        stored = super().hear_answer(talk, event)
        return stored | ({"custom_tool_use_id": mint("evt")} if "custom_tool_use_id" in stored else {})
