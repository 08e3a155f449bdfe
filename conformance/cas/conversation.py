"""A conversation in one session: messages, the events that follow, and what the server shows of the session."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from conformance.cas.object_comparison import in_listed_order, note_contradictions, unheard, unlisted
from conformance.cas.requirement_owners import note_misfits, of_posted
from conformance.cas.run import Body, Run, is_piece, message
from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import Query, Reply, Stream
from conformance.kit.sse import ServerEvent
from conformance.kit.wait_limits import Wait, route

if TYPE_CHECKING:
    from conformance.cas.examination import CasExamination

DESIRABLE = frozenset({"span.model_request_start", "span.model_request_end", "agent.artifact_delivered"})
"""Events whose own fields are no MUST; the common ones are."""
MOST_EVENTS = "100"
EVENT_ID = "evt_"


def is_idle(event: Body) -> bool:
    return bool(event["type"] == "session.status_idle")


def is_event(event: Body) -> bool:
    return not is_piece(event)


class Follower:
    """A stream, read event by event; every event is checked against its schema.

    A stream that ends too early is noted, and opened again after its last event.
    """

    def __init__(
        self, exam: "CasExamination", stream: Stream, path: str, reopen: Callable[[str], Awaitable[Stream]]
    ) -> None:
        self._exam = exam
        self._path = path
        self._reopen = reopen
        self._last: str | None = None
        """The event after which the stream was opened again."""
        self.stream = stream
        self.frames: list[ServerEvent] = []
        self.events: list[Body] = []

    @property
    def was_reopened(self) -> bool:
        return self._last is not None

    async def next(self) -> Body | None:
        """The next event; None when the server has ended the stream."""
        wait = Wait(self._exam.http.timeout)
        try:
            async with self.stream.waits.bounded("another event", wait.limit) as wait:
                frame = await self.stream.next()
        except TimeoutError:
            expected = f"{self.stream.asked} to go on within {wait}"
            raise Failed(expected, *(self._unframed or ("no more events came", None))) from None
        if frame is None:
            return None
        self.frames.append(frame)
        self.events.append(self._checked(frame))
        return self.events[-1]

    @property
    def _unframed(self) -> tuple[str, str] | None:
        """What came of a stream none of whose lines made an event, and who is to blame for it."""
        lines = self.stream.parser.undelivered
        return None if self.frames or not lines else (f"lines that make no event: {expect.show(lines)}", "CAS-SSE-02")

    async def until(
        self, found: Callable[[Body], bool], what: str, accepted: Body | None = None
    ) -> list[Body]:
        """The events up to the one that is looked for, and that one."""
        seen: list[Body] = []
        try:
            with self.stream.waits.goal(route(what)):
                while True:
                    event = await self.next()
                    if event is None:
                        await self._go_on(seen, what)
                        continue
                    seen.append(event)
                    if found(event):
                        return seen
        except Failed as failure:
            failure.owner = failure.owner or await self._missed(found, what, accepted)
            raise

    async def _go_on(self, seen: list[Body], what: str) -> None:
        """Open a stream again that has ended: after its last event, unless nothing came since it was opened so."""
        ended = f"the stream ended after {expect.show([event['type'] for event in seen])}"
        expected = f"{what} on {self.stream.asked}"
        if self._unframed is not None:
            raise Failed(expected, *self._unframed)
        if "deleted" in what:
            raise Failed(expected, ended)
        last = next((str(event.get("id")) for event in reversed(self.events) if not is_piece(event)), None)
        if last is None or last == self._last:
            raise Failed(expected, ended, "CAS-SSE-07")
        self._exam.http.departures.note("CAS-SSE-07", expected, ended)
        self._last = last
        self.stream = await self._reopen(last)

    async def _missed(self, found: Callable[[Body], bool], what: str, accepted: Body | None) -> str | None:
        """Who is to blame for an event that does not come: the stream, if it is listed, or else who demands it.

        A stream that told other events in another order than the list has failed by that.
        """
        if (listed := await self._listed()) is None:
            return None
        try:
            names = [event.get("id") for event in listed]
            told = [event for event in self.events if event.get("id") in names and not is_piece(event)]
            after = listed[names.index(told[-1]["id"]) + 1 :] if told and accepted is None else listed
            is_listed = any(found(event) for event in after if event not in told)
        except (LookupError, TypeError, ValueError):
            return None
        in_listed_order(told, listed)
        if is_listed:
            return "CAS-SSE-05"
        if accepted is not None:
            return unheard(listed, accepted)
        return "CAS-EV-12" if "session.status_" in what else None

    async def _listed(self) -> list[Body] | None:
        """The events as they are listed; None if the list cannot be read."""
        reply = await self._exam.http.ask("GET", f"{self._path}/events", query={"limit": MOST_EVENTS})
        try:
            return [event for event in expect.status(reply, 200).object()["data"] if isinstance(event, dict)]
        except (Failed, LookupError, TypeError):
            return None

    async def run(self, asked: str, accepted: list[Body]) -> Run:
        """The events from the first accepted one to the next idle, which must be those that are listed."""
        found = await self.turn(asked, accepted)
        if (listed := await self._listed()) is not None:
            in_listed_order(found.events, listed)
            note_contradictions(self._exam.http.departures, found.events, listed)
        return found

    async def turn(self, asked: str, accepted: list[Body]) -> Run:
        """The events from the first accepted one to the next idle, whatever is listed."""
        first = await self.arrival(accepted[0])
        rest = await self.until(is_idle, "session.status_idle")
        is_other = rest[-1].get("turn_id") != accepted[0].get("turn_id")
        if is_other and not any(event["type"] == "session.status_running" for event in rest):
            expect.fail("status_idle to be the end of the turn", [event["type"] for event in rest], "CAS-EV-12")
        return Run(asked, accepted, [first, *rest])

    async def begun(self, accepted: Body) -> list[Body]:
        """The events from this accepted one to the next status_running."""
        first = await self.arrival(accepted)
        return [first, *await self.until(lambda it: it["type"] == "session.status_running", "session.status_running")]

    async def arrival(self, accepted: Body) -> Body:
        """The event that was accepted, when it comes."""
        name = accepted["id"]
        return (await self.until(lambda event: event.get("id") == name, f"the event {name}", accepted))[-1]

    def _checked(self, frame: ServerEvent) -> Body:
        what = f"the data of the event `{frame.event}`"
        with expect.owned("CAS-SSE-02"):
            body = expect.keyed(what, expect.parsed(frame.data, what), "type")
        departures = self._exam.http.departures
        if frame.event == "error":
            departures.note("CAS-EV-18", "a stream without `event: error`", frame.data)
        elif frame.event != body["type"]:
            departures.note("CAS-SSE-02", f"the type in {what}: {frame.event}", body["type"])
        return self._identified(frame, check_event(self._exam, body, what))

    def _identified(self, frame: ServerEvent, body: Body) -> Body:
        """The event under the id of its frame, by which a client resumes; data that repeat another id are noted."""
        is_id = "id" in frame.fields and frame.id.startswith(EVENT_ID)
        if is_piece(body) or not is_id or frame.id == (own := body.get("id")):
            return body
        if isinstance(own, str) and own.startswith(EVENT_ID):
            self._exam.http.departures.note("CAS-SSE-02", f"the id in the data of `{frame.event}`: {frame.id}", own)
        return body | {"id": frame.id}


def check_event(exam: "CasExamination", body: Body, what: str) -> Body:
    """The event; what does not fit the schema of its type, or of all events, is noted."""
    kind = body.get("type")
    name = "event" if kind in DESIRABLE else f"event.{kind}"
    note_misfits(exam.http.departures, exam.schemas, name if name in exam.schemas.names else "event", body, what)
    return body


def _resumed_by(asked: str, headers: Mapping[str, str]) -> str | None:
    """The requirement by which a stream can be resumed as it is asked to be, if it is."""
    if "after_id=" not in asked and "Last-Event-ID" not in headers:
        return None
    return "CAS-SSE-08" if "event_deltas" in asked else "CAS-SSE-03"


class Conversation:
    """One session of the server, talked to as a client would."""

    def __init__(self, exam: "CasExamination", session: Body) -> None:
        self._exam = exam
        self.session = session
        self.id = str(session["id"])
        self.path = f"/sessions/{self.id}"

    async def attempt(self, json: Any, **more: Any) -> Reply:
        """One POST to /events with any body, whatever comes of it."""
        return await self._exam.ask("POST", f"{self.path}/events", json, **more)

    async def post(self, *events: Body) -> list[Body]:
        """One POST to /events; it must be accepted, and be answered with these events."""
        posted = [event["type"] for event in events]
        reply = await self.attempt({"events": list(events)})
        with expect.owned(of_posted(posted)):
            expect.that(200 <= reply.status < 300, f"{reply.asked} to be answered with 202", reply.told)
        if reply.status != 202:
            self._exam.http.departures.note("CAS-EV-02", f"{reply.asked} to be answered with 202", reply.status)
        accepted: list[Body] = self._exam.fitting("accepted", reply)["data"]
        with expect.owned("CAS-EV-01"):
            kinds = [expect.keyed("an accepted event", event, "type")["type"] for event in accepted]
        with expect.owned("CAS-EV-02"):
            expect.equal(f"the types of the events {reply.asked} accepts", posted, kinds)
        return [check_event(self._exam, event, f"an event accepted by {reply.asked}") for event in accepted]

    @asynccontextmanager
    async def follow(
        self, query: Query | None = None, path: str = "/events/stream", **more: Any
    ) -> AsyncIterator[Follower]:
        """An open stream of the session."""
        pairs = list(query.items() if isinstance(query, Mapping) else query or ())
        headers = dict(more.pop("headers", None) or {})
        async with AsyncExitStack() as opened:

            async def reopen(name: str) -> Stream:
                asked = [*((key, value) for key, value in pairs if key != "after_id"), ("after_id", name)]
                kept = {key: value for key, value in headers.items() if key != "Last-Event-ID"}
                return await opened.enter_async_context(self._stream(asked, path, kept, more))

            first = await opened.enter_async_context(self._stream(pairs, path, headers, more))
            yield Follower(self._exam, first, self.path, reopen)

    @asynccontextmanager
    async def _stream(
        self, pairs: list[tuple[str, str]], path: str, headers: dict[str, str], more: dict[str, Any]
    ) -> AsyncIterator[Stream]:
        asking = self._exam.http.stream("GET", self.path + path, query=pairs or None, headers=headers, **more)
        async with asking as stream:
            if not stream.is_event_stream:
                is_endless = stream.status == 200  # heartbeats may go on, whatever the answer is called
                seen = f"{stream.content_type} " + ("200" if is_endless else (await stream.whole()).told)
                owner = {"/events/stream": "CAS-SSE-01", "/events": "CAS-EV-11"}.get(path, "CAS-THR-02")
                owner = _resumed_by(stream.asked, headers) or owner
                expect.fail(f"{stream.asked} to be answered with 200 text/event-stream", seen, owner)
            yield stream

    async def say(self, content: Any) -> Run:
        """One message, and everything up to the next idle."""
        return await self.send(message(content))

    async def send(self, *events: Body) -> Run:
        """One POST to /events, and everything up to the next idle."""
        async with self.follow() as follower:
            return await follower.run(f"POST {self.path}/events", await self.post(*events))

    async def begin(self, content: Any, follower: Follower) -> Body:
        """One message, and its turn up to status_running."""
        (accepted,) = await self.post(message(content))
        await follower.begun(accepted)
        return accepted

    async def events(self, pairs: Iterable[tuple[str, str]] = (("order", "asc"),)) -> list[Body]:
        """All events the server lists, page by page, the oldest first unless something else is asked for."""
        found: list[Body] = []
        query = [("limit", MOST_EVENTS), *pairs]
        while True:
            with expect.owned("CAS-EV-11"):
                page = await self._exam.have("events", "GET", f"{self.path}/events", query=query)
            found += [check_event(self._exam, event, "a listed event") for event in page["data"]]
            if not page["has_more"] or not page["data"]:
                return found
            query = [("limit", MOST_EVENTS), ("after_id", page["last_id"]), *pairs]

    async def stored(self, event: Body) -> Body:
        """The event, as the server lists it."""
        listed = await self.events()
        with expect.owned(unlisted(listed, event)):
            found = (item for item in listed if item["id"] == event["id"])
            return expect.first(f"the event {event['id']} in the list", found, listed)

    async def is_over(self, accepted: Body, other: Body | None = None) -> bool:
        """Whether the turn of this event ended by itself before anything else was said; the other must be listed."""
        listed: list[Body] = []
        with suppress(Failed):
            listed = await self.events()
        names = [event["id"] for event in listed]
        if any(item["id"] not in names for item in (accepted, other or accepted)):
            return False
        for event in listed[names.index(accepted["id"]) + 1 :]:
            if event["type"].startswith("user."):
                return False
            if is_idle(event):
                return bool(event["stop_reason"]["type"] == "end_turn")
        return False

    async def info(self) -> Body:
        """What the server says of the session."""
        with expect.owned("CAS-SESS-02"):
            body: Body = await self._exam.have("session", "GET", self.path)
        return body

    async def threads(self) -> list[Body]:
        """The threads as they are listed; lists of threads are no MUST, what is in them is."""
        reply = await self._exam.ask("GET", f"{self.path}/threads")
        if reply.status == 404:
            raise NotTestable(f"the server shows no threads: {reply.asked} is a 404")
        with expect.owned("CAS-THR-02"):
            expect.status(reply, 200)
        found: list[Body] = sound(self._exam.fitting("threads", reply))["data"]
        return found


def sound(page: Body) -> Body:
    """The page, whose ends must be those of its data."""
    with expect.owned("CAS-GEN-04"):
        names = [expect.keyed("an entry of a page", item, "id")["id"] for item in page["data"]]
        ends = (names[0], names[-1]) if names else (None, None)
        expect.equal("first_id and last_id", ends, (page["first_id"], page["last_id"]))
        expect.that(bool(page["next_page"]) == page["has_more"], "next_page exactly if has_more", page)
    return page
