"""What a ZenFlux case is given: lines, runs, conversations, wrapped answers, and everything cleared away afterwards."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.clearing import GONE, cleared, delete_all, is_gone
from conformance.kit.http import HttpClient, Reply, Stream
from conformance.kit.multipart import Upload, form
from conformance.kit.schemas import Schemas
from conformance.kit.sse import ServerEvent
from conformance.kit.websocket import connect
from conformance.zenflux.answer import Answer, wrapped
from conformance.zenflux.clearing import Undo, belongings, undo_all
from conformance.zenflux.line import ENDPOINT, Line
from conformance.zenflux.profile import ZenfluxProfile
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event

SCHEMAS = Schemas(Path(__file__).parent / "schemas")
BASE = "/api/v1"
UPLOADS = "/files/upload"
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
    def identity(self) -> dict[str, Any]:
        """Who speaks, and to whom."""
        return {"user_id": self.user} | ({"agent_id": self.profile.agent} if self.profile.agent else {})

    def stranger(self) -> str:
        """An id nobody has."""
        return str(uuid4())

    # -- REST ----------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, json: Any = ..., **more: Any) -> Answer:
        """One request below the base path; its answer must be wrapped, whatever it says."""
        return wrapped(await self.http.ask(method, BASE + path, json, **more), self.schemas)

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
        self.schemas.fit(schema, data, f"the data of GET {path}")
        return dict(data)

    async def send(self, schema: str, path: str, json: Any = ..., **query: Any) -> dict[str, Any]:
        """The data of a successful POST, which must fit the schema."""
        data = await self.post(path, json, **query)
        self.schemas.fit(schema, data, f"the data of POST {path}")
        return dict(data)

    async def conversation(self, title: str = "Examined") -> dict[str, Any]:
        """A new conversation of this user's."""
        made = await self.send("conversation", "/conversations", user_id=self.user, title=title)
        self._conversations[made["id"]] = None
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
        self.schemas.fit("upload", data, f"the data of POST {UPLOADS}")
        return dict(data)

    async def history(self, conversation: str) -> list[dict[str, Any]]:
        """The messages of a conversation, oldest first."""
        data = await self.get(f"/conversations/{conversation}/messages")
        found = data.get("messages") if isinstance(data, dict) else data
        expect.that(isinstance(found, list), "the messages of the conversation as a list", data)
        for item in found or []:
            self.schemas.fit("message", item, "a message of the conversation")
        return sorted(found or [], key=lambda item: str(item["created_at"]))

    # -- chats ---------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        """A WebSocket of the chat endpoint."""
        async with connect(self.http, ENDPOINT) as socket:
            yield Line(self, socket)

    async def told(self, situation: str, **params: Any) -> Run:
        """A whole run of the profile's prompt, on a line of its own; it must end well."""
        async with self.line() as line:
            return await (await line.tell(situation, **params)).completed()

    @asynccontextmanager
    async def sse(self, message: str, **body: Any) -> AsyncIterator[tuple[Run, Stream]]:
        """A run over POST /chat, and the stream it comes in; members set to `...` are left out."""
        asked = {"message": message, "userId": self.user, "stream": True} | body
        asked = {name: value for name, value in asked.items() if value is not ...}
        if self.profile.agent:
            asked.setdefault("agentId", self.profile.agent)
        async with self.http.stream("POST", f"{BASE}/chat", asked) as stream:
            if not stream.is_event_stream:
                reply = await stream.whole()
                told = f"{reply.content_type} {reply.told}"
                expect.fail(f"{stream.asked} to be answered with 200 text/event-stream", told)

            async def source(run: Run) -> Event | None:
                return await self._streamed(stream)

            yield Run(f"POST /chat {message!r}", source, is_socket=False, waits=self.http.waits), stream

    async def streamed(self, situation: str, **body: Any) -> Run:
        """A whole run over POST /chat, up to the last event."""
        async with self.sse(self.profile.prompt(situation), **body) as (run, _):
            with self.http.waits.goal("the end of a streamed run"):
                while await run.next() is not None:
                    pass
            return run

    async def framed(self, situation: str) -> tuple[list[ServerEvent], bytes]:
        """The server-sent events of a run over POST /chat to the very end of the stream, and their bytes."""
        found: list[ServerEvent] = []
        async with self.sse(self.profile.prompt(situation)) as (_, stream):
            while (event := await stream.next()) is not None:
                found.append(event)
                payload = expect.parsed(event.data, "the data of a server-sent event")
                self.remember(payload if isinstance(payload, dict) else {})
            return found, bytes(stream.raw)

    async def _streamed(self, stream: Stream) -> Event | None:
        """The next event of a stream; pings are checked and passed over, done ends it."""
        while (found := await stream.next()) is not None and found.event != "done":
            payload = expect.parsed(found.data, "the data of a server-sent event")
            if isinstance(payload, dict) and payload.get("type") == "ping":
                self.schemas.fit("event.ping", payload, "a ping")
                continue
            return self.event(payload)
        return None

    def event(self, payload: Any, frame: Mapping[str, Any] | None = None) -> Event:
        """The event in an envelope, checked against the schemas of the envelope and of its type."""
        self.schemas.fit("envelope", payload, "the envelope of an event")
        self.remember(payload)
        name = f"event.{payload['type']}"
        if name in self.schemas.names:
            self.schemas.fit(name, payload, f"the event {payload['type']}")
        if frame is not None:
            expect.equal("the event of a frame, as its payload has it", payload["type"], frame["event"])
        return Event(payload, frame["seq"] if frame is not None else None)

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
