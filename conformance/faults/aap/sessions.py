"""Sessions of the AAP reference server, and their histories."""

import re
from base64 import b64decode
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.faults.aap.agents import Agents
from conformance.faults.aap.front import Front
from conformance.faults.aap.requests import NewSession
from conformance.faults.aap.state import Session, State
from conformance.faults.content import as_blocks, images_in
from conformance.faults.refusal import Refusal
from conformance.faults.script import script
from conformance.kit.schemas import is_schema

PAGE = 10
DATA_IMAGE = re.compile(r"data:image/[\w.+-]+(?:;[\w.+-]+=[^;,]+)*;base64,(.+)", re.ASCII)
HTTPS = re.compile(r"https://[^/?#\s]+")


class Sessions:
    """Creates, checks, shows, lists and deletes sessions, and shows their histories."""

    def __init__(self, state: State, front: Front, agents: Agents) -> None:
        self.state = state
        self.front = front
        self.agents = agents

    def find(self, request: web.Request) -> Session:
        try:
            return self.state.sessions[request.match_info["id"]]
        except KeyError:
            raise Refusal(404, "there is no such session") from None

    async def post_session(self, request: web.Request) -> web.StreamResponse:
        new: NewSession = await self.front.read(request, NewSession)
        name = new.agent.name
        self.agents.agent(name)
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
        self.state.sessions[session.id] = session
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
        return self.agents.defaults(new.agent.name) | new.agent.options

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return [message.model_dump() for message in new.messages]

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
        known = {tool["name"] for tool in self.agents.agent(session.agent).get("tools", [])}
        if unknown := set(session.tools) - known:
            raise Refusal(400, f"unknown tools: {', '.join(sorted(unknown))}")
        if session.client_tools and "tools" not in self.agents.declared(session.agent, "application"):
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
        options = {option["name"]: option for option in self.agents.agent(session.agent).get("options", [])}
        for name, value in session.options.items():
            if name not in options:
                raise Refusal(400, f"unknown option: {name}")
            if options[name]["type"] == "select" and value not in options[name]["options"]:
                raise Refusal(400, f"{name} cannot be {value!r}")

    def info(self, session: Session) -> dict[str, Any]:
        hidden = self.agents.secrets(session)
        options = {name: "***" if name in hidden else value for name, value in session.options.items()}
        tools = [{"name": name, "trust": trust} for name, trust in session.tools.items()]
        agent = {"name": session.agent, "tools": tools, "options": options}
        return {"sessionId": session.id, "agent": agent, "tools": session.client_tools}

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.info(self.find(request)))

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        """One page in order of creation; the cursor is the place of the last session on the page before."""
        place = self.place_of(after)
        rest = [session for session in self.state.sessions.values() if session.place > place]
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
        del self.state.sessions[session.id]
        return web.Response(status=204)

    async def get_history(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        kind = request.query.get("type", "")
        self.check_history_type(session, kind)
        return web.json_response({"history": self.history(session, kind)})

    def check_history_type(self, session: Session, kind: str) -> None:
        if kind not in ("full", "compacted"):
            raise Refusal(400, "type must be full or compacted")
        if kind not in self.agents.declared(session.agent, "history"):
            raise Refusal(404, f"the agent has no {kind} history")

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return {kind: session.history if kind == "full" else session.history[-4:]}
