"""Servers that differ from the reference in ways the specification allows: no MUST may be held against them.

The variations: one message for a run or one for each round; deltas of any size, or none for a result; indexes that
begin anew or go on; numbers left out where deltas were merged; absent message_id, data of message_start and
message_delta mirrors; contents as objects or as JSON in strings; server_tool_use for tool_use; ends of stopped and
broken runs and of streams without session_end; known conversations without conversation_start; unknown members, events
and notifications; comments, pings, event names and ids in streams, ticks at once; times with zones; bare lists; codes
of errors in the body only, and 201 for 200; busy lines that refuse, stop or tell both runs; chats that run on in the
background; management that answers everything.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.faults.zenflux.state import Body, Conversation, Refusal, Session

FINAL = {"completed": "completed", "cancelled": "stopped", "failed": "failed"}


class Editing(ZenfluxServer):
    """A server of which each event of a run may be changed, left out, or followed by others."""

    def edited(self, told: Told) -> Iterable[Told]:
        return (told,)

    async def play(self, session: Session) -> Telling:
        async for told in super().play(session):
            for changed in self.edited(told):
                yield changed


def changed(told: Told, **fields: Any) -> Told:
    """The event with these members of data set."""
    return Told(told.type, {**told.data, **fields}, told.message)


def without(told: Told, *names: str) -> Told:
    """The event without these members of data."""
    return Told(told.type, {name: value for name, value in told.data.items() if name not in names}, told.message)


class OneMessage(Editing):
    """A run is one message; results come whole at the start of their block; tools are the server's own."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        return super().begin(params, has_rounds=False)

    async def block(self, session: Session, *given: Any) -> Telling:
        start, pieces, kept, *pause = given
        if start["type"] == "tool_result":
            start, pieces = kept, ()
        async for told in super().block(session, start, pieces, kept, *pause):
            if told.data.get("delta") != "":
                yield told

    def edited(self, told: Told) -> Iterator[Told]:
        block = told.data.get("content_block", {})
        is_call = block.get("type") == "tool_use"
        yield changed(told, content_block=block | {"type": "server_tool_use"}) if is_call else told

    def note(self, topic: str, content: Any) -> Told:
        """Contents are objects, as in the table, and not mirrored."""
        return Told("message_delta", {"type": topic, "content": content})

    def opened(self, session: Session) -> Told:
        told = super().opened(session)
        return Told(told.type, {}, told.message)

    def envelope(self, session: Session, told: Told) -> Body:
        """message_start has no data, as in its example, and no event names its message."""
        unsaid = {"message_id", *(["data"] if told.type == "message_start" else [])}
        return {name: value for name, value in super().envelope(session, told).items() if name not in unsaid}


class Terse(Editing):
    """Says no more than it must: at the end of runs and streams, in lists, in responses and in statuses."""

    def stopped(self, session: Session) -> Iterator[Told]:
        yield list(super().stopped(session))[-1]

    async def play(self, session: Session) -> Telling:
        """A run that was stopped or broke has no session_end; a known conversation is not introduced."""
        is_known = len(session.conversation.messages) > 1
        last = ""
        async for told in super().play(session):
            if told.type == "session_end" and last in ("session_stopped", "error"):
                return
            if told.type != "conversation_start" or not is_known:
                yield told
            last = told.type

    def edited(self, told: Told) -> Iterator[Told]:
        yield without(told, "message_id") if told.type == "session_start" else told

    async def forwarded(self, session: Session) -> Telling:
        async for told in super().forwarded(session):
            if told.type != "session_end":
                yield told

    def last_chunk(self) -> bytes:
        return b"event: done\ndata: {}\n\n"

    def response_frame(self, name: str, payload: Body) -> Body:
        return super().response_frame(name, {"status": payload["status"]})

    def reply(self, data: Any) -> web.Response:
        """Lists are bare."""
        names = ("conversations", "messages", "sessions")
        bare = next((data[name] for name in names if name in data), data) if isinstance(data, dict) else data
        return super().reply(bare)

    def refusal(self, status: int, words: str) -> web.Response:
        """The code is in the body only."""
        return web.json_response({"code": status, "message": words, "data": None})

    def hit(self, talk: Conversation) -> Body:
        return self.shown(talk)

    async def throttled(self, telling: Telling) -> Telling:
        """The deltas of a block come as one."""
        held, index = "", 0
        async for told in telling:
            if told.type == "content_delta":
                held, index = held + told.data["delta"], told.data["index"]
                continue
            if held:
                yield Told("content_delta", {"index": index, "delta": held})
            held = ""
            yield told


class Generous(ZenfluxServer):
    """Says more than it must: extra members, comments and pings, ticks at once, gaps in the numbers, zones."""

    def envelope(self, session: Session, told: Told) -> Body:
        session.seq += 1 if told.type == "content_delta" and session.has_rounds else 0
        envelope = super().envelope(session, told)
        if told.type not in ("message_stop", "rollback_completed"):
            envelope["data"] = envelope["data"] | {"extra": True}
        return envelope | {"timestamp": f"{envelope['timestamp']}+00:00", "version": 11}

    def event_frame(self, envelope: Body) -> Body:
        return super().event_frame(envelope) | {"server": "another"}

    def chunk(self, envelope: Body) -> bytes:
        named = b"id: %d\nevent: %s\n" % (envelope["seq"], envelope["type"].encode())
        return b': still here\n\ndata: {"type": "ping", "data": {"type": "ping"}}\n\n' + named + super().chunk(envelope)

    async def tick(self, line: Line) -> None:
        await self.send(line, self.tick_frame())
        await super().tick(line)

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        return super().wrap(code, message, data | {"extra": True} if isinstance(data, dict) else data)

    async def deliver(self, line: Line, session: Session, told: Told) -> None:
        """Events of later versions come in between."""
        if told.type == "message_stop":
            await super().deliver(line, session, Told("progress_update", {"stage": "done"}))
        await super().deliver(line, session, told)

    async def hear(self, line: Line, text: str) -> None:
        await self.send(line, {"type": "event", "event": "notification", "payload": {"title": "Hello"}, "seq": 0})
        await super().hear(line, text)


