"""Servers that differ from the reference in ways the specification allows: no MUST may be held against them.

The variations: one message for a run or one for each round; deltas of any size, or none for a result; indexes that
begin anew or go on; numbers left out where deltas were merged; absent message_id, data of message_start and
message_delta mirrors; contents as objects or as JSON in strings; server_tool_use for tool_use; ends of stopped and
broken runs and of streams without session_end; known conversations without conversation_start; unknown members, events
and notifications; comments, pings, event names and ids in streams, ticks at once; times with zones; bare lists; codes
of errors in the body only, and 201 for 200; busy lines that refuse, stop or tell both runs; chats that run on in the
background; management that answers everything; agents, tools and MCP servers that nobody may change.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.steps import AsyncStep, Step, variants
from conformance.faults.zenflux.player import RunEvent, RunEvents
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.faults.zenflux.state import Body, Conversation, Refusal, Session

FINAL = {"completed": "completed", "cancelled": "stopped", "failed": "failed"}


def changed(event: RunEvent, **fields: Any) -> RunEvent:
    """The event with these members of data set."""
    return RunEvent(event.type, {**event.data, **fields}, event.message)


def without(event: RunEvent, *names: str) -> RunEvent:
    """The event without these members of data."""
    return RunEvent(event.type, {name: value for name, value in event.data.items() if name not in names}, event.message)


class OneMessage:
    """A run is one message; results come whole at the start of their block; tools are the server's own."""

    def begin(self, step: Step[Session], params: Body, has_rounds: bool) -> Session:
        return step(params, has_rounds=False)

    async def block(self, step: Step[RunEvents], session: Session, *given: Any) -> RunEvents:
        start, pieces, kept, *pause = given
        if start["type"] == "tool_result":
            start, pieces = kept, ()
        async for event in step(session, start, pieces, kept, *pause):
            if event.data.get("delta") != "":
                yield event

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        async for event in step(session):
            block = event.data.get("content_block", {})
            is_call = block.get("type") == "tool_use"
            yield changed(event, content_block=block | {"type": "server_tool_use"}) if is_call else event

    def note(self, step: Step[RunEvent], topic: str, content: Any) -> RunEvent:
        """Contents are objects, as in the table, and not mirrored."""
        return RunEvent("message_delta", {"type": topic, "content": content})

    def opened(self, step: Step[RunEvent], session: Session) -> RunEvent:
        event = step(session)
        return RunEvent(event.type, {}, event.message)

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        """message_start has no data, as in its example, and no event names its message."""
        unsaid = {"message_id", *(["data"] if event.type == "message_start" else [])}
        return {name: value for name, value in step(session, event).items() if name not in unsaid}


@dataclass
class Terse:
    """Says no more than it must: at the end of runs and streams, in lists, in responses and in statuses."""

    server: ZenfluxServer

    def stopped(self, step: Step[Iterator[RunEvent]], session: Session) -> Iterator[RunEvent]:
        yield list(step(session))[-1]

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        """A run that was stopped or broke has no session_end; a known conversation has no conversation_start."""
        is_known = len(session.conversation.messages) > 1
        last = ""
        async for event in step(session):
            if event.type == "session_end" and last in ("session_stopped", "error"):
                return
            if event.type != "conversation_start" or not is_known:
                yield without(event, "message_id") if event.type == "session_start" else event
            last = event.type

    async def forwarded(self, step: Step[RunEvents], session: Session) -> RunEvents:
        async for event in step(session):
            if event.type != "session_end":
                yield event

    def last_chunk(self, step: Step[bytes]) -> bytes:
        return b"event: done\ndata: {}\n\n"

    def response_frame(self, step: Step[Body], name: str, payload: Body) -> Body:
        return step(name, {"status": payload["status"]})

    def reply(self, step: Step[web.Response], data: Any) -> web.Response:
        """Lists are bare."""
        names = ("conversations", "messages", "sessions")
        bare = next((data[name] for name in names if name in data), data) if isinstance(data, dict) else data
        return step(bare)

    def refusal(self, step: Step[web.Response], status: int, words: str) -> web.Response:
        """The code is in the body only."""
        return web.json_response({"code": status, "message": words, "data": None})

    def hit(self, step: Step[Body], talk: Conversation) -> Body:
        return self.server.conversations.shown(talk)

    async def throttled(self, step: Step[RunEvents], events: RunEvents) -> RunEvents:
        """The deltas of a block come as one."""
        held, index = "", 0
        async for event in events:
            if event.type == "content_delta":
                held, index = held + event.data["delta"], event.data["index"]
                continue
            if held:
                yield RunEvent("content_delta", {"index": index, "delta": held})
            held = ""
            yield event


