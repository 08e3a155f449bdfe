"""Agents, sessions and histories of the AAP reference server, and how it refuses a request."""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from conformance.faults.aap.requests import NewSession
from conformance.faults.aap.state import Session
from conformance.faults.content import as_blocks, images_in
from conformance.faults.refusal import Refusal
from conformance.faults.script import SERVER_TOOLS, script
from conformance.kit.schemas import is_schema

LEAF: dict[str, Any] = {}
TOOLS = [
    {"name": name, "description": f"The server's {name}.", "parameters": {"type": "object", "properties": {}}}
    for name in SERVER_TOOLS
]
OPTIONS: list[dict[str, Any]] = [
    {"type": "text", "name": "tone", "title": "Tone", "default": "friendly"},
    {"type": "secret", "name": "api_key", "default": ""},
    {"type": "select", "name": "language", "options": ["en", "zh", "de"], "default": "en"},
]
CAPABILITIES: dict[str, Any] = {
    "history": {"compacted": LEAF, "full": LEAF},
    "stream": {"delta": LEAF, "message": LEAF, "none": LEAF},
    "application": {"tools": LEAF},
    "image": {"data": LEAF},
}
PAGE = 10
DATA_IMAGE = re.compile(r"data:image/[\w.+-]+(?:;[\w.+-]+=[^;,]+)*;base64,(.+)", re.ASCII)
HTTPS = re.compile(r"https://[^/?#\s]+")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Sessions:
    """Answers everything but turns; every rule is a step that a fault can change."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.sessions: dict[str, Session] = {}

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self.check_key(request)
            return await handler(request)
        except Refusal as refusal:
            return self.refusal(refusal.status, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def check_key(self, request: web.Request) -> None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            raise Refusal(401, "the key is missing or wrong")

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"error": words}, status=status)

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        try:
            return model.model_validate(orjson.loads(await request.read()))
        except orjson.JSONDecodeError as error:
            raise Refusal(400, f"the body is not JSON: {error}") from None
        except ValidationError as error:
            raise Refusal(400, str(error)) from None

    def find(self, request: web.Request) -> Session:
        try:
            return self.sessions[request.match_info["id"]]
        except KeyError:
            raise Refusal(404, "there is no such session") from None

    # -- meta ----------------------------------------------------------------------------------------------------------

    def agents(self) -> list[dict[str, Any]]:
        able = {"name": "able", "title": "Able", "version": "1.0.0", "tools": TOOLS, "options": OPTIONS}
        return [able | {"capabilities": CAPABILITIES}, {"name": "plain", "version": "0.1.0-beta.1"}]

    def agent(self, name: str) -> dict[str, Any]:
        for agent in self.agents():
            if agent["name"] == name:
                return agent
        raise Refusal(400, f"there is no agent named {name!r}")

    def declared(self, name: str, feature: str) -> set[str]:
        """What the agent declares of one feature."""
        return set(self.agent(name).get("capabilities", {}).get(feature, {}))

    def meta(self) -> dict[str, Any]:
        return {"version": 3, "agents": self.agents()}

    async def get_meta(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.meta())

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def post_session(self, request: web.Request) -> web.StreamResponse:
        new: NewSession = await self.read(request, NewSession)
        name = new.agent.name
        self.agent(name)
        session = Session(
            id=self.mint(),
            agent=name,
            tools=self.seed_tools(new),
            options=self.seed_options(new),
            client_tools=[tool.model_dump(exclude_none=True) for tool in new.tools],
            history=self.seed_history(new),
        )
        self.check_configuration(session)
        for url in images_in(session.history):
            self.check_image(url)
        self.sessions[session.id] = session
        self.created(session)
        return web.json_response({"sessionId": session.id}, status=201)

    def mint(self) -> str:
        return f"s-{uuid4().hex}"

    def created(self, session: Session) -> None:
        """A session was created; nothing runs, and the calls its history leaves open wait for the client."""
        session.pending = self.left_open(session)
        if session.pending:
            session.script = script("")

    def left_open(self, session: Session) -> dict[str, dict[str, Any]]:
        """The calls of the last message that is not a result, without those that have their result."""
        answered = {message["toolCallId"] for message in session.history if message["role"] == "tool"}
        said = [message for message in session.history if message["role"] != "tool"][-1:]
        blocks = [block for message in said for block in as_blocks(message["content"]) if block["type"] == "tool_use"]
        calls = [{name: block[name] for name in ("toolCallId", "name", "input")} for block in blocks]
        return {call["toolCallId"]: call for call in calls if call["toolCallId"] not in answered}

    def seed_tools(self, new: NewSession) -> dict[str, bool]:
        return {tool.name: tool.trust for tool in new.agent.tools or []}

    def seed_options(self, new: NewSession) -> dict[str, str]:
        return self.defaults(new.agent.name) | new.agent.options

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return [message.model_dump() for message in new.messages]

    def defaults(self, agent: str) -> dict[str, str]:
        return {option["name"]: option["default"] for option in self.agent(agent).get("options", [])}

    def check_image(self, url: str) -> None:
        """An image is an https:// URL or a data: URI with an image in base64."""
        found = DATA_IMAGE.fullmatch(url)
        try:
            sound = bool(b64decode(found[1], validate=True) if found else HTTPS.match(url))
        except ValueError:
            sound = False
        if not sound:
            raise Refusal(400, "an image is an https:// URL or a data: URI with an image in base64")

    def check_configuration(self, session: Session) -> None:
        self.check_tools(session)
        self.check_schemas(session)
        self.check_names(session)
        self.check_options(session)

    def check_tools(self, session: Session) -> None:
        known = {tool["name"] for tool in self.agent(session.agent).get("tools", [])}
        if unknown := set(session.tools) - known:
            raise Refusal(400, f"unknown tools: {', '.join(sorted(unknown))}")
        if session.client_tools and "tools" not in self.declared(session.agent, "application"):
            raise Refusal(400, "the agent takes no client tools")

    def check_schemas(self, session: Session) -> None:
        for tool in session.client_tools:
            if not is_schema(tool["parameters"]):
                raise Refusal(400, f"the parameters of {tool['name']} are no JSON Schema")

    def check_names(self, session: Session) -> None:
        names = [*session.tools, *(tool["name"] for tool in session.client_tools)]
        if len(set(names)) < len(names):
            raise Refusal(400, "two tools have the same name")

    def check_options(self, session: Session) -> None:
        options = {option["name"]: option for option in self.agent(session.agent).get("options", [])}
        for name, value in session.options.items():
            if name not in options:
                raise Refusal(400, f"unknown option: {name}")
            if options[name]["type"] == "select" and value not in options[name]["options"]:
                raise Refusal(400, f"{name} cannot be {value!r}")

    def secrets(self, session: Session) -> set[str]:
        options = self.agent(session.agent).get("options", [])
        return {option["name"] for option in options if option["type"] == "secret"}

    def info(self, session: Session) -> dict[str, Any]:
        hidden = self.secrets(session)
        options = {name: "***" if name in hidden else value for name, value in session.options.items()}
        tools = [{"name": name, "trust": trust} for name, trust in session.tools.items()]
        agent = {"name": session.agent, "tools": tools, "options": options}
        return {"sessionId": session.id, "agent": agent, "tools": session.client_tools}

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.info(self.find(request)))

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        """One page in order of creation; the cursor is the place of the last session on the page before."""
        place = self.place_of(after)
        rest = [session for session in self.sessions.values() if session.place > place]
        here = rest[:PAGE]
        return here, str(here[-1].place) if len(rest) > PAGE else None

    def place_of(self, after: str | None) -> int:
        return int(after) if after is not None and after.isdigit() else -1

    def listed(self, session: Session) -> dict[str, Any]:
        return self.info(session)

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        sessions, following = self.page(request.query.get("after"))
        body: dict[str, Any] = {"sessions": [self.listed(session) for session in sessions]}
        return web.json_response(self.listing(body, following))

    def listing(self, body: dict[str, Any], following: str | None) -> dict[str, Any]:
        return body if following is None else body | {"next": following}

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        del self.sessions[session.id]
        return web.Response(status=204)

    # -- history -------------------------------------------------------------------------------------------------------

    async def get_history(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        kind = request.query.get("type", "")
        self.check_history_type(session, kind)
        return web.json_response({"history": self.history(session, kind)})

    def check_history_type(self, session: Session, kind: str) -> None:
        if kind not in ("full", "compacted"):
            raise Refusal(400, "type must be full or compacted")
        if kind not in self.declared(session.agent, "history"):
            raise Refusal(404, f"the agent has no {kind} history")

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return {kind: session.history if kind == "full" else session.history[-4:]}
