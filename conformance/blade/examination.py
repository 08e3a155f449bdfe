"""What a Blade case is given: sessions to talk in, connections to hear with, and everything cleared away afterwards."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from conformance.blade.profile import BladeProfile
from conformance.blade.talk import Talk
from conformance.kit import expect, socketio
from conformance.kit.clearing import cleared, delete_all
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import HttpClient, Reply
from conformance.kit.schemas import Schemas
from conformance.kit.socketio import BOTH, Link

SCHEMAS = Schemas(Path(__file__).parent / "schemas")
ABSENT = (404, 405, 501)
SHELVES = ("/api/sessions", "/api/memories", "/api/user/api-keys", "/api/scheduled-tasks")


class BladeExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: BladeProfile) -> None:
        self.http = http
        self.profile = profile
        self.stack = AsyncExitStack()
        self._made: dict[str, None] = {}
        http.heed = self._note

    def fit(self, schema: str, body: Any, what: str) -> None:
        SCHEMAS.fit(schema, body, what)

    def problems(self, schema: str, body: Any) -> list[str]:
        return SCHEMAS.problems(schema, body)

    # -- sockets -------------------------------------------------------------------------------------------------------

    async def link(self, auth: Any = ..., transports: Sequence[str] = BOTH) -> Link:
        """A connection that lasts as long as the case."""
        return await self.stack.enter_async_context(socketio.connect(self.http, auth, transports))

    async def open(self, **more: Any) -> Talk:
        """A session and a connection that has subscribed to it; if it cannot be had, the case cannot be put."""
        with expect.preparing("a session"):
            talk = Talk(self, await self.session(**more), await self.link())
        await talk.subscribe()
        return talk

    async def another(self, talk: Talk) -> Talk:
        """The same session over a connection of its own, subscribed."""
        other = talk.on(await self.link())
        await other.subscribe()
        return other

    # -- REST ----------------------------------------------------------------------------------------------------------

    async def create(self, **more: Any) -> Reply:
        """POST /api/sessions, whatever comes of it."""
        return await self.http.ask(
            "POST", "/api/sessions", {"intent": "An examination", "is_persistent": False} | more
        )

    async def session(self, **more: Any) -> str:
        """The id of a new session."""
        reply = expect.status(await self.create(**more), 200, 201)
        self.fit("created", reply.json(), "the answer to POST /api/sessions")
        return str(reply.json()["session_id"])

    async def asked(self, method: str, path: str, json: Any = ..., wanted: Sequence[int] = (200,), **more: Any) -> Any:
        """The JSON of an answer that must have one of these statuses."""
        return expect.status(await self.http.ask(method, path, json, **more), *wanted).json()

    async def told(self, method: str, path: str, json: Any = ..., **more: Any) -> dict[str, Any]:
        """The JSON object of an answer that must have one."""
        return expect.keyed(f"the answer to {method} {path}", await self.asked(method, path, json, **more))

    async def got(self, schema: str, path: str, **more: Any) -> Any:
        """The body at the path, which must fit the schema."""
        body = await self.asked("GET", path, **more)
        self.fit(schema, body, f"the answer to GET {path}")
        return body

    async def turns(self, session: str) -> list[dict[str, Any]]:
        """The turns of the session at this path, in whatever the server wraps them."""
        body = await self.asked("GET", f"{session}/messages")
        found = list(body.values()) if isinstance(body, dict) else [body]
        listed: list[dict[str, Any]] | None = next((item for item in found if isinstance(item, list)), None)
        turns = listed if listed is not None else expect.fail("a list of turns", body)
        for turn in turns:
            self.fit("turn", turn, f"a turn of {session}/messages")
        return turns

    async def keep(self, path: str, json: Any) -> Any:
        """POST something to a shelf only companion pages speak of: without the shelf the case cannot be put."""
        reply = await self.http.ask("POST", path, json)
        if reply.status in ABSENT:
            raise NotTestable(f"the server has no {path}")
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
