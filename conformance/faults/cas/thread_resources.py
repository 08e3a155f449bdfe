"""What clients see of the threads of a session on the CAS reference server: lists, events and streams."""


from aiohttp import web

from conformance.faults.cas.front import Front, reply
from conformance.faults.cas.sessions import Sessions
from conformance.faults.cas.state import Body, Session, now
from conformance.faults.cas.streams import Streams
from conformance.faults.cas.threads import Threads
from conformance.faults.cas.turns import Turns
from conformance.faults.refusal import Refusal


class ThreadResources:
    """Answers requests below /sessions/{id}/threads."""

    def __init__(self, front: Front, sessions: Sessions, threads: Threads, streams: Streams, turns: Turns) -> None:
        self.front = front
        self.sessions = sessions
        self.threads = threads
        self.streams = streams
        self.turns = turns

    def thread(self, request: web.Request) -> tuple[Session, Body]:
        session, name = self.sessions.find(request), request.match_info["thread"]
        self.threads.coordinator(session)
        if name not in session.threads:
            raise Refusal(404, f"Thread '{name}' was not found.")
        return session, session.threads[name]

    async def get_threads(self, request: web.Request) -> web.StreamResponse:
        session = self.sessions.find(request)
        self.threads.coordinator(session)
        shown = [self.threads.shown_thread(session, thread) for thread in session.threads.values()]
        return reply(self.front.page(request, shown))

    async def get_thread(self, request: web.Request) -> web.StreamResponse:
        return reply(self.threads.shown_thread(*self.thread(request)))

    async def get_thread_events(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        return reply(self.front.page(request, self.turns.chosen(request, self.events_of(session, thread))))

    def events_of(self, session: Session, thread: Body) -> list[Body]:
        return [event for event in session.events if self.threads.thread_of(event, session) == thread["id"]]

    async def get_thread_stream(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        return await self.streams.follow(request, session, thread["id"])

    async def archive_thread(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        self.check_child(thread)
        self.threads.move(session, thread, "terminated", {"type": "archive"}, shown="archived")
        thread["archived_at"] = now()
        return reply(self.threads.shown_thread(session, thread))

    def check_child(self, thread: Body) -> None:
        if thread["role"] == "coordinator":
            raise Refusal(409, "The coordinator cannot be archived.")