@dataclass
class Generous:
    """Says more than it must: extra members, comments and pings, ticks at once, gaps in the numbers, zones."""

    server: ZenfluxServer

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        session.seq += 1 if event.type == "content_delta" and session.has_rounds else 0
        envelope = step(session, event)
        if event.type not in ("message_stop", "rollback_completed"):
            envelope["data"] = envelope["data"] | {"extra": True}
        return envelope | {"timestamp": f"{envelope['timestamp']}+00:00", "version": 11}

    def event_frame(self, step: Step[Body], envelope: Body) -> Body:
        return step(envelope) | {"server": "another"}

    def chunk(self, step: Step[bytes], envelope: Body) -> bytes:
        named = b"id: %d\nevent: %s\n" % (envelope["seq"], envelope["type"].encode())
        return b': still here\n\ndata: {"type": "ping", "data": {"type": "ping"}}\n\n' + named + step(envelope)

    async def tick(self, step: AsyncStep[None], line: Line) -> None:
        await self.server.socket.send(line, self.server.writer.tick_frame())
        await step(line)

    def wrap(self, step: Step[web.Response], code: int, message: str, data: Any) -> web.Response:
        return step(code, message, data | {"extra": True} if isinstance(data, dict) else data)

    async def deliver(self, step: AsyncStep[None], line: Line, session: Session, event: RunEvent) -> None:
        """Events of later versions come in between."""
        if event.type == "message_stop":
            await step(line, session, RunEvent("progress_update", {"stage": "done"}))
        await step(line, session, event)

    async def receive(self, step: AsyncStep[None], line: Line, text: str) -> None:
        notice = {"type": "event", "event": "notification", "payload": {"title": "Hello"}, "seq": 0}
        await self.server.socket.send(line, notice)
        await step(line, text)


