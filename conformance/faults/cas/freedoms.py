"""More CAS servers that are right in their own way: other spellings, other company for events, less of everything."""

import asyncio
import re
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body, Talk, now
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.turns import BUSY
from conformance.faults.ledger import Refusal
from conformance.faults.script import Speak

TIME = re.compile(rb"\.\d+Z\"")
BESIDE = ("usage", "outcome_evaluations")
SPANS = ("span.model_request_start", "span.model_request_end")


def respelled(told: Any) -> Any:
    """The same value with its keys the other way round."""
    if isinstance(told, dict):
        return {name: respelled(told[name]) for name in reversed(told)}
    return [respelled(item) for item in told] if isinstance(told, list) else told


def spelled(told: Any) -> bytes:
    return TIME.sub(b'+00:00"', orjson.dumps(respelled(told)))


class OtherSpelling(CasServer):
    """Keys come in another order, and times in whole seconds with +00:00."""

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            response.body = spelled(orjson.loads(response.body))
        return response

    def frame(self, body: Body) -> bytes:
        head, _, _ = super().frame(body).partition(b"data: ")
        return head + b"data: " + spelled(body) + b"\n\n"


class OpaquePages(CasServer):
    """next_page is a token of its own, not an id."""

    def envelope(self, data: list[Body], has_more: bool) -> Body:
        page = super().envelope(data, has_more)
        return page | {"next_page": page["next_page"] and f"more.{page['next_page'][::-1]}"}

    def cursor(self, request: web.Request) -> tuple[str, str] | None:
        found = super().cursor(request)
        return ("page", found[1].removeprefix("more.")[::-1]) if found and found[0] == "page" else found


class ManyMessages(CasServer):
    """What the agent says in a turn comes in several messages."""

    async def speak(self, talk: Talk, move: Speak, is_broken: bool = False, **about: Any) -> None:
        if move.kind == "text" and len(move.pieces) > 1 and not is_broken:
            await super().speak(talk, Speak(move.kind, move.pieces[:1], move.pause), **about)
            move = Speak(move.kind, move.pieces[1:], move.pause)
        await super().speak(talk, move, is_broken, **about)


class Company(CasServer):
    """Turns have events of a type nobody knows, and a session tells that it was updated when a turn is over."""

    def go(self, talk: Talk) -> None:
        super().go(talk)
        self.emit(talk, "agent.progress", percent=0)

    def finish(self, talk: Talk, reason: Body) -> None:
        super().finish(talk, reason)
        self.emit(talk, "session.updated")


class ThreadsNamed(CasServer):
    """Every event names its thread, the coordinator's too; a finished child counts as terminated."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        return {"session_thread_id": self.coordinator(talk)["id"]} | super().event(talk, kind, **told)

    def shown_thread(self, talk: Talk, thread: Body) -> Body:
        shown = super().shown_thread(talk, thread)
        is_done = shown["role"] == "child" and shown["stop_reason"] == {"type": "end_turn"}
        return shown | ({"status": "terminated"} if is_done else {})


class ProcessedLater(CasServer):
    """What a client posts is processed later, and has no turn_id but null where it belongs to no turn."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        event = {"turn_id": None} | super().event(talk, kind, **told)
        return event | {"processed_at": None} if kind.startswith("user.") else event

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        return [event | {"processed_at": now()} for event in super().chosen(request, events)]


class OtherEndings(CasServer):
    """A message ends the turn that waits, an idle follows every answer, and a denied call has no result at all."""

    def check_room(self, talk: Talk) -> None:
        if not talk.is_waiting:
            super().check_room(talk)

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        talk = self.find(request)
        if talk.is_waiting and talk.task is not None and "user.message" in await request.text():
            await self.give_up(talk, talk.task)
        return await super().post_events(request)

    async def give_up(self, talk: Talk, task: "asyncio.Task[None]") -> None:
        """End the turn that waits, before anything else is said."""
        self.stop(talk)
        await asyncio.wait({task})

    def take_all(self, talk: Talk, events: list[Body]) -> list[Body]:
        taken = super().take_all(talk, events)
        if talk.answers and not self.is_settled(talk):
            self.store(talk, self.idle(talk, {"type": "requires_action", "event_ids": self.left(talk)}))
        return taken

    def left(self, talk: Talk) -> list[str]:
        """What still waits for an answer."""
        return [name for name in talk.pending if name not in talk.answers]

    def settle(self, talk: Talk, call: Body, is_allowed: bool, words: str = "") -> None:
        if is_allowed:
            super().settle(talk, call, is_allowed, words)


class OtherWords(CasServer):
    """Refusals have words of their own, and name a parameter."""

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        told = orjson.loads(super().refusal(request, status, words).body)  # type: ignore[arg-type]
        told["error"] |= {"message": words if words == BUSY else f"Sorry: {words}", "param": "events"}
        return reply(told, status)


class Sparse(CasServer):
    """Sessions, resources and events have what they must have, and nothing beside."""

    def shown(self, talk: Talk) -> Body:
        view = {name: value for name, value in super().shown(talk).items() if name not in BESIDE}
        kept = ("type", "file_id", "path", "url", "mount_path")
        resources = [{name: item[name] for name in kept if name in item} for item in view["resources"]]
        return view | {"resources": resources}

    def store(self, talk: Talk, event: Body) -> None:
        is_running = event["type"] == "session.status_running"
        super().store(talk, {name: value for name, value in event.items() if name != "status" or not is_running})


class Sparing(Sparse):
    """Does without all that is only a SHOULD: spans, pieces, request ids, repeated requests, vaults and the rest."""

    def store(self, talk: Talk, event: Body) -> None:
        if event["type"] not in SPANS:
            super().store(talk, event)

    def offer(self, talk: Talk, form: str, final: Body, body: Body) -> None:
        return None

    def repeat_key(self, request: web.Request) -> str | None:
        return None

    async def stamp(self, request: web.Request, response: web.StreamResponse) -> None:
        return None

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        parts = request.path.removeprefix(self.mount).strip("/").split("/")
        if parts[0] in ("vaults", "memory_stores") or parts[2:3] in (["cancel"], ["resources"]):
            return web.Response(status=404, text="There is no such thing here.")
        return await super().answer(request, handler)

    async def get_thread_stream(self, request: web.Request) -> web.StreamResponse:
        raise Refusal(404, "Threads have no streams here.")


WHOLE = (
    OtherSpelling,
    OpaquePages,
    ManyMessages,
    Company,
    ThreadsNamed,
    ProcessedLater,
    OtherEndings,
    OtherWords,
)
SPARING = (Sparse, Sparing)
"""Servers that leave out what is only a SHOULD."""
