"""Events from clients of the CAS reference server: checked together, taken together, answered in order."""

import asyncio
from typing import Any

from aiohttp import web

from conformance.faults.cas.front import Front, given_list, reply
from conformance.faults.cas.journal import Journal
from conformance.faults.cas.player import Player
from conformance.faults.cas.sessions import Sessions
from conformance.faults.cas.state import Body, Session, mint
from conformance.faults.cas.streams import Streams
from conformance.faults.content import as_blocks, text_of
from conformance.faults.refusal import Refusal
from conformance.faults.script import script

BUSY = "Session is currently processing a turn. Cancel the current turn or wait for completion."
ANSWERS = {"user.tool_confirmation": "tool_use_id", "user.custom_tool_result": "custom_tool_use_id"}


class Turns:
    """Takes the events that clients post, and lists all events."""

    def __init__(self, front: Front, sessions: Sessions, journal: Journal, player: Player, streams: Streams) -> None:
        self.front = front
        self.sessions = sessions
        self.journal = journal
        self.player = player
        self.streams = streams

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        session = self.sessions.find(request)
        events = (await self.front.read(request)).get("events")
        self.check_events(events)
        self.check_open(session)
        return reply({"data": self.take_all(session, events or [])}, 202)

    def take_all(self, session: Session, events: list[Body]) -> list[Body]:
        """Take all events, or none."""
        for event in events:
            self.check_event(session, event)
        return [self.take(session, event) for event in events]

    def check_events(self, events: Any) -> None:
        if not isinstance(events, list) or not events or not all(isinstance(event, dict) for event in events):
            raise Refusal(400, "events must be a list of at least one event.")

    def check_open(self, session: Session) -> None:
        if session.view["archived_at"] is not None:
            raise Refusal(409, "Session is archived.")

    def check_event(self, session: Session, event: Body) -> None:
        match event.get("type"):
            case "user.message":
                self.check_message(session, event)
            case "user.tool_confirmation":
                self.check_confirmation(event)
                self.check_pending(session, event)
            case "user.custom_tool_result":
                self.check_pending(session, event)
            case "user.interrupt" | "user.define_outcome":
                return
            case kind:
                self.unknown(session, kind)

    def unknown(self, session: Session, kind: Any) -> None:
        raise Refusal(400, f"There is no event type {kind!r}.")

    def check_message(self, session: Session, event: Body) -> None:
        self.check_content(event)
        self.check_room(session)

    def check_content(self, event: Body) -> None:
        content = event.get("content")
        if not isinstance(content, str | list) or not content:
            raise Refusal(400, "content is required.")

    def check_room(self, session: Session) -> None:
        if session.is_busy:
            raise Refusal(409, BUSY)

    def check_confirmation(self, event: Body) -> None:
        if event.get("result") not in ("allow", "deny"):
            raise Refusal(400, "result must be allow or deny.")

    def check_pending(self, session: Session, event: Body) -> None:
        if event.get(ANSWERS[event["type"]]) not in session.pending:
            raise Refusal(400, "Nothing of that id is waiting for an answer.")

    def take(self, session: Session, event: Body) -> Body:
        match event["type"]:
            case "user.message":
                return self.begin_turn(session, event)
            case "user.interrupt":
                return self.interrupt(session, event)
            case "user.define_outcome":
                return self.journal.emit(session, event["type"], **self.extras(event))
            case _:
                return self.take_answer(session, event)

    def extras(self, event: Body) -> Body:
        return {name: value for name, value in event.items() if name != "type"}

    def begin_turn(self, session: Session, event: Body) -> Body:
        """A message begins a turn."""
        session.turn_id = mint("turn")
        stored = self.journal.emit(session, "user.message", content=self.kept(event["content"]))
        moves = script(text_of(event["content"])).moves
        session.task = asyncio.create_task(self.player.play(session, moves))
        return stored

    def kept(self, content: Any) -> Any:
        return as_blocks(content)

    def interrupt(self, session: Session, event: Body) -> Body:
        stored = self.journal.emit(session, "user.interrupt")
        self.stop(session)
        return stored

    def stop(self, session: Session) -> None:
        if session.is_busy and session.task is not None:
            session.show(turn_status="canceling")
            session.task.cancel()

    def take_answer(self, session: Session, event: Body) -> Body:
        members = {name: value for name, value in event.items() if name != "type"}
        if event["type"] == "user.custom_tool_result":
            members["content"] = self.kept_result(event.get("content"))
        stored = self.journal.emit(session, event["type"], **members)
        session.answers[event[ANSWERS[event["type"]]]] = stored
        if self.is_settled(session):
            session.answered.set()
        return stored

    def kept_result(self, content: Any) -> Any:
        return as_blocks(content) if content else []

    def is_settled(self, session: Session) -> bool:
        return set(session.answers) >= set(session.pending)

    async def post_cancel(self, request: web.Request) -> web.StreamResponse:
        session = self.sessions.find(request)
        status = self.cancel(session)
        return reply({"id": session.view["id"], "type": "session", "status": "canceling"}, status)

    def cancel(self, session: Session) -> int:
        """End the turn, if there is one; the status of the answer."""
        status = 202 if session.is_busy else 200
        self.stop(session)
        return status

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        session = self.sessions.find(request)
        if self.wants_stream(request):
            return await self.streams.follow(request, session)
        return reply(self.front.page(request, self.chosen(request, session.events)))

    def wants_stream(self, request: web.Request) -> bool:
        return "text/event-stream" in request.headers.get("Accept", "")

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        """The events asked for, in the order asked for."""
        kinds = [*given_list(request, "types"), *given_list(request, "type")]
        found = [event for event in events if not kinds or event["type"] in kinds]
        return found[::-1] if request.query.get("order") == "desc" else found
