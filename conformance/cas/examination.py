"""What a CAS case is given: an agent, an environment, sessions to talk in, and everything cleared away afterwards."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any
from uuid import uuid4

from conformance.cas.conversation import Conversation
from conformance.cas.object_comparison import agree
from conformance.cas.profile import CasProfile, toolset
from conformance.cas.requirement_owners import BODIES, IDS, SCHEMAS, need, note_misfits
from conformance.kit import expect
from conformance.kit.cleanup import cleared, delete_all
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import HttpClient, Reply
from conformance.kit.missing_features import ABSENT
from conformance.kit.multipart import Upload, form

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
}
SHELVES = ("/agents", "/environments", "/files", "/memory_stores", "/sessions", "/vaults")
Body = dict[str, Any]


def error_in(reply: Reply) -> Body:
    """The body of a refusal, in the form of CAS, whose type must match the status."""
    body: Body = reply.json()
    SCHEMAS.fit("error", body, f"the answer to {reply.asked}")
    expect.equal(f"the type of the error of {reply.asked}", ERRORS.get(reply.status), body["error"]["type"])
    return body


class CasExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: CasProfile) -> None:
        self.http = http
        self.profile = profile
        self.schemas = SCHEMAS
        self._agent: str | None = profile.agent
        self._environment: str | None = profile.environment
        self._made: dict[str, None] = {}

    # -- asking --------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, json: Any = ..., **more: Any) -> Reply:
        """The whole answer to a request; a stream has none."""
        async with self.http.stream(method, path, json, **more) as stream:
            expect.that(not stream.is_event_stream, f"{stream.asked} not to open a stream", "200 text/event-stream")
            reply = await stream.whole()
        if method == "POST" and path in SHELVES and 200 <= reply.status < 300:
            self._note(path, reply)
        return reply

    def _note(self, path: str, reply: Reply) -> None:
        """Whatever a shelf was given is deleted when the case is over, whether it was meant to be taken or not."""
        with suppress(Failed):
            body = reply.json()
            if isinstance(body, dict) and isinstance(body.get("id"), str):
                self.remember(f"{path}/{body['id']}")

    async def have(
        self, schema: str, method: str, path: str, json: Any = ..., *, status: int = 200, **more: Any
    ) -> Any:
        """The body of an answer that must have this status; what does not fit the schema is noted."""
        reply = await self.ask(method, path, json, **more)
        with expect.owned(owner) if (owner := _answered_by(method, path, reply)) else nullcontext():
            expect.status(reply, status)
        return self.fitting(schema, reply)

    def fitting(self, schema: str, reply: Reply) -> Any:
        """The body of an answer, an object; what of it does not fit the schema is noted."""
        with expect.owned("CAS-SESS-02" if schema == "session" else BODIES[schema]):
            body = reply.object()
        is_error = body.get("type") == "error" and isinstance(body.get("error"), dict)
        expect.that(not is_error, f"no error as the answer to {reply.asked}", reply.told, BODIES["error"])
        if schema == "session":
            expect.that("id" in body, f"a session as the answer to {reply.asked}", reply.told, "CAS-SESS-02")
        note_misfits(self.http.departures, self.schemas, schema, body, f"the answer to {reply.asked}")
        return body

    def refused(self, reply: Reply, *statuses: int) -> Body:
        """Expect a refusal with one of these statuses; what is not in the form of CAS is noted."""
        is_other = (statuses == (404,) and 400 <= reply.status < 500) or _is_misnumbered(reply, statuses)
        with expect.owned("CAS-GEN-02") if is_other else nullcontext():
            expect.status(reply, *statuses)
        with self.http.departures.noting(BODIES["error"]):
            return error_in(reply)
        with expect.owned(BODIES["error"]):
            return reply.object()

    async def make(self, schema: str, path: str, json: Any, **more: Any) -> Body:
        """Create something that is deleted when the case is over; 200 and 201 will do."""
        reply = await self.ask("POST", path, json, **more)
        with expect.owned(BODIES[schema]):
            expect.status(reply, 200, 201)
        body: Body = self.fitting(schema, reply)
        expect.that(isinstance(body.get("id"), str), f"an id in the answer to {reply.asked}", reply.told, IDS)
        return body

    def remember(self, path: str) -> None:
        """Delete this when the case is over."""
        self._made[path] = None

    def stranger(self, prefix: str = "sess") -> str:
        """An id nobody has."""
        return f"{prefix}_{uuid4().hex}"

    # -- setting the scene ---------------------------------------------------------------------------------------------

    async def _once(self, what: str, make: Callable[["CasExamination"], Awaitable[str]]) -> str:
        """What all cases of a run share; a case that is put by itself makes its own."""
        shared = self.http.shared
        return await (make(self) if shared is None else shared.once(what, make))

    async def model(self) -> str:
        """A model that can be used; the server is asked for one once in an examination."""
        if self.profile.model is not None:
            return self.profile.model
        return await self._once("a model", CasExamination._usable_model)

    async def _usable_model(self) -> str:
        with expect.preparing("a model"):
            with expect.owned("CAS-RES-07"):
                models = await self.have("models", "GET", "/models")
            usable = [model["id"] for model in models["data"] if model["is_enabled"]]
            expect.that(bool(usable), "an enabled model", models)
        return str(usable[0])

    async def new_agent(self, policies: dict[str, str] | None = None, **more: Any) -> Body:
        """An agent with the profile's tools, or with these."""
        model = await self.model()
        tools = toolset(self.profile.policies if policies is None else policies) + self.profile.custom_tools
        with expect.preparing("an agent"):
            return await self.make("agent", "/agents", {"name": "Examinee", "model": model, "tools": tools, **more})

    async def agent(self) -> str:
        """The agent under examination, which all cases share, unless this case has one of its own."""
        if self._agent is None:
            self._agent = await self._once("the agent under examination", _made_agent)
        return self._agent

    async def own_agent(self) -> str:
        """From now on the agent of this case, so that the agent's sessions are those of the case; the profile's if it
        names one."""
        if self._agent is None:
            self._agent = await _made_agent(self)
        return self._agent

    async def new_environment(self, **config: Any) -> Body:
        body = {"name": "Examination", "config": config or self.profile.environment_config}
        with expect.preparing("an environment"):
            return await self.make("environment", "/environments", body)

    async def environment(self) -> str:
        """The environment of the sessions, which all cases share."""
        if self._environment is None:
            self._environment = await self._once("the environment of the sessions", _made_environment)
        return self._environment

    async def new_file(self, content: bytes = b"The examiners were here.\n") -> Body:
        """A file that can be mounted."""
        if (await self.ask("GET", "/files", query={"limit": "1"})).status in ABSENT:
            raise NotTestable("the server has no files that could be mounted")
        with expect.preparing("a file"):
            return await self.upload(content)

    async def upload(self, content: bytes) -> Body:
        sent = form({"file": Upload("examination.txt", content, "text/plain")})
        return await self.make("file", "/files", ..., body=sent.body, content_type=sent.content_type)

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def attempt(self, **body: Any) -> Reply:
        """POST /sessions, whatever comes of it; agent and environment are given unless the case gives its own."""
        if "agent" not in body:
            body["agent"] = await self.agent()
        if "environment" not in body and "environment_id" not in body:
            body["environment_id"] = await self.environment()
        return await self.create(body)

    async def create(self, json: Any, **more: Any) -> Reply:
        """POST /sessions with exactly this body."""
        reply = await self.ask("POST", "/sessions", json, **more)
        if 200 <= reply.status < 300:
            self.fitting("session", reply)
        return reply

    async def admit(self, **body: Any) -> Conversation:
        """A session to talk in, where creating it is what is examined."""
        owner = "CAS-SESS-04" if not body.keys() - {"agent", "environment_id"} else None
        reply = await self.attempt(**body)
        expect.that(reply.status == 201, f"{reply.asked} to be answered with 201", reply.told, owner)
        talk = Conversation(self, reply.json())
        given = {name: body[name] for name in ("title", "metadata") if name in body}
        with expect.owned("CAS-SESS-01"):
            expect.equal("title and metadata", given, {name: talk.session.get(name) for name in given})
        return talk

    async def open(self, **body: Any) -> Conversation:
        """A session to talk in; if it cannot be had, the case cannot be put."""
        with expect.preparing("a session"):
            return await self.admit(**body)

    async def agreed(self, talk: Conversation, *names: str) -> Body:
        """A new session, of which creating and reading it must show these members alike."""
        read = await talk.info()
        for session in (talk.session, read):
            need("session", session, *names)
        with expect.owned("CAS-SESS-02"):
            for name in names:
                agree(f"{name} of the session that was made", talk.session.get(name), read.get(name))
        return talk.session

    # -- clearing away -------------------------------------------------------------------------------------------------

    async def clear_away(self) -> None:
        """Delete what was made, sessions first; what cannot be deleted is archived."""
        sessions = [path for path in self._made if path.startswith("/sessions/")]
        others = [path for path in self._made if path not in sessions]
        for paths in (sessions, others):
            await delete_all(self.http, paths, self.http.timeout, otherwise=self._archive)

    async def _archive(self, path: str) -> Reply:
        return await self.http.ask("POST", f"{path}/archive", {})


def _is_misnumbered(reply: Reply, statuses: tuple[int, ...]) -> bool:
    """Whether this is a refusal of a wanted type under another status, which the type does not match."""
    with suppress(Failed):
        error = reply.object().get("error")
        kinds = {ERRORS[status] for status in statuses}
        return reply.status not in statuses and isinstance(error, dict) and error.get("type") in kinds
    return False


def _answered_by(method: str, path: str, reply: Reply) -> str | None:
    """The requirement by which sessions are listed and shown; a refusal may be for what the case asks of them."""
    if method != "GET" or 400 <= reply.status < 500:
        return None
    if path == "/sessions":
        return "CAS-SESS-10"
    return "CAS-SESS-02" if path.startswith("/sessions/") and path.count("/") == 2 else None


async def _made_agent(exam: CasExamination) -> str:
    return str((await exam.new_agent())["id"])


async def _made_environment(exam: CasExamination) -> str:
    return str((await exam.new_environment())["id"])


@asynccontextmanager
async def opening(http: HttpClient, profile: CasProfile) -> AsyncIterator[CasExamination]:
    """Set up one case, and clear away after it whatever comes of it."""
    examination = CasExamination(http, profile)
    try:
        yield examination
    finally:
        await cleared(http, examination.clear_away)
