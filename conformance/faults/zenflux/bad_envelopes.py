"""Servers whose envelopes are wrong."""

from uuid import uuid4

from conformance.faults.fault import fault
from conformance.faults.zenflux.editing import Dropping, Editing, Enveloping
from conformance.faults.zenflux.memory import Body, Session
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer

WHOLE = "envelope.every_event_is_in_its_envelope"
IDS = "envelope.event_ids_are_unique"
NUMBERS = "envelope.events_are_numbered"
TYPES = "envelope.types_are_those_of_the_hierarchy"
OWNERS = "envelope.events_belong_to_their_run"
MESSAGE = "envelope.a_message_id_is_that_of_the_message"
TIMES = "envelope.times_are_iso"
ALIKE = "envelope.frames_and_envelopes_count_alike"


@fault("ZF-ENV-01", "ZF-ENV-08", cases=WHOLE)
class NoEnvelope(Enveloping):
    """An event is its type and its data."""

    def changed(self, envelope: Body) -> Body:
        return {name: envelope[name] for name in ("type", "data", "seq")}


@fault("ZF-ENV-01", "ZF-ENV-08", cases=WHOLE)
class DataAsNull(Enveloping):
    """Empty data is null."""

    def changed(self, envelope: Body) -> Body:
        return envelope | {"data": envelope["data"] or None}


@fault("ZF-ENV-02", cases=IDS)
class IdsTwice(ZenfluxServer):
    """Two events in a row share their id."""

    last = ""

    def envelope(self, session: Session, told: Told) -> Body:
        envelope = super().envelope(session, told)
        if session.seq % 2 == 0:
            return envelope | {"event_uuid": self.last}
        self.last = envelope["event_uuid"]
        return envelope


@fault("ZF-ENV-02", cases=IDS)
class IdsAreNumbers(Enveloping):
    """The id of an event is no UUID."""

    def changed(self, envelope: Body) -> Body:
        return envelope | {"event_uuid": f"event-{envelope['seq']}"}


@fault("ZF-ENV-03", "G-ZF-05", cases=f"{NUMBERS} {ALIKE}")
class NumberedFromZero(Enveloping):
    """The first event has the number 2."""

    def changed(self, envelope: Body) -> Body:
        return envelope | {"seq": envelope["seq"] + 1}


@fault("ZF-ENV-03", "G-ZF-05", cases=f"{NUMBERS} {ALIKE}")
class NumberedOnAndOn(ZenfluxServer):
    """Numbers go on from one run of a server to the next."""

    counted = 0

    def envelope(self, session: Session, told: Told) -> Body:
        self.counted += 1
        return super().envelope(session, told) | {"seq": self.counted}


@fault("G-ZF-05", cases=ALIKE)
class NumberedBeforeThrottling(ZenfluxServer):
    """Deltas that are merged leave gaps in the numbers."""

    def envelope(self, session: Session, told: Told) -> Body:
        session.seq += 1 if told.type == "content_delta" else 0
        return super().envelope(session, told)


@fault("ZF-ENV-04", "ZF-ENV-09", cases=TYPES)
class NoMessages(Dropping):
    """There is no message around the blocks."""

    dropped = "message_start"


@fault("ZF-ENV-04", "ZF-ENV-09", cases=TYPES)
class WordsAfterMessages(ZenfluxServer):
    """A block comes when its message is over."""

    async def play(self, session: Session) -> Telling:
        async for told in super().play(session):
            yield told
            if told.type == "message_stop":
                yield Told("content_start", {"index": 99, "content_block": {"type": "text", "text": ""}})
                yield Told("content_stop", {"index": 99})


@fault("ZF-ENV-05", cases=OWNERS)
class OtherConversation(Enveloping):
    """The events of a message belong to another conversation."""

    def changed(self, envelope: Body) -> Body:
        return envelope | ({"conversation_id": "other"} if envelope["type"] == "message_stop" else {})


@fault("ZF-ENV-05", "ZF-EV-01", cases=f"{OWNERS} events.session_start_introduces_the_run")
class OtherSession(Editing):
    """session_start names another session than the envelopes."""

    def edited(self, told: Told) -> tuple[Told, ...]:
        if told.type != "session_start":
            return (told,)
        return (Told(told.type, told.data | {"session_id": str(uuid4())}),)


@fault("ZF-ENV-06", cases=MESSAGE)
class StaleMessageIds(ZenfluxServer):
    """Events of the second message carry the id of the first."""

    def envelope(self, session: Session, told: Told) -> Body:
        first = vars(session).setdefault("first_message", session.message_id)
        return super().envelope(session, told) | {"message_id": first}


@fault("ZF-ENV-07", cases=TIMES)
class TimesAsNumbers(Enveloping):
    """The time is a number."""

    def changed(self, envelope: Body) -> Body:
        return envelope | {"timestamp": 1704067200}


@fault("ZF-ENV-07", cases=TIMES)
class TimesGoBack(Enveloping):
    """The last event is older than the first."""

    def changed(self, envelope: Body) -> Body:
        is_last = envelope["type"] in ("session_end", "message_stop")
        return envelope | ({"timestamp": "2001-01-01T00:00:00.000000"} if is_last else {})


@fault("G-ZF-06", cases="envelope.events_of_a_message_name_it")
class NoMessageIds(Enveloping):
    """No event says which message it belongs to."""

    def changed(self, envelope: Body) -> Body:
        return {name: value for name, value in envelope.items() if name != "message_id"}


@fault("G-ZF-33", cases="envelope.event_times_look_like_the_example")
class ZonedTimes(Enveloping):
    """Events say the time with a zone."""

    def changed(self, envelope: Body) -> Body:
        return envelope | {"timestamp": f"{envelope['timestamp']}Z"}
