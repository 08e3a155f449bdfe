"""CAS servers that differ from the reference in ways the protocol allows: the examiners must find nothing wrong.

The variations: extra fields everywhere, also of other generations; fields that need not be
there left out; keys in any order; times in any form of RFC 3339 in UTC; ids and page tokens of any shape; comments,
retry hints, CRLF and heartbeats at any pace; deltas of any size, of either kind, replayed or not; one message or many,
of one block or many; one model request per turn or many; results as strings or blocks, denied calls with a result or
without; variables as objects taken or refused; other statuses and words for refusals; events of unknown types, and
sessions that tell of themselves before, between and after turns; threads named on every event or on those of children;
waiting children idle or blocked, finished ones idle or terminated; messages refused while a call waits or taken in its
place, an idle after every answer or after none; what is posted processed at once or later; and all that is only
a SHOULD left out.
"""

import asyncio
import re
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Item, Session, now
from conformance.faults.cas.turns import BUSY
from conformance.faults.refusal import Refusal
from conformance.faults.script import Speak

TIME = re.compile(rb"\.\d+Z\"")
BESIDE = ("usage", "outcome_evaluations")
SPANS = ("span.model_request_start", "span.model_request_end")


class ExtraFields(CasServer):
    """Every body and every event has fields of other generations."""

    def shown(self, session: Session) -> Body:
        return super().shown(session) | {"deployment_id": None, "budget": {"tokens": 1}}

    def event(self, session: Session, kind: str, **told: Any) -> Body:
        return super().event(session, kind, **told) | {"trace_id": "t", "sequence": 1}

    def shown_thread(self, session: Session, thread: Body) -> Body:
        return super().shown_thread(session, thread) | {"usage": {}}

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        told = orjson.loads(super().refusal(request, status, words).body)  # type: ignore[arg-type]
        told["error"] |= {"param": None, "code": "refused"}
        return reply(told, status)


class Chatty(CasServer):
    """Streams have comments, retry hints, CRLF line ends and many heartbeats."""

    heartbeat = 0.05

    def frame(self, body: Body) -> bytes:
        return (b": next\nretry: 100\n" + super().frame(body)).replace(b"\n", b"\r\n")


class ObjectsRefused(CasServer):
    """Variables must be a string, as the schema page has it."""

    def from_object(self, given: Body) -> dict[str, str]:
        raise Refusal(400, "environment_variables must be a string.")


class SmallPieces(CasServer):
    """Deltas are single characters, thoughts have deltas of their own kind, and a message has two blocks."""

    async def speak(self, session: Session, move: Speak, is_broken: bool = False, **about: Any) -> None:
        pieces = tuple(piece for whole in move.pieces for piece in (whole if not move.pause else [whole]))
        await super().speak(session, Speak(move.kind, pieces, move.pause), is_broken, **about)

    def offer(self, session: Session, form: str, final: Body, body: Body) -> None:
        if body["type"] == "event_delta" and final["type"] == "agent.thinking":
            content = {"type": "thinking", "thinking": body["delta"]["content"]["text"]}
            body = body | {"delta": body["delta"] | {"content": content}}
        super().offer(session, form, final, body)

    def store(self, session: Session, event: Body) -> None:
        if event["type"] == "agent.message":
            text = event["content"][0]["text"]
            blocks = [{"type": "text", "text": part} for part in (text[:3], text[3:])]
            event = event | {"content": blocks}
        super().store(session, event)


class PiecesReplayed(CasServer):
    """Replays have the pieces of events too, and pieces bear the id of their event."""

    def is_shown(self, item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool) -> bool:
        return super().is_shown(item, session, thread, forms, is_old=False)

    def offer(self, session: Session, form: str, final: Body, body: Body) -> None:
        super().offer(session, form, final, {"id": final["id"], **body})


class ManySpans(CasServer):
    """Every piece of speech is a model request of its own."""

    async def speak(self, session: Session, move: Speak, is_broken: bool = False, **about: Any) -> None:
        await super().speak(session, move, is_broken, **about)
        if not is_broken:
            self.close_span(session)


class OtherStatuses(CasServer):
    """What is made is a 200 (sessions excepted), and an unknown version is a 400."""

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        if response.status == 201 and not request.path.endswith("/sessions"):
            response.set_status(200)
        return response

    def version(self, name: str, number: int = 0) -> Body:
        try:
            return super().version(name, number)
        except Refusal as refusal:
            raise Refusal(400 if number else 404, refusal.words) from None


class PlainResults(CasServer):
    """Results are strings, retry_status is a word, and a child that waits is blocked."""

    def store(self, session: Session, event: Body) -> None:
        if event["type"] == "agent.tool_result":
            event = event | {"content": event["content"][0]["text"]}
        super().store(session, event)

    def error(self) -> Body:
        return super().error() | {"retry_status": "exhausted"}

    def move(self, session: Session, thread: Body, status: str, reason: Body, shown: str | None = None) -> None:
        is_waiting = reason.get("type") == "requires_action"
        super().move(session, thread, status, reason, "blocked" if is_waiting else shown)


