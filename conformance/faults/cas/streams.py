"""The streams and threads of the CAS reference server."""

import asyncio
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas.front import given_list, reply
from conformance.faults.cas.state import Body, Item, Session, mint, now
from conformance.faults.cas.turns import Turns
from conformance.faults.refusal import Refusal
from conformance.faults.script import Speak, words


class Streams(Turns):
    """Streams: what was, then what is."""

    heartbeat = 0.2
    heartbeat_comment = "heartbeat"

    async def get_stream(self, request: web.Request) -> web.StreamResponse:
        return await self.follow(request, self.find(request))

    async def follow(self, request: web.Request, session: Session, thread: str | None = None) -> web.StreamResponse:
        place = self.start(request, session, thread)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            await self.greet(response)
            await self.pump(response, session, thread, place, self.forms(request, session))
        return response

    async def greet(self, response: web.StreamResponse) -> None:
        await response.write(b": connected\n\n")

    async def beat(self, response: web.StreamResponse) -> None:
        await response.write(f": {self.heartbeat_comment}\n\n".encode())

    async def pump(
        self, response: web.StreamResponse, session: Session, thread: str | None, place: int, forms: set[str]
    ) -> None:
        """Everything from the place on, for as long as the session lives."""
        opened = session.end
        while True:
            while place < session.end:
                item = session.feed[place]
                if self.is_shown(item, session, thread, forms, is_old=place < opened):
                    await response.write(self.frame(item.body))
                    self.carry(session, item.body, thread)
                place += 1
            if self.is_over(session):
                return
            await self.news(response, session)

    def carry(self, session: Session, event: Body, thread: str | None) -> None:
        """A stream of the session has sent an event; remember it if a turn ends or waits there."""
        if thread is None and event["type"] == "session.status_idle":
            session.carried.add(event["id"])

    def is_over(self, session: Session) -> bool:
        return session.is_closed

    async def news(self, response: web.StreamResponse, session: Session) -> None:
        try:
            async with asyncio.timeout(self.heartbeat):
                await session.news.wait()
        except TimeoutError:
            await self.beat(response)

    def forms(self, request: web.Request, session: Session) -> set[str]:
        """Which pieces of events this connection is sent."""
        asked = set(given_list(request, "event_deltas"))
        return asked or ({"raw"} if session.is_incremental else set())

    def is_shown(self, item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool) -> bool:
        if item.form == "stored":
            return self.is_of(item.body, session, thread)
        return not is_old and thread is None and (item.form in forms or self.is_asked(item, session, forms))

    def is_asked(self, item: Item, session: Session, forms: set[str]) -> bool:
        """Whether a delta is of a kind of event this connection asked for."""
        begun = (other.body for other in session.feed if other.of == item.of and other.body["type"] == "event_start")
        return item.form == "deltas" and any(body["event"]["type"] in forms for body in begun)

    def start(self, request: web.Request, session: Session, thread: str | None) -> int:
        """The place in the feed right after the cursor."""
        cursor = request.headers.get("Last-Event-ID") or request.query.get("after_id")
        if cursor is None:
            return 0 if thread else self.beginning(session)
        for place, item in enumerate(session.feed):
            if item.form == "stored" and item.body["id"] == cursor and self.is_of(item.body, session, thread):
                return place + 1
        return session.end if self.is_in_progress(session, cursor) else self.unknown_cursor(session, cursor)

    def is_in_progress(self, session: Session, cursor: str) -> bool:
        """Whether pieces of this event were sent, and not the whole event."""
        return any(item.of == cursor for item in session.feed)

    def beginning(self, session: Session) -> int:
        """Where a stream without a cursor begins: with what no stream has sent of the newest turn, else at the end."""
        turns = [item.body.get("turn_id") for item in session.feed]
        newest = next(filter(None, reversed(turns)), None)
        places = [place for place, turn in enumerate(turns) if newest and turn == newest]
        carried = [place for place in places if session.feed[place].body["id"] in session.carried]
        rest = [place for place in places if place > max(carried, default=-1)]
        return rest[0] if rest else session.end

    def unknown_cursor(self, session: Session, cursor: str) -> int:
        raise Refusal(400, f"{cursor} is no event of this session.")

    def frame(self, body: Body) -> bytes:
        name = b"id: %s\n" % body["id"].encode() if "id" in body else b""
        return name + b"event: %s\ndata: %s\n\n" % (body["type"].encode(), orjson.dumps(body))

    def is_of(self, event: Body, session: Session, thread: str | None) -> bool:
        return thread is None or self.thread_of(event, session) == thread

    def thread_of(self, event: Body, session: Session) -> str:
        return str(event.get("session_thread_id") or self.coordinator(session)["id"])

    def coordinator(self, session: Session) -> Body:
        if not session.threads:
            self.open_thread(session, "", None, None)
        return next(iter(session.threads.values()))

    def open_thread(self, session: Session, name: str, parent: str | None, cause: str | None) -> Body:
        agent, at = session.view["agent"], now()
        thread = {
            "id": mint("sthr"),
            "type": "session_thread",
            "session_id": session.view["id"],
            "parent_thread_id": parent,
            "agent": {name: agent[name] for name in ("id", "type", "name", "model", "version")},
            "agent_id": agent["id"],
            "agent_version": agent["version"],
            "name": name,
            "role": "child" if parent else "coordinator",
            "status": "idle",
            "stop_reason": {"type": "end_turn"},
            "created_by_tool_use_id": cause,
            "archived_at": None,
            "created_at": at,
            "updated_at": at,
        }
        session.threads[str(thread["id"])] = thread
        return thread


