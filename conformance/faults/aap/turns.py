"""Turns of the AAP reference server: they are checked, and the agent goes on."""

from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from conformance.faults.aap.agents import Agents
from conformance.faults.aap.front import Front
from conformance.faults.aap.modes import Stopped, TurnEvent
from conformance.faults.aap.player import Player
from conformance.faults.aap.requests import NewTurn, ToolMessage, ToolPermission, UserMessage
from conformance.faults.aap.sessions import Sessions
from conformance.faults.aap.state import Session
from conformance.faults.aap.writer import Writer
from conformance.faults.content import images_in
from conformance.faults.refusal import Refusal


class Turns:
    """Checks turns, merges their configuration into the session, and lets the agent go on."""

    def __init__(self, front: Front, agents: Agents, sessions: Sessions, player: Player, writer: Writer) -> None:
        self.front = front
        self.agents = agents
        self.sessions = sessions
        self.player = player
        self.writer = writer

    async def post_turn(self, request: web.Request) -> web.StreamResponse:
        session = self.sessions.find(request)
        turn: NewTurn = await self.front.read(request, NewTurn)
        self.check_room(session, turn)
        self.check_mode(session, turn)
        self.check_messages(session, turn)
        self.reconfigure(session, turn)
        session.running = True
        return await self.writer.answer_turn(request, turn, self.take(session, turn))

    def check_room(self, session: Session, turn: NewTurn) -> None:
        if session.running:
            raise Refusal(409, "a turn is running")

    def check_mode(self, session: Session, turn: NewTurn) -> None:
        if turn.stream not in (self.agents.declared(session.agent, "stream") or {"none"}):
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
            self.sessions.check_image(url)
            kind = "data" if url.startswith("data:") else "http"
            if kind not in self.agents.declared(session.agent, "image"):
                raise Refusal(400, f"the agent takes no {kind} images")

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        """Merge the turn's configuration into the session's, for good, if it is valid."""
        changed = session.copy()
        if turn.agent.name not in (None, session.agent):
            raise Refusal(400, "the agent cannot change")
        changed.options = self.merged(session, turn)
        if turn.agent.tools is not None:
            changed.tools = {tool.name: tool.trust for tool in turn.agent.tools}
        if turn.tools is not None:
            changed.client_tools = [tool.model_dump(exclude_none=True) for tool in turn.tools]
        self.sessions.check_configuration(changed)
        session.tools, session.options = changed.tools, changed.options
        session.client_tools = changed.client_tools

    def merged(self, session: Session, turn: NewTurn) -> dict[str, str]:
        return session.options | turn.agent.options

    async def take(self, session: Session, turn: NewTurn) -> AsyncIterator[TurnEvent]:
        """Enter the client's messages into the history and let the agent go on."""
        for message in turn.messages:
            match message:
                case UserMessage():
                    self.player.begin(session, self.remembered(message))
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
