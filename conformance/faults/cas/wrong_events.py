"""CAS servers that take, keep or list the events of clients wrongly."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body, Talk, mint
from conformance.faults.cas.server import CasServer
from conformance.faults.damage import without_nulls
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, as_blocks, text_of

FIELDS, ORDER = "events.every_event_has_its_fields", "events.events_are_accepted_in_order"
STARTS, LISTED = "events.a_message_starts_a_turn", "events.events_are_listed_in_order"
NOTHING = "events.an_interrupt_of_nothing_is_harmless"
CARRIES = "events.an_outcome_carries_any_json"
OUTCOME = "events.an_outcome_keeps_what_it_is_given"


@fault("CAS-EV-01", cases=FIELDS)
class NoSchemaVersion(CasServer):
    """User events have no schema_version."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        event = super().event(talk, kind, **told)
        event.pop("schema_version", None)
        return event


@fault("CAS-EV-01", cases=FIELDS)
class ProcessedLater(CasServer):
    """Events of the agent have no processed_at."""

    def store(self, talk: Talk, event: Body) -> None:
        is_agents = event["type"].startswith("agent.")
        super().store(talk, {name: event[name] for name in event if not is_agents or name != "processed_at"})


@fault("CAS-EV-01", cases=FIELDS)
class ListedAnew(CasServer):
    """Listed events have other ids than streamed ones."""

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        return [event | {"id": mint("evt")} for event in super().chosen(request, events)]


@fault("CAS-EV-02", cases=ORDER)
class AnswersReversed(CasServer):
    """The accepted events come back in reverse."""

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        return super().take_all(talk, events)[::-1]


@fault("CAS-EV-02", cases=ORDER)
class AcceptedIs200(CasServer):
    """Accepted events are a 200."""

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        response = await super().post_events(request)
        response.set_status(200)
        return response


@fault("CAS-EV-02", cases="events.there_must_be_an_event")
class NothingAccepted(CasServer):
    """An empty list is accepted."""

    def check_events(self, events: Any) -> None:
        if events != []:
            super().check_events(events)


@fault("CAS-EV-02", cases="events.all_are_accepted_or_none")
class HalfAccepted(CasServer):
    """What stands before a wrong event is accepted."""

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        return [taken for event in events for taken in super(HalfAccepted, self).take_all(talk, [event])]


@fault("CAS-EV-03", cases=STARTS)
class StringsKept(CasServer):
    """A message that is a string is kept as one."""

    def kept(self, content: Any) -> Any:
        return content


@fault("CAS-EV-03", cases=STARTS)
class BlocksMerged(CasServer):
    """The blocks of a message are made one."""

    def kept(self, content: Any) -> Any:
        return as_blocks(text_of(content))


@fault("CAS-EV-03", cases="events.a_message_needs_content")
class ContentOptional(CasServer):
    """A message needs no content."""

    def check_message(self, talk: Talk, event: Body) -> None:
        if not isinstance(event.get("content"), str | list):
            event["content"] = "nothing"
        super().check_message(talk, event)


@fault("CAS-EV-04", cases="events.one_turn_at_a_time")
class BusyInOtherWords(CasServer):
    """A running turn is spoken of in other words."""

    def check_room(self, talk: Talk) -> None:
        if talk.is_busy:
            raise Refusal(409, "A turn is running.")


@fault("CAS-EV-04", cases="events.one_turn_at_a_time")
class TwoTurnsAtOnce(CasServer):
    """A message is taken while a turn runs."""

    def check_room(self, talk: Talk) -> None:
        return None


@fault("CAS-EV-05", cases=NOTHING)
class IdleCannotBeInterrupted(CasServer):
    """An interrupt of nothing is a 409."""

    def check_event(self, talk: Talk, event: Body) -> None:
        if event.get("type") == "user.interrupt" and not talk.is_busy:
            raise Refusal(409, "Nothing runs.")
        super().check_event(talk, event)


@fault("CAS-EV-05", cases=NOTHING)
class InterruptsAlwaysEnd(CasServer):
    """An interrupt of nothing ends a turn that was never begun."""

    def stop(self, talk: Talk) -> None:
        if not talk.is_busy:
            self.finish(talk, {"type": "cancelled"})
        super().stop(talk)


@fault("CAS-EV-08", cases=OUTCOME)
class OutcomeStripped(CasServer):
    """Fields of an outcome that are not known are dropped."""

    def extras(self, event: Body) -> Body:
        return {name: event[name] for name in ("description", "rubric") if name in event}


@fault("CAS-EV-08", cases=OUTCOME)
class OutcomeEnforced(CasServer):
    """An outcome needs a description."""

    def check_event(self, talk: Talk, event: Body) -> None:
        if event.get("type") == "user.define_outcome" and "description" not in event:
            raise Refusal(400, "description is required.")
        super().check_event(talk, event)


@fault("CAS-EV-09", cases="events.strange_events_are_refused")
class UnknownTypesSwallowed(CasServer):
    """Events of an unknown type are accepted, and nothing comes of them."""

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        return super().take_all(talk, [event for event in events if str(event.get("type")).startswith("user.")])

    def unknown(self, talk: Talk, kind: Any) -> None:
        return None


@fault("CAS-EV-09", cases="events.answers_nobody_waits_for_are_refused")
class AnyAnswerTaken(CasServer):
    """Answers are taken whether anything waits for them or not."""

    def check_pending(self, talk: Talk, event: Body) -> None:
        return None


@fault("CAS-EV-11", cases=LISTED)
class DescendingByDefault(CasServer):
    """Events are listed last first."""

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        found = super().chosen(request, events)
        return found if "order" in request.query else found[::-1]


@fault("CAS-EV-11", cases=LISTED)
class TypesIgnored(CasServer):
    """types[] filters nothing."""

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        return events[::-1] if request.query.get("order") == "desc" else events


@fault("CAS-EV-11", cases="events.the_list_can_be_the_stream")
class ListStaysList(CasServer):
    """The list is a list whatever is accepted."""

    def wants_stream(self, request: web.Request) -> bool:
        return False


@fault("CAS-EV-02", "CAS-EV-03", cases=f"{ORDER} {STARTS}")
class EventsNotEchoed(CasServer):
    """Accepted events are answered with their number."""

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        await super().post_events(request)
        return reply({"accepted": 1}, 202)


@fault("CAS-EV-08", cases=CARRIES)
class ThreadOfAnOutcomeLost(CasServer):
    """session_thread_id is taken out of outcomes."""

    def extras(self, event: Body) -> Body:
        return {name: value for name, value in super().extras(event).items() if name != "session_thread_id"}


@fault("CAS-EV-08", cases=CARRIES)
class NullsOfAnOutcomeLost(CasServer):
    """What is null within an outcome is left out."""

    def extras(self, event: Body) -> Body:
        kept: Body = without_nulls(super().extras(event))
        return kept


@fault("CAS-EV-03", cases="events.words_are_kept_to_the_letter")
class MessagesTrimmed(CasServer):
    """Blanks at the ends of a block are lost."""

    def kept(self, content: Any) -> Any:
        return [block | {"text": block["text"].strip()} for block in super().kept(content)]
