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
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas.front import reply
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Item, Session, now
from conformance.faults.cas.turns import BUSY
from conformance.faults.refusal import Refusal
from conformance.faults.script import Speak
from conformance.faults.steps import AsyncStep, Step, variants

Answer = AsyncStep[web.StreamResponse]
TIME = re.compile(rb"\.\d+Z\"")
BESIDE = ("usage", "outcome_evaluations")
SPANS = ("span.model_request_start", "span.model_request_end")


class ExtraFields:
    """Every body and every event has fields of other generations."""

    def shown(self, step: Step[Body], session: Session) -> Body:
        return step(session) | {"deployment_id": None, "budget": {"tokens": 1}}

    def event(self, step: Step[Body], session: Session, kind: str, **members: Any) -> Body:
        return step(session, kind, **members) | {"trace_id": "t", "sequence": 1}

    def shown_thread(self, step: Step[Body], session: Session, thread: Body) -> Body:
        return step(session, thread) | {"usage": {}}

    def refusal(self, step: Step[web.Response], request: web.Request, status: int, words: str) -> web.Response:
        members = orjson.loads(step(request, status, words).body)  # type: ignore[arg-type]
        members["error"] |= {"param": None, "code": "refused"}
        return reply(members, status)


class Chatty:
    """Streams have comments, retry hints, CRLF line ends and many heartbeats."""

    heartbeat = 0.05

    def frame(self, step: Step[bytes], body: Body) -> bytes:
        return (b": next\nretry: 100\n" + step(body)).replace(b"\n", b"\r\n")


class ObjectsRefused:
    """Variables must be a string, as the schema page has it."""

    def from_object(self, step: Step[dict[str, str]], given: Body) -> dict[str, str]:
        raise Refusal(400, "environment_variables must be a string.")


class SmallPieces:
    """Deltas are single characters, thoughts have deltas of their own kind, and a message has two blocks."""

    async def speak(
        self, step: AsyncStep[None], session: Session, move: Speak, is_broken: bool = False, **about: Any
    ) -> None:
        pieces = tuple(piece for whole in move.pieces for piece in (whole if not move.pause else [whole]))
        await step(session, Speak(move.kind, pieces, move.pause), is_broken, **about)

    def offer(self, step: Step[None], session: Session, form: str, final: Body, body: Body) -> None:
        if body["type"] == "event_delta" and final["type"] == "agent.thinking":
            content = {"type": "thinking", "thinking": body["delta"]["content"]["text"]}
            body = body | {"delta": body["delta"] | {"content": content}}
        step(session, form, final, body)

    def store(self, step: Step[None], session: Session, event: Body) -> None:
        if event["type"] == "agent.message":
            text = event["content"][0]["text"]
            blocks = [{"type": "text", "text": part} for part in (text[:3], text[3:])]
            event = event | {"content": blocks}
        step(session, event)


class PiecesReplayed:
    """Replays have the pieces of events too, and pieces bear the id of their event."""

    def is_shown(
        self, step: Step[bool], item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool
    ) -> bool:
        return step(item, session, thread, forms, is_old=False)

    def offer(self, step: Step[None], session: Session, form: str, final: Body, body: Body) -> None:
        step(session, form, final, {"id": final["id"], **body})


@dataclass
class ManySpans:
    """Every piece of speech is a model request of its own."""

    server: CasServer

    async def speak(
        self, step: AsyncStep[None], session: Session, move: Speak, is_broken: bool = False, **about: Any
    ) -> None:
        await step(session, move, is_broken, **about)
        if not is_broken:
            self.server.journal.close_span(session)