@dataclass
class RefusesWhenBusy:
    """A chat on a busy line is refused; each message begins with the index 0; empty files are refused."""

    server: ZenfluxServer

    def leave(self, step: Step[None], line: Line) -> None:
        if line.session is not None and not line.session.is_over:
            raise Refusal(409, "BUSY", "One at a time.")

    def chat_send(self, step: Step[Body], line: Line, params: Any) -> Body:
        self.server.socket.leave(line)
        return step(line, params)

    def opened(self, step: Step[RunEvent], session: Session) -> RunEvent:
        session.index = 0
        return step(session)

    def upload(self, step: Step[Body], file: web.FileField) -> Body:
        about = step(file)
        if not about["file_size"]:
            raise Refusal(400, "VALIDATION_ERROR", "The file is empty.")
        return about

    async def manage(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        """Everything is managed, somehow."""
        return self.server.front.reply([])


@dataclass
class InTheBackground:
    """A chat that is not streamed is answered at once, and runs on; busy lines tell several runs."""

    server: ZenfluxServer

    def leave(self, step: Step[None], line: Line) -> None:
        pass

    async def post_chat(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        params = self.server.chats.check(self.server.streams.spelled(await self.server.front.read(request)))
        if params.get("stream", True):
            return await step(request)
        session = self.server.chats.begin(params, has_rounds=False)

        async def run() -> None:
            async for _ in self.server.player.play(session):
                pass

        session.going_on.set()
        vars(session)["task"] = asyncio.ensure_future(run())
        about = {"task_id": session.id, "session_id": session.id, "conversation_id": session.conversation.id}
        return self.server.front.reply(about | {"message": "It runs.", "status": "running"})

    def wrap(self, step: Step[web.Response], code: int, message: str, data: Any) -> web.Response:
        """A good answer may be a 201."""
        body = orjson.dumps({"code": code, "message": message, "data": data})
        return web.Response(body=body, status=201 if code == 200 else code, content_type="application/json")


class OtherBytes:
    """Streams, frames and bodies are spelled as nobody else would spell them."""

    def chunk(self, step: Step[bytes], envelope: Body) -> bytes:
        spread = orjson.dumps(_turned(envelope), option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata:")
        mark = b"\xef\xbb\xbf" if envelope["seq"] == 1 else b""
        plain = b"retry: 100\ndata:" + spread + b"\nid: %d\n\n" % envelope["seq"]
        return mark + (": 还在 😀\n\n".encode() + plain).replace(b"\n", b"\r\n")

    def last_chunk(self, step: Step[bytes]) -> bytes:
        return step().replace(b"event: ", b"event:").replace(b"\n", b"\r\n")

    async def forwarded(self, step: Step[RunEvents], session: Session) -> RunEvents:
        async for event in step(session):
            pieces = list(event.data["delta"]) if event.type == "content_delta" else []
            for piece in pieces:
                yield changed(event, delta=piece)
            if not pieces:
                yield event

    def event_frame(self, step: Step[Body], envelope: Body) -> Body:
        return _turned(step(_turned(envelope)))

    def response_frame(self, step: Step[Body], name: str, payload: Body) -> Body:
        return _turned(step(name, payload))

    def wrap(self, step: Step[web.Response], code: int, message: str, data: Any) -> web.Response:
        body = orjson.dumps({"data": data, "message": message, "code": code}, option=orjson.OPT_INDENT_2)
        return web.Response(body=body, status=code, headers={"Content-Type": "application/json; charset=utf-8"})


def _turned(body: Body) -> Body:
    """The same members in the opposite order."""
    return dict(reversed(body.items()))


@dataclass
class OtherWords:
    """What is left open is answered otherwise."""

    server: ZenfluxServer

    def refusal(self, step: Step[web.Response], status: int, words: str) -> web.Response:
        return step(422 if status == 400 else status, words)

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        envelope = step(session, event)
        return envelope | {"event_uuid": envelope["event_uuid"].upper(), "timestamp": f"{envelope['timestamp'][:19]}Z"}

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        """The title comes after the message, and conversation_stop before session_end."""
        talk = session.conversation
        async for event in step(session):
            if event.type == "rollback_options":
                event = without(changed(event, options=[{"id": "all"}, {"id": "last"}]), "error", "reason")
            if event.type == "session_end" and event.data["status"] == "completed":
                yield self.server.player.change(session, {"title": talk.title})
            if event.type == "session_end":
                final = FINAL[event.data["status"]]
                yield RunEvent("conversation_stop", {"conversation_id": talk.id, "final_status": final})
            yield event

    def page(self, step: Step[Body], talk: Conversation, limit: int, request: web.Request) -> Body:
        page = step(talk, limit, request)
        return page | {"messages": [{**message, "content": _plain(message["content"])} for message in page["messages"]]}

    async def get_pending(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        return self.server.front.reply({"requests": self.server.confirmations.pending()})


def _plain(content: Any) -> Any:
    """Text blocks alone as one text."""
    if isinstance(content, str) or any(block["type"] != "text" for block in content):
        return content
    return "".join(block["text"] for block in content)


@dataclass
class ReadOnly:
    """Nobody may change agents, tools and MCP servers, or carry out tools; there is one MCP server."""

    server: ZenfluxServer

    def __post_init__(self) -> None:
        self.server.mcp_servers.register_server({"server_name": "fixed", "server_url": "https://example.com/mcp"})

    async def answer(self, step: AsyncStep[web.StreamResponse], request: web.Request, handler: Any) -> Any:
        is_managed = request.path.startswith(("/api/v1/agents", "/api/v1/tools"))
        if is_managed and request.method != "GET" and not request.path.endswith("/validate"):
            return self.server.front.refusal(403, "You may look.")
        return await step(request, handler)


VARIATIONS = variants(
    ZenfluxServer,
    OneMessage,
    Terse,
    Generous,
    RefusesWhenBusy,
    InTheBackground,
    OtherBytes,
    OtherWords,
    ReadOnly,
)
