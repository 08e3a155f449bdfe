"""A recording of CAS traffic: sessions, their streams, their runs, and what was known when."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from conformance.cas.conversation import is_idle
from conformance.cas.requirement_owners import SCHEMAS
from conformance.cas.run import Run, is_piece
from conformance.kit.sse import ServerEvent
from conformance.offline.recording import Comment, Exchange, Recording, mapping, mappings

Body = dict[str, Any]
AGAIN = "/v1/"  # the same routes are served below /v1 once more
STATUS = ("session.status_running", "session.status_idle")
CURSORS = ("after_id", "before_id", "page")


@dataclass(frozen=True)
class StreamEvent:
    """One event of a stream, where it stands; `body` is empty where it is not even an object."""

    place: str
    order: int
    at: float
    frame: ServerEvent
    body: Body


@dataclass(frozen=True)
class Stream:
    """One open stream of a session or of a thread."""

    exchange: Exchange
    session: str
    thread: str | None
    heard: list[StreamEvent]

    @property
    def cursor(self) -> str | None:
        return self.exchange.param("after_id") or self.exchange.headers.get("Last-Event-ID")

    @property
    def deltas(self) -> list[str]:
        """The kinds of events it asked to hear in pieces."""
        return [value for name, value in self.exchange.query if name in ("event_deltas[]", "event_deltas")]

    @cached_property
    def wholes(self) -> list[Body]:
        """The events that are no pieces, as far as they can be told apart."""
        return [item.body for item in self.heard if "id" in item.body and not is_piece({"type": "", **item.body})]

    @property
    def comments(self) -> list[Comment]:
        return self.exchange.comments


class CasView:
    """What a recording shows of one server."""

    def __init__(self, recording: Recording) -> None:
        for item in recording.exchanges:
            if item.path.startswith(AGAIN):
                item.path = item.path[len(AGAIN) - 1 :]
        self.recording = recording

    # -- sessions ------------------------------------------------------------------------------------------------------

    @cached_property
    def created(self) -> dict[str, Exchange]:
        """The sessions made in this recording, by id."""
        made = [item for item, _ in self.recording.of("POST /sessions") if item.is_done and isinstance(item.sent, dict)]
        return {str(mapping(item.json).get("id")): item for item in made}

    @cached_property
    def looks(self) -> list[tuple[Exchange, Body]]:
        """Every time a single session was shown, well-formed."""
        routes = ("POST /sessions", "GET /sessions/{}", "POST /sessions/{}", "POST /sessions/{}/archive")
        shown = [item for route in routes for item, _ in self.recording.of(route) if item.is_done]
        shown.sort(key=lambda item: item.order)
        return [(item, item.json) for item in shown if not SCHEMAS.problems("session", item.json)]

    def looks_at(self, session: str) -> list[tuple[Exchange, Body]]:
        return [(item, body) for item, body in self.looks if body["id"] == session]

    def gone(self, session: str, order: int) -> bool:
        """Whether the session had been deleted by then."""
        deleted = self.recording.of("DELETE /sessions/{}")
        return any(name == session and item.is_done and item.ended < order for item, (name,) in deleted)

    # -- streams -------------------------------------------------------------------------------------------------------

    @cached_property
    def streams(self) -> list[Stream]:
        routes = ("GET /sessions/{}/events/stream", "GET /sessions/{}/events", "GET /sessions/{}/threads/{}/stream")
        found = [(item, names) for route in routes for item, names in self.recording.of(route)]
        opened = [(item, names) for item, names in found if item.status == 200 and item.is_stream]
        return [Stream(item, names[0], names[1] if len(names) > 1 else None, _heard(item)) for item, names in opened]

    @cached_property
    def _streams_by_session(self) -> dict[str, list[Stream]]:
        found: dict[str, list[Stream]] = {}
        for stream in self.streams:
            if stream.thread is None:
                found.setdefault(stream.session, []).append(stream)
        return found

    def streams_of(self, session: str) -> list[Stream]:
        return self._streams_by_session.get(session, [])

    def told(self, session: str) -> list[Body]:
        """The whole events that any stream of the session told."""
        return [event for stream in self.streams_of(session) for event in stream.wholes]

    # -- events --------------------------------------------------------------------------------------------------------

    @cached_property
    def posts(self) -> list[tuple[Exchange, str]]:
        """Every POST of events that was answered."""
        return [(item, name) for item, (name,) in self.recording.of("POST /sessions/{}/events") if item.is_whole]

    @cached_property
    def accepted(self) -> list[tuple[Exchange, str, list[Body]]]:
        """The posts that were taken, with the events they were answered with."""
        taken = [(item, name) for item, name in self.posts if item.status == 202]
        return [(item, name, mappings(mapping(item.json).get("data"))) for item, name in taken]

    @cached_property
    def pages(self) -> list[tuple[Exchange, str]]:
        found = [(item, name) for item, (name,) in self.recording.of("GET /sessions/{}/events") if item.is_done]
        return [(item, name) for item, name in found if not item.is_stream]

    def listed(self, session: str, after: int) -> list[Body] | None:
        """All events of the session, as a list that was asked for later than this has them."""
        for item, name in self.pages:
            asked = {it for it, value in item.query if (it, value) != ("order", "asc")} - {"limit"}
            body = mapping(item.json)
            if name == session and item.order > after and not asked and body.get("has_more") is False:
                return mappings(body.get("data"))
        return None

    @cached_property
    def every_event(self) -> list[tuple[str, Body]]:
        """Every event told anywhere - streamed, listed or accepted - with its place."""
        found = [(heard.place, heard.body) for stream in self.streams for heard in stream.heard]
        found += [(item.place, event) for item, _ in self.pages for event in mappings(mapping(item.json).get("data"))]
        return found + [(item.place, event) for item, _, data in self.accepted for event in data]

    @cached_property
    def runs(self) -> list[tuple[Exchange, Run, Stream]]:
        """What came of each post, as a stream tells it up to the next idle."""
        found = []
        for item, session, accepted in self.accepted:
            for stream in self.streams_of(session):
                run = _run(item, accepted, stream)
                if run is not None:
                    found.append((item, run, stream))
                    break
        return found

    def known_state(self, session: str, start: int, end: int) -> str | None:
        """running or idle, if a stream shows that the session was so from start to end."""
        for stream in self.streams_of(session):
            told = [(it.order, it.body["type"]) for it in stream.heard if it.body.get("type") in STATUS]
            before = [kind for order, kind in told if order < start]
            after = [order for order, _ in told if order >= start]
            if before and before[-1] == STATUS[0] and after and after[0] > end and self._goes_on(stream, end):
                return "running"
            if before and before[-1] == STATUS[1] and not self._posted(session, told, start, end):
                return "idle"
        return None

    def _goes_on(self, stream: Stream, end: int) -> bool:
        """Whether more than the idle came after this moment: the turn had not ended meanwhile."""
        later = [it.body for it in stream.heard if it.order > end and "type" in it.body]
        return bool(later) and not is_idle(later[0])

    def _posted(self, session: str, told: list[tuple[int, str]], start: int, end: int) -> bool:
        """Whether anything was posted between the last status before `start` and `end`."""
        last = max(order for order, _ in told if order < start)
        posts = [item for item, name in self.recording.of("POST /sessions/{}/events") if name == (session,)]
        return any(item.order < end and (item.ended or end) > last for item in posts)


def _heard(item: Exchange) -> list[StreamEvent]:
    return [StreamEvent(it.place, it.order, it.at, it.event, mapping(loaded(it.event.data))) for it in item.events]


def loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _run(item: Exchange, accepted: list[Body], stream: Stream) -> Run | None:
    if not accepted or not all(map(fits, accepted)) or (stream.deltas and stream.exchange.is_short):
        return None
    names = [heard.body.get("id") if not is_piece({"type": "", **heard.body}) else None for heard in stream.heard]
    if accepted[0].get("id") not in names or "id" not in accepted[0]:
        return None
    events: list[Body] = []
    first = names.index(accepted[0]["id"])
    passed_over = _passed_over(accepted[0], [heard.body for heard in stream.heard[:first]])
    for heard in stream.heard[first:]:
        if not fits(heard.body):
            return None
        if passed_over and heard.body.get("turn_id") == passed_over:
            continue
        events.append(heard.body)
        if is_idle(heard.body):
            return Run(item.asked, accepted, events)
    return None


def _passed_over(accepted: Body, before: list[Body]) -> str | None:
    """The turn that waited for answers when the user said something else: its end comes under its own turn_id."""
    last = next((event for event in reversed(before) if event.get("type") == STATUS[1]), {})
    is_waiting = mapping(last.get("stop_reason")).get("type") == "requires_action"
    is_other = accepted.get("type") == "user.message" and accepted.get("turn_id") != last.get("turn_id")
    return str(last.get("turn_id")) if is_waiting and is_other else None


def schema_of(event: Body) -> str:
    name = f"event.{event.get('type')}"
    return name if name in SCHEMAS.names else "event"


def fits(event: Body) -> bool:
    return not SCHEMAS.problems(schema_of(event), event)


def about_the_request(item: Exchange) -> bool:
    """Whether the answer is about what is asked, and not about who asks or how the server is."""
    return item.is_whole and item.status not in (401, 403, 429) and (item.status or 0) < 500
