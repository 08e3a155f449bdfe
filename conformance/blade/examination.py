"""What a Blade case is given: sessions to talk in, connections to hear with, and everything cleared away afterwards."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from conformance.blade.conversation import Conversation
from conformance.blade.profile import BladeProfile
from conformance.blade.schema_owners import SCHEMAS, read
from conformance.kit import expect, socketio
from conformance.kit.cleanup import cleared, delete_all
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import HttpClient, Reply
from conformance.kit.socketio import BOTH, Link
from conformance.kit.wait_limits import WaitLimits

ABSENT = (404, 405, 501)
SHELVES = ("/api/sessions", "/api/memories", "/api/user/api-keys", "/api/scheduled-tasks")
MADE: "WeakKeyDictionary[WaitLimits, set[str]]" = WeakKeyDictionary()
"""The sessions of each run of the examination, which is known by its waits."""


class BladeExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: BladeProfile) -> None:
        self.http = http
        self.profile = profile
        self.stack = AsyncExitStack()
        self.sessions = MADE.setdefault(http.waits, set())
        """The sessions that were made in this run, by this case or others."""
        self._made: dict[str, None] = {}
        http.heed = self._note

    def read(self, schema: str, body: Any, what: str, owner: str | None = None) -> Any:
        """The body with what does not fit the schema noted and damaged."""
        return read(self.http.departures, schema, body, what, owner)

    def problems(self, schema: str, body: Any) -> list[str]:
        return SCHEMAS.problems(schema, body)

    # -- sockets -------------------------------------------------------------------------------------------------------

    async def link(self, auth: Any = ..., transports: Sequence[str] = BOTH) -> Link:
        """A connection that lasts as long as the case; that there is one is the transport's requirement."""
        with expect.owned("BL-WS-01"):
            return await self.stack.enter_async_context(socketio.connect(self.http, auth, transports))

    async def open(self, **more: Any) -> Conversation:
        """A session and a connection that has subscribed to it; if it cannot be had, the case cannot be put."""
        talk = Conversation(self, await self.session(**more), await self.link())
        await talk.subscribe()
        return talk

    async def another(self, talk: Conversation) -> Conversation:
        """The same session over a connection of its own, subscribed."""
        other = talk.on(await self.link())
        await other.subscribe()
        return other

    # -- REST ----------------------------------------------------------------------------------------------------------

    async def create(self, **more: Any) -> Reply:
        """POST /api/sessions, whatever comes of it."""
        return await self.http.ask("POST", "/api/sessions", {"intent": "An examination", "is_persistent": False} | more)

    async def session(self, **more: Any) -> str:
        """The id of a new session; one that goes by another name is taken, too."""
        with expect.owned("BL-REST-01"):
            body = expect.status(await self.create(**more), 200, 201).json()
            made = self.read("created", body, "the answer to POST /api/sessions")
            other = body.get("id") if isinstance(body, dict) else None
            name = other if "session_id" not in body and isinstance(other, str) else str(made["session_id"])
        self.sessions.add(name)
        return name

    async def asked(self, method: str, path: str, json: Any = ..., wanted: Sequence[int] = (200,), **more: Any) -> Any:
        """The JSON of an answer that must have one of these statuses."""
        return expect.status(await self.http.ask(method, path, json, **more), *wanted).json()

    async def told(self, method: str, path: str, json: Any = ..., **more: Any) -> dict[str, Any]:
        """The JSON object of an answer that must have one."""
        return expect.keyed(f"the answer to {method} {path}", await self.asked(method, path, json, **more))

    async def got(self, schema: str, path: str, **more: Any) -> Any:
        """The body at the path, read as the schema says."""
        body = await self.asked("GET", path, **more)
        return self.read(schema, body, f"the answer to GET {path}")

    async def turns(self, session: str) -> list[dict[str, Any]]:
        """The turns of the session at this path, in whatever the server wraps them."""
        with expect.owned("BL-FLOW-31"):
            body = await self.asked("GET", f"{session}/messages")
            found = list(body.values()) if isinstance(body, dict) else [body]
            listed: list[Any] = expect.first("a list of turns", (it for it in found if isinstance(it, list)), body)
            expect.that(all(isinstance(it, dict) for it in listed), "a list of turns", listed)
        return [self.read("turn", turn, f"a turn of {session}/messages") for turn in listed]

    def offered(self, reply: Reply) -> Reply:
        """The answer of a route that only companion pages speak of, put to something that exists.

        A server that does not have the route does not offer it: the case cannot be put.
        """
        if reply.status in ABSENT:
            raise NotTestable(f"not offered: the server has no {reply.asked}")
        return reply

    async def keep(self, path: str, json: Any, owner: str) -> Any:
        """POST something to a shelf only companion pages speak of: without the shelf the case cannot be put."""
        reply = self.offered(await self.http.ask("POST", path, json))
        with expect.owned(owner):
            return expect.status(reply, 200, 201).json()

    def discard(self, path: str) -> None:
        """Delete what is there when the case is over."""
        self._made[path] = None

    def _note(self, method: str, path: str, reply: Reply) -> None:
        """Discard whatever a shelf was given, whether it was meant to be taken or not."""
        if method != "POST" or path.rstrip("/") not in SHELVES or not 200 <= reply.status < 300:
            return
        with suppress(Failed):
            body = reply.json()
            told = body.get("key") if isinstance(body, dict) and isinstance(body.get("key"), dict) else body
            name = told.get("session_id") or told.get("id") if isinstance(told, dict) else None
            if name is not None:
                self.discard(f"{path.rstrip('/')}/{name}")

    def stranger(self) -> str:
        """A session id nobody has."""
        return f"sess_{uuid4().hex}"

    async def clear_away(self) -> None:
        """Delete what was made."""
        await delete_all(self.http, list(self._made), self.http.timeout, at_once=max(1, len(self._made)))


@asynccontextmanager
async def opening(http: HttpClient, profile: BladeProfile) -> AsyncIterator[BladeExamination]:
    """Set up one case, and clear away after it whatever comes of it."""
    examination = BladeExamination(http, profile)
    try:
        yield examination
    finally:
        await examination.stack.aclose()
        await cleared(http, examination.clear_away)
