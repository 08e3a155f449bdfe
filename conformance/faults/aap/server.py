"""A small correct AAP server, in memory, whose every rule is a step that a fault can change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.aap.modes import Stopped, TurnEvent, in_deltas, in_messages, in_one_body
from conformance.faults.aap.player import Player
from conformance.faults.aap.requests import NewTurn, ToolMessage, ToolPermission, UserMessage
from conformance.faults.aap.sessions import Handler, Sessions
from conformance.faults.aap.state import Session
from conformance.faults.content import images_in
from conformance.faults.refusal import Refusal


class AapServer(Sessions):
    """All of AAP, with an agent that knows the directives and one that declares nothing."""

    mount = "/aap"
    stream_type = "text/event-stream"
    player_type: type[Player] = Player

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.player = self.player_type()

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.answer(request, handler)

        app = web.Application(middlewares=[answering])
        app.add_routes(
            [
                web.get("/aap/meta", self.get_meta),
                web.post("/aap/sessions", self.post_session),
                web.get("/aap/sessions", self.get_sessions),
                web.get("/aap/sessions/{id}", self.get_session),
                web.delete("/aap/sessions/{id}", self.delete_session),
                web.get("/aap/sessions/{id}/history", self.get_history),
                web.post("/aap/sessions/{id}/turns", self.post_turn),
            ]
        )
        return app

    async def post_turn(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        turn: NewTurn = await self.read(request, NewTurn)
        self.check_room(session, turn)
        self.check_mode(session, turn)
        self.check_messages(session, turn)
        self.reconfigure(session, turn)
        session.running = True
        return await self.answer_turn(request, turn, self.take(session, turn))

    def check_room(self, session: Session, turn: NewTurn) -> None:
        if session.running:
            raise Refusal(409, "a turn is running")

    def check_mode(self, session: Session, turn: NewTurn) -> None:
        if turn.stream not in (self.declared(session.agent, "stream") or {"none"}):
            raise Refusal(400, f"the agent does not stream {turn.stream}")

    def check_messages(self, session: Session, turn: NewTurn) -> None:
        users = [message for message in turn.messages if isinstance(message, UserMessage)]
        if users and len(turn.messages) > 1:
            raise Refusal(400, "a turn takes one user message, or answers")
        for message in users:
            self.check_images(session, message)
        self.check_answers(session, turn)

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        answers = [item.toolCallId for item in turn.messages if not isinstance(item, UserMessage)]
        if strange := set(answers) - set(session.pending):
            raise Refusal(400, f"not pending: {', '.join(sorted(strange))}")

    def check_images(self, session: Session, message: UserMessage) -> None:
        for url in images_in([message.model_dump()]):
            self.check_image(url)
            kind = "data" if url.startswith("data:") else "http"
            if kind not in self.declared(session.agent, "image"):
                raise Refusal(400, f"the agent takes no {kind} images")

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        """Lay the turn's configuration over the session's, for good, if it is sound."""
        changed = session.copy()
        if turn.agent.name not in (None, session.agent):
            raise Refusal(400, "the agent cannot change")
        changed.options = self.merged(session, turn)
        if turn.agent.tools is not None:
            changed.tools = {tool.name: tool.trust for tool in turn.agent.tools}
        if turn.tools is not None:
            changed.client_tools = [tool.model_dump(exclude_none=True) for tool in turn.tools]
        self.check_configuration(changed)
        session.tools, session.options = changed.tools, changed.options
        session.client_tools = changed.client_tools

    def merged(self, session: Session, turn: NewTurn) -> dict[str, str]:
        return session.options | turn.agent.options

    async def take(self, session: Session, turn: NewTurn) -> AsyncIterator[TurnEvent]:
        """Enter the client's messages into the history and let the agent go on."""
        for message in turn.messages:
            match message:
                case UserMessage():
                    self.player.hear(session, self.remembered(message))
                case ToolMessage():
                    self.player.receive(session, message.model_dump())
                case ToolPermission():
                    async for item in self.player.decide(session, message):
                        yield item
        async for item in self.player.go_on(session):
            if isinstance(item, Stopped):
                self.make_room(session)
            yield item

    def make_room(self, session: Session) -> None:
        """The turn is over before the client can know it."""
        session.running = False

    def remembered(self, message: UserMessage) -> dict[str, Any]:
        return message.model_dump()

    async def answer_turn(
        self, request: web.Request, turn: NewTurn, happened: AsyncIterator[TurnEvent]
    ) -> web.StreamResponse:
        if turn.stream == "none":
            return web.json_response(await self.in_one_body(happened))
        response = web.StreamResponse(headers={"Content-Type": self.stream_type})
        await response.prepare(request)
        events = self.in_deltas(happened) if turn.stream == "delta" else self.in_messages(happened)
        async for name, body in self.whole_stream(events, turn):
            with suppress(ConnectionResetError):
                await response.write(self.frame(name, body))
            await asyncio.sleep(0)
        with suppress(ConnectionResetError):
            await response.write_eof()
        return response

    def in_deltas(self, happened: AsyncIterator[TurnEvent]) -> AsyncIterator[tuple[str, Any]]:
        return in_deltas(happened)

    def in_messages(self, happened: AsyncIterator[TurnEvent]) -> AsyncIterator[tuple[str, Any]]:
        return in_messages(happened)

    async def in_one_body(self, happened: AsyncIterator[TurnEvent]) -> dict[str, Any]:
        return await in_one_body(happened)

    async def whole_stream(
        self, events: AsyncIterator[tuple[str, Any]], turn: NewTurn
    ) -> AsyncIterator[tuple[str, Any]]:
        """The whole stream, turn_start first."""
        yield "turn_start", {}
        async for event in events:
            yield event

    def frame(self, name: str, body: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(body))


SERVER, REFUSAL = AapServer, Refusal
