"""CAS servers that differ from the reference in ways the protocol allows: the examiners must find nothing wrong.

The freedoms taken, here and in `freedoms`: extra fields everywhere, also of other generations; fields that need not be
there left out; keys in any order; times in any form of RFC 3339 in UTC; ids and page tokens of any shape; comments,
retry hints, CRLF and heartbeats at any pace; deltas of any size, of either kind, replayed or not; one message or many,
of one block or many; one model request per turn or many; results as strings or blocks, denied calls with a result or
without; variables as objects taken or refused; other statuses and words for refusals; events of unknown types, and
sessions that tell of themselves before, between and after turns; threads named on every event or on those of children;
waiting children idle or blocked, finished ones idle or terminated; messages refused while a call waits or taken in its
place, an idle after every answer or after none; what is posted processed at once or later; and all that is only
a SHOULD left out.
"""

from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas import freedoms
from conformance.faults.cas.front import reply
from conformance.faults.cas.memory import Body, Item, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.ledger import Refusal
from conformance.faults.script import Speak


class ExtraFields(CasServer):
    """Every body and every event has fields of other generations."""

    def shown(self, talk: Talk) -> Body:
        return super().shown(talk) | {"deployment_id": None, "budget": {"tokens": 1}}

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        return super().event(talk, kind, **told) | {"trace_id": "t", "sequence": 1}

    def shown_thread(self, talk: Talk, thread: Body) -> Body:
        return super().shown_thread(talk, thread) | {"usage": {}}

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

    async def speak(self, talk: Talk, move: Speak, is_broken: bool = False, **about: Any) -> None:
        pieces = tuple(piece for whole in move.pieces for piece in (whole if not move.pause else [whole]))
        await super().speak(talk, Speak(move.kind, pieces, move.pause), is_broken, **about)

    def offer(self, talk: Talk, form: str, final: Body, body: Body) -> None:
        if body["type"] == "event_delta" and final["type"] == "agent.thinking":
            content = {"type": "thinking", "thinking": body["delta"]["content"]["text"]}
            body = body | {"delta": body["delta"] | {"content": content}}
        super().offer(talk, form, final, body)

    def store(self, talk: Talk, event: Body) -> None:
        if event["type"] == "agent.message":
            text = event["content"][0]["text"]
            blocks = [{"type": "text", "text": part} for part in (text[:3], text[3:])]
            event = event | {"content": blocks}
        super().store(talk, event)


class PiecesReplayed(CasServer):
    """Replays have the pieces of events too, and pieces bear the id of their event."""

    def is_shown(self, item: Item, talk: Talk, thread: str | None, forms: set[str], is_old: bool) -> bool:
        return super().is_shown(item, talk, thread, forms, is_old=False)

    def offer(self, talk: Talk, form: str, final: Body, body: Body) -> None:
        super().offer(talk, form, final, {"id": final["id"], **body})


class ManySpans(CasServer):
    """Every piece of speech is a model request of its own."""

    async def speak(self, talk: Talk, move: Speak, is_broken: bool = False, **about: Any) -> None:
        await super().speak(talk, move, is_broken, **about)
        if not is_broken:
            self.close_span(talk)


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

    def store(self, talk: Talk, event: Body) -> None:
        if event["type"] == "agent.tool_result":
            event = event | {"content": event["content"][0]["text"]}
        super().store(talk, event)

    def error(self) -> Body:
        return super().error() | {"retry_status": "exhausted"}

    def move(self, talk: Talk, thread: Body, status: str, reason: Body, shown: str | None = None) -> None:
        is_waiting = reason.get("type") == "requires_action"
        super().move(talk, thread, status, reason, "blocked" if is_waiting else shown)


class Prologue(CasServer):
    """A session begins with an event of its own, and an update is told."""

    def new(self, body: Body) -> Talk:
        talk = super().new(body)
        talk.add(Item(self.event(talk, "session.updated")))
        return talk

    async def update_session(self, request: web.Request) -> web.StreamResponse:
        response = await super().update_session(request)
        self.emit(self.find(request), "session.updated")
        return response


WHOLE = (
    ExtraFields,
    Chatty,
    ObjectsRefused,
    SmallPieces,
    PiecesReplayed,
    ManySpans,
    OtherStatuses,
    PlainResults,
    Prologue,
    *freedoms.WHOLE,
)
LIBERTIES = (*WHOLE, *freedoms.SPARING)
