"""CAS servers whose pieces of events are wrong."""

from aiohttp import web

from conformance.faults.cas.memory import Body, Item, Talk, mint
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault

ADD_UP, ASKED = "deltas.deltas_add_up", "deltas.only_the_asked_kinds_come_in_pieces"
LISTED, RESUMED = "deltas.pieces_are_never_listed", "deltas.an_event_in_progress_can_be_resumed"
RAW, MIXED = "deltas.a_session_can_stream_incrementally", "deltas.the_two_forms_never_mix"


@fault("CAS-SSE-08", cases=f"{ADD_UP} {ASKED} {RESUMED}")
class NoDeltas(CasServer):
    """event_deltas[] is ignored."""

    def forms(self, request: web.Request, talk: Talk) -> set[str]:
        return {"raw"} if talk.is_incremental else set()


@fault("CAS-SSE-08", cases=ADD_UP)
class TrimmedDeltas(CasServer):
    """Blanks at the end of a piece are lost."""

    def piece(self, talk: Talk, final: Body, kind: str, text: str) -> None:
        super().piece(talk, final, kind, text.rstrip())


@fault("CAS-SSE-08", cases=ADD_UP)
class DeltasOfOthers(CasServer):
    """The event that follows has another id than its pieces."""

    def begin(self, talk: Talk, final: Body) -> None:
        super().begin(talk, final)
        final["id"] = mint("evt")


@fault("CAS-SSE-08", cases=ASKED)
class DeltasForEverybody(CasServer):
    """Pieces come whether they are asked for or not."""

    def forms(self, request: web.Request, talk: Talk) -> set[str]:
        return {"agent.message", "agent.thinking"}


@fault("CAS-SSE-08", cases=LISTED)
class DeltasStored(CasServer):
    """Pieces are stored and listed."""

    def offer(self, talk: Talk, form: str, final: Body, body: Body) -> None:
        super().offer(talk, form, final, body)
        self.store(talk, self.event(talk, "user.interrupt") | body | {"id": mint("evt")})


@fault("CAS-SSE-08", cases=LISTED)
class DeltasReplayedInPart(CasServer):
    """A replay has the pieces of events without their starts."""

    def is_shown(self, item: Item, talk: Talk, thread: str | None, forms: set[str], is_old: bool) -> bool:
        is_lost = is_old and item.body["type"] == "event_start"
        return not is_lost and super().is_shown(item, talk, thread, forms, is_old=False)


@fault("CAS-SSE-08", cases=RESUMED)
class ProgressUnknown(CasServer):
    """An event in progress cannot be a cursor."""

    def start(self, request: web.Request, talk: Talk, thread: str | None) -> int:
        cursor = request.query.get("after_id")
        if cursor is not None and cursor not in [event["id"] for event in talk.events]:
            return self.unknown_cursor(talk, cursor)
        return super().start(request, talk, thread)


@fault("CAS-SSE-09", cases=RAW)
class NeverIncremental(CasServer):
    """incremental_streaming_enabled is ignored."""

    def new(self, body: Body) -> Talk:
        return super().new(body | {"incremental_streaming_enabled": False})


@fault("CAS-SSE-09", cases=RAW)
class WholeBeforePieces(CasServer):
    """The message comes before its message_stop."""

    def end(self, talk: Talk, final: Body) -> None:
        super().end(talk, final)
        if talk.is_incremental:
            talk.feed.insert(len(talk.feed) - 1, Item(final | {"id": mint("evt")}))


@fault("CAS-SSE-09", cases=MIXED)
class FormsMixed(CasServer):
    """Both forms of pieces come on one connection."""

    def forms(self, request: web.Request, talk: Talk) -> set[str]:
        return super().forms(request, talk) | ({"raw"} if talk.is_incremental else set())


@fault("CAS-SSE-09", cases=MIXED)
class AlwaysIncremental(CasServer):
    """Every session streams incrementally."""

    def new(self, body: Body) -> Talk:
        return super().new(body | {"incremental_streaming_enabled": True})