class Prologue(CasServer):
    """A session begins with an event of its own, and an update is an event."""

    def new(self, body: Body) -> Session:
        session = super().new(body)
        session.add(Item(self.event(session, "session.updated")))
        return session

    async def update_session(self, request: web.Request) -> web.StreamResponse:
        response = await super().update_session(request)
        self.emit(self.find(request), "session.updated")
        return response


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

    async def speak(self, session: Session, move: Speak, is_broken: bool = False, **about: Any) -> None:
        if move.kind == "text" and len(move.pieces) > 1 and not is_broken:
            await super().speak(session, Speak(move.kind, move.pieces[:1], move.pause), **about)
            move = Speak(move.kind, move.pieces[1:], move.pause)
        await super().speak(session, move, is_broken, **about)


class Company(CasServer):
    """Turns have events of a type nobody knows, and an event says that the session was updated when a turn is over."""

    def go(self, session: Session) -> None:
        super().go(session)
        self.emit(session, "agent.progress", percent=0)

    def finish(self, session: Session, reason: Body) -> None:
        super().finish(session, reason)
        self.emit(session, "session.updated")


class ThreadsNamed(CasServer):
    """Every event names its thread, the coordinator's too; a finished child counts as terminated."""

    def event(self, session: Session, kind: str, **told: Any) -> Body:
        return {"session_thread_id": self.coordinator(session)["id"]} | super().event(session, kind, **told)

    def shown_thread(self, session: Session, thread: Body) -> Body:
        shown = super().shown_thread(session, thread)
        is_done = shown["role"] == "child" and shown["stop_reason"] == {"type": "end_turn"}
        return shown | ({"status": "terminated"} if is_done else {})


class ProcessedLater(CasServer):
    """What a client posts is processed later, and has no turn_id but null where it belongs to no turn."""

    def event(self, session: Session, kind: str, **told: Any) -> Body:
        event = {"turn_id": None} | super().event(session, kind, **told)
        return event | {"processed_at": None} if kind.startswith("user.") else event

    def chosen(self, request: web.Request, events: list[Body]) -> list[Body]:
        return [event | {"processed_at": now()} for event in super().chosen(request, events)]


class OtherEndings(CasServer):
    """A message ends the turn that waits, an idle follows every answer, and a denied call has no result at all."""

    def check_room(self, session: Session) -> None:
        if not session.is_waiting:
            super().check_room(session)

    async def post_events(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        if session.is_waiting and session.task is not None and "user.message" in await request.text():
            await self.give_up(session, session.task)
        return await super().post_events(request)

    async def give_up(self, session: Session, task: "asyncio.Task[None]") -> None:
        """End the turn that waits, before anything else is said."""
        self.stop(session)
        await asyncio.wait({task})

    def take_all(self, session: Session, events: list[Body]) -> list[Body]:
        taken = super().take_all(session, events)
        if session.answers and not self.is_settled(session):
            self.store(session, self.idle(session, {"type": "requires_action", "event_ids": self.left(session)}))
        return taken

    def left(self, session: Session) -> list[str]:
        """What still waits for an answer."""
        return [name for name in session.pending if name not in session.answers]

    def settle(self, session: Session, call: Body, is_allowed: bool, words: str = "") -> None:
        if is_allowed:
            super().settle(session, call, is_allowed, words)


class OtherWords(CasServer):
    """Refusals have words of their own, and name a parameter."""

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        told = orjson.loads(super().refusal(request, status, words).body)  # type: ignore[arg-type]
        told["error"] |= {"message": words if words == BUSY else f"Sorry: {words}", "param": "events"}
        return reply(told, status)


class Sparse(CasServer):
    """Sessions, resources and events have what they must have, and nothing beside."""

    def shown(self, session: Session) -> Body:
        view = {name: value for name, value in super().shown(session).items() if name not in BESIDE}
        kept = ("type", "file_id", "path", "url", "mount_path")
        resources = [{name: item[name] for name in kept if name in item} for item in view["resources"]]
        return view | {"resources": resources}

    def store(self, session: Session, event: Body) -> None:
        is_running = event["type"] == "session.status_running"
        super().store(session, {name: value for name, value in event.items() if name != "status" or not is_running})


class Sparing(Sparse):
    """Does without all that is only a SHOULD: spans, pieces, request ids, repeated requests, vaults and the rest."""

    def store(self, session: Session, event: Body) -> None:
        if event["type"] not in SPANS:
            super().store(session, event)

    def offer(self, session: Session, form: str, final: Body, body: Body) -> None:
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


VARIATIONS = (
    ExtraFields,
    Chatty,
    ObjectsRefused,
    SmallPieces,
    PiecesReplayed,
    ManySpans,
    OtherStatuses,
    PlainResults,
    Prologue,
    OtherSpelling,
    OpaquePages,
    ManyMessages,
    Company,
    ThreadsNamed,
    ProcessedLater,
    OtherEndings,
    OtherWords,
    Sparse,
    Sparing,
)