class Threads(Streams):
    """Threads: other agents at work in the same session."""

    child_name = "researcher"

    def stream_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/sessions/{id}/events/stream", self.get_stream),
            web.get("/sessions/{id}/threads", self.get_threads),
            web.get("/sessions/{id}/threads/{thread}", self.get_thread),
            web.get("/sessions/{id}/threads/{thread}/events", self.get_thread_events),
            web.get("/sessions/{id}/threads/{thread}/stream", self.get_thread_stream),
            web.post("/sessions/{id}/threads/{thread}/archive", self.archive_thread),
        ]

    def thread(self, request: web.Request) -> tuple[Session, Body]:
        session, name = self.find(request), request.match_info["thread"]
        self.coordinator(session)
        if name not in session.threads:
            raise Refusal(404, f"Thread '{name}' was not found.")
        return session, session.threads[name]

    async def get_threads(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        self.coordinator(session)
        return reply(self.page(request, [self.shown_thread(session, thread) for thread in session.threads.values()]))

    def shown_thread(self, session: Session, thread: Body) -> Body:
        if thread["role"] == "child" or (session.view["status"] == "idle" and not session.is_waiting):
            return thread
        waiting = {"status": "idle", "stop_reason": {"type": "requires_action", "event_ids": list(session.pending)}}
        return thread | (waiting if session.is_waiting else {"status": "running", "stop_reason": {}})

    async def get_thread(self, request: web.Request) -> web.StreamResponse:
        return reply(self.shown_thread(*self.thread(request)))

    async def get_thread_events(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        return reply(self.page(request, self.chosen(request, self.events_of(session, thread))))

    def events_of(self, session: Session, thread: Body) -> list[Body]:
        return [event for event in session.events if self.thread_of(event, session) == thread["id"]]

    async def get_thread_stream(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        return await self.follow(request, session, thread["id"])

    async def archive_thread(self, request: web.Request) -> web.StreamResponse:
        session, thread = self.thread(request)
        self.check_child(thread)
        self.move(session, thread, "terminated", {"type": "archive"}, shown="archived")
        thread["archived_at"] = now()
        return reply(self.shown_thread(session, thread))

    def check_child(self, thread: Body) -> None:
        if thread["role"] == "coordinator":
            raise Refusal(409, "The coordinator cannot be archived.")

    def move(self, session: Session, thread: Body, status: str, reason: Body, shown: str | None = None) -> None:
        """A thread changes its status, and says so."""
        thread |= {"status": shown or status, "stop_reason": reason, "updated_at": now()}
        told: dict[str, Any] = {"agent_name": thread["name"]} if status == "running" else {"stop_reason": reason}
        self.emit_of(session, thread, f"session.thread_status_{status}", status=thread["status"], **told)

    def emit_of(self, session: Session, thread: Body, kind: str, **told: Any) -> Body:
        return self.emit(session, kind, session_thread_id=thread["id"], **told)

    async def fork(self, session: Session, asking: bool) -> None:
        self.open_span(session)
        given = {"agent_name": self.child_name, "message": "Look it up."}
        call = self.emit(session, "agent.tool_use", name="create_agent", input=given, evaluated_permission="allow")
        self.close_span(session)
        parent = self.coordinator(session)["id"]
        child = self.open_thread(session, self.child_name, parent, call["id"])
        self.announce(session, child)
        ends = {"from_session_thread_id": parent, "to_session_thread_id": child["id"]}
        sent = {"direction": "coordinator_to_child", "content": [{"type": "text", "text": "Look it up."}]}
        self.emit_of(session, child, "agent.thread_message_sent", **sent, **ends)
        self.move(session, child, "running", {})
        if asking:
            await self.ask_from(session, child)
        await self.speak(session, Speak("text", words("It is found.")), session_thread_id=child["id"])
        self.close_span(session)
        self.move(session, child, "idle", {"type": "end_turn"})
        ends = {"from_session_thread_id": child["id"], "to_session_thread_id": parent}
        heard = {"direction": "child_to_parent", "content": [{"type": "text", "text": "It is found."}]}
        self.emit_of(session, child, "agent.thread_message_received", **heard, is_error=False, **ends)
        self.settle(session, call, is_allowed=True)

    def finish(self, session: Session, reason: Body) -> None:
        """The threads that were still at work end with the turn."""
        for thread in session.threads.values():
            if thread["role"] == "child" and thread["stop_reason"].get("type") in (None, "requires_action"):
                self.move(session, thread, "idle", reason)
        self.coordinator(session)["stop_reason"] = reason
        super().finish(session, reason)

    def announce(self, session: Session, child: Body) -> None:
        told = {name: child[name] for name in ("parent_thread_id", "agent_id", "agent_version", "role")}
        told |= {"agent_name": child["name"], "created_by_tool_use_id": child["created_by_tool_use_id"]}
        self.emit_of(session, child, "session.thread_created", **told)

    async def ask_from(self, session: Session, child: Body) -> None:
        """The child must ask before it goes on."""
        told = {"name": "calc", "input": {"expression": "1 + 1"}, "evaluated_permission": "ask"}
        call = self.emit_of(session, child, "agent.tool_use", **told)
        session.pending[call["id"]] = call
        self.move(session, child, "idle", {"type": "requires_action", "event_ids": [call["id"]]})
        await self.wait(session)
        self.move(session, child, "running", {})