class OtherStatuses:
    """What is made is a 200 (sessions excepted), and an unknown version is a 400."""

    async def answer(self, step: Answer, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await step(request, handler)
        if response.status == 201 and not request.path.endswith("/sessions"):
            response.set_status(200)
        return response

    def version(self, step: Step[Body], name: str, number: int = 0) -> Body:
        try:
            return step(name, number)
        except Refusal as refusal:
            raise Refusal(400 if number else 404, refusal.words) from None


class PlainResults:
    """Results are strings, retry_status is a word, and a child that waits is blocked."""

    def store(self, step: Step[None], session: Session, event: Body) -> None:
        if event["type"] == "agent.tool_result":
            event = event | {"content": event["content"][0]["text"]}
        step(session, event)

    def error(self, step: Step[Body]) -> Body:
        return step() | {"retry_status": "exhausted"}

    def move(
        self, step: Step[None], session: Session, thread: Body, status: str, reason: Body, shown: str | None = None
    ) -> None:
        is_waiting = reason.get("type") == "requires_action"
        step(session, thread, status, reason, "blocked" if is_waiting else shown)


@dataclass
class Prologue:
    """A session begins with an event of its own, and an update is an event."""

    server: CasServer

    def new(self, step: Step[Session], body: Body) -> Session:
        session = step(body)
        session.add(Item(self.server.journal.event(session, "session.updated")))
        return session

    async def update_session(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        response = await step(request)
        self.server.journal.emit(self.server.sessions.find(request), "session.updated")
        return response


def respelled(members: Any) -> Any:
    """The same value with its keys the other way round."""
    if isinstance(members, dict):
        return {name: respelled(members[name]) for name in reversed(members)}
    return [respelled(item) for item in members] if isinstance(members, list) else members


def spelled(members: Any) -> bytes:
    return TIME.sub(b'+00:00"', orjson.dumps(respelled(members)))


class OtherSpelling:
    """Keys come in another order, and times in whole seconds with +00:00."""

    async def answer(self, step: Answer, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await step(request, handler)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            response.body = spelled(orjson.loads(response.body))
        return response

    def frame(self, step: Step[bytes], body: Body) -> bytes:
        head, _, _ = step(body).partition(b"data: ")
        return head + b"data: " + spelled(body) + b"\n\n"


class OpaquePages:
    """next_page is a token of its own, not an id."""

    def envelope(self, step: Step[Body], data: list[Body], has_more: bool) -> Body:
        page = step(data, has_more)
        return page | {"next_page": page["next_page"] and f"more.{page['next_page'][::-1]}"}

    def cursor(self, step: Step[tuple[str, str] | None], request: web.Request) -> tuple[str, str] | None:
        found = step(request)
        return ("page", found[1].removeprefix("more.")[::-1]) if found and found[0] == "page" else found


class ManyMessages:
    """What the agent says in a turn comes in several messages."""

    async def speak(
        self, step: AsyncStep[None], session: Session, move: Speak, is_broken: bool = False, **about: Any
    ) -> None:
        if move.kind == "text" and len(move.pieces) > 1 and not is_broken:
            await step(session, Speak(move.kind, move.pieces[:1], move.pause), **about)
            move = Speak(move.kind, move.pieces[1:], move.pause)
        await step(session, move, is_broken, **about)


@dataclass
class Company:
    """Turns have events of a type nobody knows, and an event says that the session was updated when a turn is over."""

    server: CasServer

    def go(self, step: Step[None], session: Session) -> None:
        step(session)
        self.server.journal.emit(session, "agent.progress", percent=0)

    def finish(self, step: Step[None], session: Session, reason: Body) -> None:
        step(session, reason)
        self.server.journal.emit(session, "session.updated")


@dataclass
class ThreadsNamed:
    """Every event names its thread, the coordinator's too; a finished child counts as terminated."""

    server: CasServer

    def event(self, step: Step[Body], session: Session, kind: str, **members: Any) -> Body:
        return {"session_thread_id": self.server.threads.coordinator(session)["id"]} | step(session, kind, **members)

    def shown_thread(self, step: Step[Body], session: Session, thread: Body) -> Body:
        shown = step(session, thread)
        is_done = shown["role"] == "child" and shown["stop_reason"] == {"type": "end_turn"}
        return shown | ({"status": "terminated"} if is_done else {})


class ProcessedLater:
    """What a client posts is processed later, and has no turn_id but null where it belongs to no turn."""

    def event(self, step: Step[Body], session: Session, kind: str, **members: Any) -> Body:
        event = {"turn_id": None} | step(session, kind, **members)
        return event | {"processed_at": None} if kind.startswith("user.") else event

    def chosen(self, step: Step[list[Body]], request: web.Request, events: list[Body]) -> list[Body]:
        return [event | {"processed_at": now()} for event in step(request, events)]


@dataclass
class OtherEndings:
    """A message ends the turn that waits, an idle follows every answer, and a denied call has no result at all."""

    server: CasServer

    def check_room(self, step: Step[None], session: Session) -> None:
        if not session.is_waiting:
            step(session)

    async def post_events(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        session = self.server.sessions.find(request)
        if session.is_waiting and session.task is not None and "user.message" in await request.text():
            self.server.turns.stop(session)
            await asyncio.wait({session.task})
        return await step(request)

    def take_all(self, step: Step[list[Body]], session: Session, events: list[Body]) -> list[Body]:
        taken = step(session, events)
        if session.answers and not self.server.turns.is_settled(session):
            left = [name for name in session.pending if name not in session.answers]
            idle = self.server.journal.idle(session, {"type": "requires_action", "event_ids": left})
            self.server.journal.store(session, idle)
        return taken

    def settle(self, step: Step[None], session: Session, call: Body, is_allowed: bool, words: str = "") -> None:
        if is_allowed:
            step(session, call, is_allowed, words)


class OtherWords:
    """Refusals have words of their own, and name a parameter."""

    def refusal(self, step: Step[web.Response], request: web.Request, status: int, words: str) -> web.Response:
        members = orjson.loads(step(request, status, words).body)  # type: ignore[arg-type]
        members["error"] |= {"message": words if words == BUSY else f"Sorry: {words}", "param": "events"}
        return reply(members, status)


class Sparse:
    """Sessions, resources and events have what they must have, and nothing beside."""

    def shown(self, step: Step[Body], session: Session) -> Body:
        view = {name: value for name, value in step(session).items() if name not in BESIDE}
        kept = ("type", "file_id", "path", "url", "mount_path")
        resources = [{name: item[name] for name in kept if name in item} for item in view["resources"]]
        return view | {"resources": resources}

    def store(self, step: Step[None], session: Session, event: Body) -> None:
        is_running = event["type"] == "session.status_running"
        step(session, {name: value for name, value in event.items() if name != "status" or not is_running})


class Sparing:
    """Does without all that is only a SHOULD: spans, pieces, request ids, repeated requests, vaults and the rest."""

    after = Sparse

    def store(self, step: Step[None], session: Session, event: Body) -> None:
        if event["type"] not in SPANS:
            step(session, event)

    def offer(self, step: Step[None], session: Session, form: str, final: Body, body: Body) -> None:
        return None

    def repeat_key(self, step: Step[str | None], request: web.Request) -> str | None:
        return None

    async def stamp(self, step: AsyncStep[None], request: web.Request, response: web.StreamResponse) -> None:
        return None

    async def answer(self, step: Answer, request: web.Request, handler: Any) -> web.StreamResponse:
        parts = request.path.removeprefix(CasServer.mount).strip("/").split("/")
        if parts[0] in ("vaults", "memory_stores") or parts[2:3] in (["cancel"], ["resources"]):
            return web.Response(status=404, text="There is no such thing here.")
        return await step(request, handler)

    async def get_thread_stream(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        raise Refusal(404, "Threads have no streams here.")


VARIATIONS = variants(
    CasServer,
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
