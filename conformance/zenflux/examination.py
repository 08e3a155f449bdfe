"""What a ZenFlux case is given: lines, runs, conversations, wrapped answers, and everything cleared away afterwards."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.cleanup import GONE, cleared, delete_all, is_gone
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.kit.http import HttpClient, Reply, Stream
from conformance.kit.multipart import Upload, form
from conformance.kit.schemas import MOST_PROBLEMS, WATCHER, Schemas
from conformance.kit.websocket import connect
from conformance.zenflux import event_shapes, rest_answer
from conformance.zenflux.chat_socket import ENDPOINT, TAKEN, ChatSocket
from conformance.zenflux.cleanup import Undo, belongings, undo_all
from conformance.zenflux.profile import ZenfluxProfile
from conformance.zenflux.rest_answer import Answer
from conformance.zenflux.rest_calls import BASE, HEALTH, owner_of
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event, as_blocks

SCHEMAS = Schemas(Path(__file__).parent / "schemas")
UPLOADS = "/files/upload"
T = TypeVar("T")
MANY = 10  # things to clear away in the time of one answer


class ZenfluxExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: ZenfluxProfile) -> None:
        self.http = http
        self.profile = profile
        self.schemas = SCHEMAS
        self.user = f"examiner-{uuid4().hex}"
        self._conversations: dict[str, None] = {}
        self._sessions: dict[str, None] = {}
        self._uploads: list[str] = []
        self._made: dict[str, None] = {}
        self.undos: dict[str, Undo] = {}
        self.is_troubled = False

    @property
    def departures(self) -> Departures:
        """What was seen of requirements other than those the case is about."""
        return self.http.departures

    async def once(self, key: Hashable, make: "Callable[[ZenfluxExamination], Awaitable[T]]") -> T:
        """What `make` brings about, once for all cases that judge it."""
        return await self.http.observations.once(key, make)

    def hold(self, schema: str, value: Any, what: str, owner: str, members: Mapping[str, str] | None = None) -> bool:
        """Whether a value fits a schema; if not, its owner, or that of the member that is wrong, is charged with it."""
        if (watcher := WATCHER.get()) is not None:
            watcher(schema, value, owner)
        found: dict[str, list[str]] = {}
        for problem in self.schemas.problems(schema, value):
            found.setdefault(event_shapes.whose(problem, owner, members), []).append(problem)
        for name, problems in found.items():
            listed = "; ".join(expect.show(problem) for problem in problems[:MOST_PROBLEMS])
            expected, seen = f"{what} to fit the schema `{schema}`", f"{listed}\nin {expect.show(value)}"
            self.departures.note(name, expected, seen, is_misleading=name in event_shapes.MISLEADING)
        return not found

    @property
    def identity(self) -> dict[str, Any]:
        """Who speaks, and to whom."""
        return {"user_id": self.user} | ({"agent_id": self.profile.agent} if self.profile.agent else {})

    def stranger(self) -> str:
        """An id nobody has."""
        return str(uuid4())

    # -- REST ----------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, json: Any = ..., **more: Any) -> Answer:
        """The answer to one request below the base path (or to a health check); what is wrong with it is noted."""
        place = path if path in HEALTH else BASE + path
        reply = await self._reply(method, place, json, owner_of(method, path), **more)
        return rest_answer.read(reply, self.schemas, self.departures, owner_of(method, path))

    async def _reply(self, method: str, place: str, json: Any, owner: str | None, **more: Any) -> Reply:
        """The reply to a request; a call that has none is charged with it."""
        try:
            return await self.http.ask(method, place, json, **more)
        except Failed as failure:
            failure.owner = failure.owner or owner
            raise

    async def get(self, path: str, **query: Any) -> Any:
        """The data of a successful GET."""
        return (await self.ask("GET", path, query={name: str(value) for name, value in query.items()})).done()

    async def post(self, path: str, json: Any = ..., **query: Any) -> Any:
        """The data of a successful POST."""
        data = (await self.ask("POST", path, json, query={name: str(value) for name, value in query.items()})).done()
        self.remember(data if isinstance(data, dict) else {})
        return data

    async def read(self, schema: str, path: str, **query: Any) -> dict[str, Any]:
        """The data of a successful GET, which must fit the schema."""
        data = await self.get(path, **query)
        return self._fitting(schema, data, f"the data of GET {path}")

    async def send(self, schema: str, path: str, json: Any = ..., **query: Any) -> dict[str, Any]:
        """The data of a successful POST, which must fit the schema."""
        data = await self.post(path, json, **query)
        return self._fitting(schema, data, f"the data of POST {path}")

    def _fitting(self, schema: str, data: Any, what: str) -> dict[str, Any]:
        """The data, an object; if it is one that the specification describes, that description is charged with it."""
        if schema not in event_shapes.OBJECTS:
            self.schemas.fit(schema, data, what)
        elif not self.described(schema, data, what):
            expect.that(isinstance(data, dict), f"{what} to be an object", data, event_shapes.OBJECTS[schema])
        return dict(data)

    def described(self, schema: str, data: Any, what: str) -> bool:
        """Whether an object is as the specification describes it; if not, that description is charged with it."""
        return self.hold(schema, data, what, event_shapes.OBJECTS[schema], event_shapes.OBJECT_MEMBERS.get(schema))

    async def conversation(self, title: str = "Examined") -> dict[str, Any]:
        """A new conversation of this user's, with the title that it was given."""
        made = await self.send("conversation", "/conversations", user_id=self.user, title=title)
        self._conversations[made["id"]] = None
        expect.that(made["title"] == title, f"a conversation with the title {title!r}", made, "ZF-HTTP-3.2-01")
        return made

    async def post_form(self, path: str, fields: Mapping[str, str | Upload], **query: str) -> Answer:
        """The answer to a form."""
        filled = form(fields)
        answer = await self.ask("POST", path, body=filled.body, content_type=filled.content_type, query=query)
        if path == UPLOADS and answer.is_done:
            data = answer.body["data"]
            self._uploads.append(f"the upload {data.get('file_id')}" if isinstance(data, dict) else "an upload")
        return answer

    async def upload(self, file: Upload) -> dict[str, Any]:
        """What is said of a file that must be taken."""
        data = (await self.post_form(UPLOADS, {"file": file, "user_id": self.user})).done()
        return self._fitting("upload", data, f"the data of POST {UPLOADS}")

    async def history(self, conversation: str) -> list[dict[str, Any]]:
        """The messages of a conversation, oldest first."""
        data = await self.get(f"/conversations/{conversation}/messages")
        found = data.get("messages") if isinstance(data, dict) else data
        is_list = isinstance(found, list) and all(isinstance(item, dict) for item in found)
        expect.that(is_list, "the messages of the conversation as a list of objects", data, "ZF-HTTP-3.2-06")
        for item in found or []:
            content = item.get("content")
            blocks = as_blocks(content) if isinstance(content, str) else None
            if blocks is not None:
                self.departures.read_as("ZF-TYPE-06", "the content of a message is a string that holds a JSON array")
            elif item.get("role") == "assistant" and isinstance(content, list):
                self.departures.read_as("ZF-TYPE-06", "the content of a message is a list of blocks")
            kept = item if blocks is None else item | {"content": blocks}
            self.described("message", kept, "a message of the conversation")
        return sorted(found or [], key=lambda item: str(item["created_at"]))

    # -- chats ---------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def line(self) -> AsyncIterator[ChatSocket]:
        """A WebSocket of the chat endpoint."""
        async with AsyncExitStack() as opened:
            with expect.owned("ZF-WS-01"):
                socket = await opened.enter_async_context(connect(self.http, ENDPOINT))
            yield ChatSocket(self, socket)

    async def told(self, situation: str, owner: str = TAKEN, **params: Any) -> Run:
        """A whole run of the profile's prompt, on a line of its own, and what comes after it."""
        clock = asyncio.get_running_loop().time
        async with self.line() as line:
            begun = clock()
            run = await (await line.tell(situation, owner, **params)).completed()
            run.seconds = clock() - begun
            return await line.watch_the_end(run)

    @asynccontextmanager
    async def sse(self, message: str, **body: Any) -> AsyncIterator[tuple[Run, Stream]]:
        """A run over POST /chat, and the stream it comes in; members set to `...` are left out."""
        asked = {"message": message, "userId": self.user, "stream": True} | body
        asked = {name: value for name, value in asked.items() if value is not ...}
        if self.profile.agent:
            asked.setdefault("agentId", self.profile.agent)
        owner = body.pop("owner", "ZF-HTTP-3.1-01")
        asked.pop("owner", None)
        async with self.http.stream("POST", f"{BASE}/chat", asked) as stream:
            if not stream.is_event_stream:
                reply = await stream.whole()
                told = f"{reply.content_type} {reply.told}"
                expect.fail(f"{stream.asked} to be answered with 200 text/event-stream", told, owner)

            async def source(run: Run) -> Event | None:
                return await self._streamed(run, stream)

            asked_for = f"POST /chat {message!r}"
            run = Run(asked_for, source, is_socket=False, waits=self.http.waits, departures=self.departures)
            run.user, run.message = self.user, message
            yield run, stream

    async def chat_at_once(self, message: str, **more: Any) -> Answer:
        """The answer to POST /chat without streaming, which must not be a stream."""
        body = {"message": message, "userId": self.user, "stream": False} | more
        if self.profile.agent:
            body.setdefault("agentId", self.profile.agent)
        body = {name: value for name, value in body.items() if value is not ...}
        reply = await self._reply("POST", f"{BASE}/chat", body, "ZF-HTTP-3.1-01")
        is_stream = reply.content_type == "text/event-stream"
        expect.that(not is_stream, "JSON from POST /chat when stream is false", reply.told, "ZF-HTTP-3.1-01")
        found = rest_answer.read(reply, self.schemas, self.departures, "ZF-HTTP-3.1-01")
        self.remember(found.body["data"] if isinstance(found.body["data"], dict) else {})
        return found

    async def streamed(self, situation: str, **body: Any) -> Run:
        """A whole run over POST /chat, to the very end of the stream."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        async with self.sse(self.profile.prompt(situation), **body) as (run, stream):
            with expect.owned("ZF-EV-36"), self.http.waits.goal("the end of a streamed run"):
                while await run.next() is not None:
                    pass
                while (event := await stream.next()) is not None:
                    run.told.append(event)
            run.raw, run.seconds = bytes(stream.raw), clock() - begun
            expect.that(bool(run.events), f"events in the stream of {run.asked}", run.raw[:200], "ZF-HTTP-3.1-01")
            return run

    async def _streamed(self, run: Run, stream: Stream) -> Event | None:
        """The next event of a stream; pings are checked and passed over, done ends it."""
        while (found := await stream.next()) is not None:
            run.told.append(found)
            if found.event == "done":
                return None
            with expect.owned("ZF-HTTP-3.1-01"):
                payload = expect.parsed(found.data, "the data of a server-sent event")
            if isinstance(payload, dict) and payload.get("type") == "ping":
                self.hold("event.ping", payload, "a ping", event_shapes.EVENTS["ping"])
                continue
            if isinstance(payload, dict) and payload.get("type") == "done":
                self.departures.note("ZF-EV-36", "`event: done` before the data of done", f"event: {found.event}")
                return None
            event = self.event(payload)
            if event is not None:
                return event
        return None

    def event(self, payload: Any, frame: Mapping[str, Any] | None = None) -> Event | None:
        """The event in an envelope, held to the schemas of the envelope and of its type; None if it is no object."""
        whole = self.hold("envelope", payload, "an envelope", event_shapes.ENVELOPE, event_shapes.ENVELOPE_MEMBERS)
        if not isinstance(payload, dict):
            return None
        self.remember(payload)
        told, framed = payload.get("type"), frame.get("event") if frame is not None else None
        owner = event_shapes.EVENTS.get(told) if isinstance(told, str) else None
        if owner is not None and (whole or isinstance(payload.get("data"), dict)):
            self.hold(f"event.{told}", payload, f"the event {told}", owner, event_shapes.members_of(payload))
        if isinstance(told, str) and isinstance(framed, str) and framed != told:
            is_garbled = told not in event_shapes.EVENTS and framed in event_shapes.EVENTS
            what = f"the event of a frame, as its payload has it: {told}"
            self.departures.note("ZF-WS-16", what, framed, is_misleading=is_garbled)
        seq = frame.get("seq") if frame is not None else None
        return Event(payload, seq if type(seq) is int else None, framed if isinstance(framed, str) else None)

    def remember(self, about: Mapping[str, Any]) -> None:
        """Keep in mind what has to be cleared away."""
        for name, kept in (("conversation_id", self._conversations), ("session_id", self._sessions)):
            if isinstance(about.get(name), str):
                kept[about[name]] = None

    def made(self, path: str) -> None:
        """Keep in mind that there is something to delete at this path."""
        self._made[path] = None

    def unmade(self, path: str) -> None:
        """There is nothing to delete at this path."""
        self._made.pop(path, None)

    def undo(self, what: str, method: str, path: str, json: Any = ...) -> None:
        """Keep in mind a request that undoes what is about to be done."""
        self.undos[what] = Undo(what, method, path, json)

    async def _forgotten(self, places: list[str]) -> list[str]:
        """What this user has beside these, if something went wrong: then the server may not have said what it made."""
        found = await belongings(self.http, BASE, self.user) if self.is_troubled else []
        return [path for path in found if path not in places]

    async def clear_away(self) -> None:
        """End the sessions, and delete the conversations and what was made, the latest first, one after the other."""
        self.http.transcript.left += self._uploads
        await undo_all(self.http, BASE, [*self.undos.values()][::-1], _is_gone)
        paths = [f"/session/{name}" for name in self._sessions]
        paths += [f"/conversations/{name}" for name in self._conversations]
        paths += await self._forgotten(paths)
        await self._delete([path for path in paths if path.startswith("/session/")], _has_answered)
        await self._delete([path for path in paths if path.startswith("/conversations/")], _is_gone)
        await self._delete(list(reversed(self._made)), _is_gone)

    async def _delete(self, paths: list[str], is_done: Callable[[Reply], bool]) -> None:
        within = self.http.timeout * (1 + len(paths) / MANY)
        await delete_all(self.http, [BASE + path for path in paths], within, at_once=1, is_done=is_done)


def _has_answered(reply: Reply) -> bool:
    """A session that is over may be answered with anything: nothing of it is kept but its conversation."""
    return reply.status < 500


def _is_gone(reply: Reply) -> bool:
    """The code of the wrapper counts as much as the status."""
    code = reply.object().get("code", reply.status) if reply.has() else reply.status
    return is_gone(reply) and (code in GONE or (isinstance(code, int) and 200 <= code < 300))


@asynccontextmanager
async def opening(http: HttpClient, profile: ZenfluxProfile) -> AsyncIterator[ZenfluxExamination]:
    """Set up one case, and clear away after it whatever comes of it."""
    examination = ZenfluxExamination(http, profile)
    try:
        yield examination
    except BaseException:
        examination.is_troubled = True
        raise
    finally:
        await cleared(http, examination.clear_away)
