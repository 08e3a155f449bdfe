"""Events from clients of the CAS reference server: checked together, taken together, answered in order."""

import asyncio
from typing import Any

from aiohttp import web

from conformance.faults.cas.front import given_list, reply
from conformance.faults.cas.memory import Body, Talk, mint
from conformance.faults.cas.player import Player
from conformance.faults.ledger import Refusal, as_blocks, text_of
from conformance.faults.script import script

BUSY = "Session is currently processing a turn. Cancel the current turn or wait for completion."
ANSWERS = {"user.tool_confirmation": "tool_use_id", "user.custom_tool_result": "custom_tool_use_id"}


class Turns(Player):
    """What clients may say, and what comes of it."""

    def event_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/sessions/{id}/events", self.post_events),
            web.get("/sessions/{id}/events", self.get_events),
            web.post("/sessions/{id}/cancel", self.post_cancel),
        ]

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        events = (await self.read(request)).get("events")
        self.check_events(events)
        self.check_open(talk)
        return reply({"data": self.take_all(talk, events or [])}, 202)

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        """All or none."""
        for event in events:
            self.check_event(talk, event)
        return [self.take(talk, event) for event in events]

    def check_events(self, events: Any) -> None:
        if not isinstance(events, list) or not events or not all(isinstance(event, dict) for event in events):
            raise Refusal(400, "events must be a list of at least one event.")

    def check_open(self, talk: Talk) -> None:
        if talk.view["archived_at"] is not None:
            raise Refusal(409, "Session is archived.")

    def check_event(self, talk: Talk, event: Body) -> None:
        match event.get("type"):
            case "user.message":
                self.check_message(talk, event)
            case "user.tool_confirmation":
                self.check_confirmation(event)
                self.check_pending(talk, event)
            case "user.custom_tool_result":
                self.check_pending(talk, event)
            case "user.interrupt" | "user.define_outcome":
                return
            case kind:
                self.unknown(talk, kind)

    def unknown(self, talk: Talk, kind: Any) -> None:
        raise Refusal(400, f"There is no event type {kind!r}.")

    def check_message(self, talk: Talk, event: Body) -> None:
        self.check_content(event)
        self.check_room(talk)

    def check_content(self, event: Body) -> None:
        content = event.get("content")
        if not isinstance(content, str | list) or not content:
            raise Refusal(400, "content is required.")

    def check_room(self, talk: Talk) -> None:
        if talk.is_busy:
            raise Refusal(409, BUSY)

    def check_confirmation(self, event: Body) -> None:
        if event.get("result") not in ("allow", "deny"):
            raise Refusal(400, "result must be allow or deny.")

    def check_pending(self, talk: Talk, event: Body) -> None:
        if event.get(ANSWERS[event["type"]]) not in talk.pending:
            raise Refusal(400, "Nothing of that id is waiting for an answer.")

    # -- taking --------------------------------------------------------------------------------------------------------

    def take(self, talk: Talk, event: Body) -> Body:
        match event["type"]:
            case "user.message":
                return self.hear(talk, event)
            case "user.interrupt":
                return self.interrupt(talk, event)
            case "user.define_outcome":
                return self.emit(talk, event["type"], **self.extras(event))
            case _:
                return self.hear_answer(talk, event)

    def extras(self, event: Body) -> Body:
        return {name: value for name, value in event.items() if name != "type"}

    def hear(self, talk: Talk, event: Body) -> Body:
        """A message begins a turn."""
        talk.turn_id = mint("turn")
        stored = self.emit(talk, "user.message", content=self.kept(event["content"]))
        moves = script(text_of(event["content"])).moves
        talk.task = asyncio.create_task(self.play(talk, moves))
        return stored

    def kept(self, content: Any) -> Any:
        return as_blocks(content)

    def interrupt(self, talk: Talk, event: Body) -> Body:
        stored = self.emit(talk, "user.interrupt")
        self.stop(talk)
        return stored

    def stop(self, talk: Talk) -> None:
        if talk.is_busy and talk.task is not None:
            talk.show(turn_status="canceling")
            talk.task.cancel()

    def hear_answer(self, talk: Talk, event: Body) -> Body:
        told = {name: value for name, value in event.items() if name != "type"}
        if event["type"] == "user.custom_tool_result":
            told["content"] = self.kept_result(event.get("content"))
        stored = self.emit(talk, event["type"], **told)
        talk.answers[event[ANSWERS[event["type"]]]] = stored
        if self.is_settled(talk):
            talk.answered.set()
        return stored

    def kept_result(self, content: Any) -> Any:
        return as_blocks(content) if content else []

    def is_settled(self, talk: Talk) -> bool:
        return set(talk.answers) >= set(talk.pending)

    async def post_cancel(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        status = 202 if talk.is_busy else 200
        self.stop(talk)
        return reply({"id": talk.view["id"], "type": "session", "status": "canceling"}, status)

    # -- listing -------------------------------------------------------------------------------------------------------

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        if self.wants_stream(request):
            return await self.follow(request, talk)
        return reply(self.page(request, self.chosen(request, talk.events)))

    def wants_stream(self, request: web.Request) -> bool:
        return "text/event-stream" in request.headers.get("Accept", "")

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        """The events asked for, in the order asked for."""
        kinds = [*given_list(request, "types"), *given_list(request, "type")]
        found = [event for event in events if not kinds or event["type"] in kinds]
        return found[::-1] if request.query.get("order") == "desc" else found

    async def follow(self, request: web.Request, talk: Talk, thread: str | None = None) -> web.StreamResponse:
        raise NotImplementedError
