"""Servers whose events of session, conversation and system say the wrong thing."""

from collections.abc import Iterator

from conformance.faults.fault import fault
from conformance.faults.zenflux.editing import Dropping, Editing, changed, without
from conformance.faults.zenflux.memory import Body, Session
from conformance.faults.zenflux.player import Told
from conformance.faults.zenflux.server import ZenfluxServer

START = "events.session_start_introduces_the_run"
DELTA = "events.conversation_delta_says_what_changed"
TITLE = "events.a_new_title_is_told_and_kept"
RARE = "events.rarer_conversation_events_fit"
DONE = "events.done_ends_a_stream"
ERROR = "events.an_error_says_what_went_wrong"
ROLLBACK = "extras.a_rollback_is_offered_and_done"
LONG = "extras.a_long_task_asks_and_goes_on"


class _Changing(Editing):
    """Changes the events of one type."""

    kind = ""

    def other(self, told: Told) -> Told:
        raise NotImplementedError

    def edited(self, told: Told) -> Iterator[Told]:
        yield self.other(told) if told.type == self.kind else told


@fault("ZF-EV-01", cases=START)
class StartWithoutUser(_Changing):
    """session_start does not name the user."""

    kind = "session_start"

    def other(self, told: Told) -> Told:
        return without(told, "user_id")


@fault("ZF-EV-02", cases="events.session_stopped_says_why")
class StoppedByNobody(_Changing):
    """A run that the user stopped has another reason."""

    kind = "session_stopped"

    def other(self, told: Told) -> Told:
        return changed(told, reason="timeout")


@fault("ZF-EV-02", "ZF-SEQ-10", cases="events.session_stopped_says_why lifecycle.every_run_has_its_end_signal")
class NeverStopped(Dropping):
    """A stopped run does not say so."""

    dropped = "session_stopped"


@fault("ZF-EV-03", cases="events.session_end_says_how_it_went")
class EndsAsDone(_Changing):
    """A run ends with a status of the server's own."""

    kind = "session_end"

    def other(self, told: Told) -> Told:
        return changed(told, status="done")


@fault("ZF-EV-03", cases="events.session_end_says_how_it_went")
class EndWithoutDuration(_Changing):
    """session_end does not say how long it took."""

    kind = "session_end"

    def other(self, told: Told) -> Told:
        return without(told, "duration_ms")


@fault("ZF-EV-04", cases="events.pings_are_for_streams_only")
class PingsOnTheSocket(Editing):
    """A run on the socket has ping events."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield told
        if told.type == "message_start":
            yield Told("ping", {"type": "ping"})


@fault("ZF-EV-04", cases="events.pings_are_for_streams_only")
class OddPings(ZenfluxServer):
    """A stream's pings have no data."""

    def chunk(self, envelope: Body) -> bytes:
        return b'data: {"type": "ping"}\n\n' + super().chunk(envelope)


@fault("ZF-EV-05", cases="events.conversation_start_describes_the_conversation")
class StartWithoutTitle(_Changing):
    """conversation_start has no title."""

    kind = "conversation_start"

    def other(self, told: Told) -> Told:
        return without(told, "title")


@fault("ZF-EV-06", "ZF-EV-07", "ZF-EV-09", cases=f"{DELTA} {TITLE} events.a_compression_is_told")
class NestedDelta(_Changing):
    """What changed stands below `delta`."""

    kind = "conversation_delta"

    def other(self, told: Told) -> Told:
        name = told.data["conversation_id"]
        return Told(told.type, {"conversation_id": name, "delta": without(told, "conversation_id").data})


@fault("ZF-EV-07", cases=TITLE)
class TitleForgotten(ZenfluxServer):
    """A new title is told and not kept."""

    def change(self, session: Session, fields: Body) -> Told:
        title = session.conversation.title
        told = super().change(session, fields)
        session.conversation.title = title
        return told


@fault("ZF-EV-08", cases=RARE)
class MetadataAsList(ZenfluxServer):
    """A metadata update is a list."""

    def change(self, session: Session, fields: Body) -> Told:
        told = super().change(session, fields)
        return changed(told, metadata=["short"]) if "metadata" in fields else told


@fault("ZF-EV-10", cases=RARE)
class StopsAsDone(Editing):
    """A conversation stops with a status of the server's own."""

    def edited(self, told: Told) -> Iterator[Told]:
        if told.type == "session_end":
            yield Told("conversation_stop", {"conversation_id": told.data["session_id"], "final_status": "done"})
        yield told


@fault("ZF-EV-09", cases="events.a_compression_is_told")
class CompressionUncounted(ZenfluxServer):
    """A compression notice is only its summary."""

    def change(self, session: Session, fields: Body) -> Told:
        told = super().change(session, fields)
        return changed(told, compressed=fields["compressed"]["summary"]) if "compressed" in fields else told


@fault("ZF-EV-35", cases=ERROR)
class FlatError(_Changing):
    """The error is not in `error`."""

    kind = "error"

    def other(self, told: Told) -> Told:
        return Told(told.type, told.data["error"])


@fault("ZF-EV-35", cases=ERROR)
class InventedError(_Changing):
    """The error is of a type of the server's own."""

    kind = "error"

    def other(self, told: Told) -> Told:
        return changed(told, error={"type": "agent_broke", "message": "It broke."})


@fault("ZF-SEQ-10", "ZF-EV-35", cases=f"{ERROR} lifecycle.every_run_has_its_end_signal")
class FailsSilently(Dropping):
    """A run that fails says no error."""

    dropped = "error"


@fault("ZF-EV-36", cases=DONE)
class NoDone(ZenfluxServer):
    """A stream just ends."""

    def last_chunk(self) -> bytes:
        return b""


@fault("ZF-EV-36", cases=DONE)
class WordsAfterDone(ZenfluxServer):
    """Something follows done."""

    def last_chunk(self) -> bytes:
        return super().last_chunk() + b'data: {"type": "bye", "data": {}}\n\n'


@fault("ZF-EV-37", "ZF-EV-38", "ZF-HTTP-3.1-04", cases=ROLLBACK)
class RollbackWithoutTask(_Changing):
    """rollback_options does not name its task."""

    kind = "rollback_options"

    def other(self, told: Told) -> Told:
        return without(told, "task_id")


@fault("ZF-EV-38", "ZF-HTTP-3.1-04", "G-ZF-28", cases=f"{ROLLBACK} extras.a_rollback_tells_what_it_did")
class RollbackNeverDone(Dropping):
    """rollback_completed never comes."""

    dropped = "rollback_completed"


@fault("ZF-EV-39", "ZF-HTTP-3.1-03", cases=LONG)
class AsksWithoutWords(_Changing):
    """long_running_confirm has no message."""

    kind = "long_running_confirm"

    def other(self, told: Told) -> Told:
        return without(told, "message")