class RefusesWhenBusy(ZenfluxServer):
    """A chat on a busy line is refused; each message begins with the index 0; empty files are refused."""

    def leave(self, line: Line) -> None:
        if line.session is not None and not line.session.is_over:
            raise Refusal(409, "BUSY", "One at a time.")

    def chat_send(self, line: Line, params: Any) -> Body:
        self.leave(line)
        return super().chat_send(line, params)

    def opened(self, session: Session) -> Told:
        session.index = 0
        return super().opened(session)

    def upload(self, file: web.FileField) -> Body:
        about = super().upload(file)
        if not about["file_size"]:
            raise Refusal(400, "VALIDATION_ERROR", "The file is empty.")
        return about

    async def manage(self, request: web.Request) -> web.StreamResponse:
        """Everything is managed, somehow."""
        return self.reply([])


class InTheBackground(ZenfluxServer):
    """A chat that is not streamed is answered at once, and runs on; busy lines tell several runs."""

    def leave(self, line: Line) -> None:
        pass

    async def post_chat(self, request: web.Request) -> web.StreamResponse:
        params = self.check(self.spelled(await self.read(request)))
        if params.get("stream", True):
            return await super().post_chat(request)
        session = self.begin(params, has_rounds=False)

        async def run() -> None:
            async for _ in self.play(session):
                pass

        session.going_on.set()
        vars(session)["task"] = asyncio.ensure_future(run())
        about = {"task_id": session.id, "session_id": session.id, "conversation_id": session.conversation.id}
        return self.reply(about | {"message": "It runs.", "status": "running"})

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        """A good answer may be a 201."""
        body = orjson.dumps({"code": code, "message": message, "data": data})
        return web.Response(body=body, status=201 if code == 200 else code, content_type="application/json")


class OtherBytes(ZenfluxServer):
    """Streams, frames and bodies are spelled as nobody else would spell them."""

    def chunk(self, envelope: Body) -> bytes:
        spread = orjson.dumps(_turned(envelope), option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata:")
        mark = b"\xef\xbb\xbf" if envelope["seq"] == 1 else b""
        plain = b"retry: 100\ndata:" + spread + b"\nid: %d\n\n" % envelope["seq"]
        return mark + (": 还在 😀\n\n".encode() + plain).replace(b"\n", b"\r\n")

    def last_chunk(self) -> bytes:
        return super().last_chunk().replace(b"event: ", b"event:").replace(b"\n", b"\r\n")

    async def forwarded(self, session: Session) -> Telling:
        async for told in super().forwarded(session):
            pieces = list(told.data["delta"]) if told.type == "content_delta" else []
            for piece in pieces:
                yield changed(told, delta=piece)
            if not pieces:
                yield told

    def event_frame(self, envelope: Body) -> Body:
        return _turned(super().event_frame(_turned(envelope)))

    def response_frame(self, name: str, payload: Body) -> Body:
        return _turned(super().response_frame(name, payload))

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        body = orjson.dumps({"data": data, "message": message, "code": code}, option=orjson.OPT_INDENT_2)
        return web.Response(body=body, status=code, headers={"Content-Type": "application/json; charset=utf-8"})


def _turned(body: Body) -> Body:
    """The same members in the opposite order."""
    return dict(reversed(body.items()))


class OtherWords(Editing):
    """What is left open is answered otherwise."""

    def refusal(self, status: int, words: str) -> web.Response:
        return super().refusal(422 if status == 400 else status, words)

    def envelope(self, session: Session, told: Told) -> Body:
        envelope = super().envelope(session, told)
        return envelope | {"event_uuid": envelope["event_uuid"].upper(), "timestamp": f"{envelope['timestamp'][:19]}Z"}

    def edited(self, told: Told) -> Iterator[Told]:
        if told.type == "rollback_options":
            told = without(changed(told, options=[{"id": "all"}, {"id": "last"}]), "error", "reason")
        yield told

    async def play(self, session: Session) -> Telling:
        """The title comes after the message, and conversation_stop before session_end."""
        talk = session.conversation
        async for told in super().play(session):
            if told.type == "session_end" and told.data["status"] == "completed":
                yield self.change(session, {"title": talk.title})
            if told.type == "session_end":
                final = FINAL[told.data["status"]]
                yield Told("conversation_stop", {"conversation_id": talk.id, "final_status": final})
            yield told

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        page = super().page(talk, limit, request)
        return page | {"messages": [{**message, "content": _plain(message["content"])} for message in page["messages"]]}

    async def get_pending(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"requests": self.pending()})


def _plain(content: Any) -> Any:
    """Text blocks alone as one text."""
    if isinstance(content, str) or any(block["type"] != "text" for block in content):
        return content
    return "".join(block["text"] for block in content)


VARIATIONS: tuple[type[ZenfluxServer], ...] = (
    OneMessage,
    Terse,
    Generous,
    RefusesWhenBusy,
    InTheBackground,
    OtherBytes,
    OtherWords,
)
