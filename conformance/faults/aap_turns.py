"""Servers that take, refuse or overlap turns wrongly."""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, Session
from conformance.faults.performer import Performer
from conformance.faults.reference import ReferenceServer
from conformance.faults.script import Stop
from conformance.faults.telling import Happening
from conformance.faults.wire import NewTurn, ToolMessage, UserMessage

REFUSED = "turns.a_refused_turn_changes_nothing"
PENDING = "turns.only_pending_calls_can_be_answered"
PARTLY = "turns.answers_may_come_one_by_one"
ONE = "turns.one_turn_at_a_time"
ROOM = "turns.an_ended_turn_makes_room"
UNDONE: ContextVar[Session] = ContextVar("undone")


@fault("AAP-TURN-01", cases="turns.a_turn_runs_in_every_declared_mode")
class StreamsUnlessTold(ReferenceServer):
    """The default mode is delta."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        body = await super().read(request, model)
        if isinstance(body, NewTurn) and "stream" not in body.model_fields_set:
            body.stream = "delta"
        return body


@fault("AAP-TURN-01", "AAP-META-04", cases="""
    turns.a_turn_needs_a_session_and_a_known_mode meta.what_is_declared_is_supported""")
class UndeclaredModesTaken(ReferenceServer):
    """Every agent streams in every mode."""

    def check_mode(self, session: Session, turn: NewTurn) -> None:
        return None


@fault("AAP-TURN-02", cases=REFUSED)
class EmptyTurnsTaken(ReferenceServer):
    """A turn without messages is a turn."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        if model is NewTurn and b'"messages":[]' in await request.read():
            return NewTurn.model_construct(messages=[])
        return await super().read(request, model)


@fault("AAP-TURN-02", cases=REFUSED)
class SeveralUserMessagesTaken(ReferenceServer):
    """Any number of user messages is taken."""

    def check_messages(self, session: Session, turn: NewTurn) -> None:
        self.check_answers(session, turn)


@fault("AAP-TURN-02", cases=REFUSED)
class RefusedButRemembered(ReferenceServer):
    """A refused user message stays in the history."""

    def check_messages(self, session: Session, turn: NewTurn) -> None:
        session.history += [item.model_dump() for item in turn.messages[1:] if isinstance(item, UserMessage)]
        super().check_messages(session, turn)


@fault("AAP-TURN-02", cases=REFUSED)
class RefusedButReconfigured(ReferenceServer):
    """A refused turn leaves its configuration behind."""

    def check_messages(self, session: Session, turn: NewTurn) -> None:
        self.reconfigure(session, turn)
        super().check_messages(session, turn)


class _Lenient(Performer):
    """Takes any answer for a result."""

    def receive(self, session: Session, message: dict[str, Any]) -> None:
        session.pending.pop(message["toolCallId"], None)
        session.history.append(message)


@fault("AAP-TURN-02", cases=f"{REFUSED} {PENDING}")
class AnyAnswerTaken(ReferenceServer):
    """Answers to calls nobody made are taken."""

    performer_type = _Lenient

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        if not all(isinstance(item, ToolMessage) for item in turn.messages):
            super().check_answers(session, turn)


@fault("AAP-TURN-02", cases=PENDING)
class HalfTaken(ReferenceServer):
    """Of a refused list, the answers that fit are kept."""

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        try:
            super().check_answers(session, turn)
        except Refusal:
            fitting = [item for item in turn.messages if isinstance(item, ToolMessage)]
            for item in fitting:
                if item.toolCallId in session.pending:
                    self.performer.receive(session, item.model_dump())
            raise


@fault("AAP-TURN-03", cases="turns.options_merge_and_last")
class OptionsReplaced(ReferenceServer):
    """Options of a turn take the place of all others."""

    def merged(self, session: Session, turn: NewTurn) -> dict[str, str]:
        return self.defaults(session.agent) | turn.agent.options if turn.agent.options else session.options


@fault("AAP-TURN-03", cases="""
    turns.options_merge_and_last turns.server_tools_are_replaced_and_last turns.client_tools_are_replaced_and_last""")
class OverridesForgotten(ReferenceServer):
    """What a turn changes is undone when it ends."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        before = session.copy()
        super().reconfigure(session, turn)
        UNDONE.set(before)

    def make_room(self, session: Session) -> None:
        super().make_room(session)
        before = UNDONE.get()
        session.tools, session.options, session.client_tools = before.tools, before.options, before.client_tools


@fault("AAP-TURN-03", cases="turns.server_tools_are_replaced_and_last turns.client_tools_are_replaced_and_last")
class ToolsAdded(ReferenceServer):
    """Tools of a turn join those of the session."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        before = session.copy()
        super().reconfigure(session, turn)
        session.tools = before.tools | session.tools
        names = {tool["name"] for tool in session.client_tools}
        session.client_tools += [tool for tool in before.client_tools if tool["name"] not in names]


@fault("AAP-TURN-03", cases="turns.the_agent_stays_the_same")
class AgentChanges(ReferenceServer):
    """A turn can change the agent."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        if turn.agent.name in {agent["name"] for agent in self.agents()}:
            session.agent = str(turn.agent.name)
            session.options = self.defaults(session.agent)


@fault("AAP-TURN-04", cases=ONE)
class TurnsOverlap(ReferenceServer):
    """A second turn runs beside the first."""

    def check_room(self, session: Session) -> None:
        return None


@fault("AAP-TURN-04", cases=ONE)
class BusyIs400(ReferenceServer):
    """A second turn is refused with 400."""

    def check_room(self, session: Session) -> None:
        if session.running:
            raise Refusal(400, "busy")


@fault("AAP-TURN-04", cases=ONE)
class IntruderRemembered(ReferenceServer):
    """The message of a refused second turn stays in the history."""

    async def post_turn(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        if session.running:
            session.history.append((await request.json())["messages"][0])
        return await super().post_turn(request)


@fault("AAP-TURN-04", cases=ONE)
class IntruderStopsTheFirst(ReferenceServer):
    """A refused second turn ends the first before its time."""

    def check_room(self, session: Session) -> None:
        if session.running:
            session.script.moves[:] = [Stop("error")]
        super().check_room(session)


@fault("AAP-TURN-04", cases=ROOM)
class NoRoomAfterFailure(ReferenceServer):
    """A session whose turn failed stays busy."""

    def make_room(self, session: Session) -> None:
        last = session.history[-1]["content"]
        session.running = "This will not be " in str(last)


@fault("AAP-TURN-04", "AAP-SSE-06", cases=f"{ROOM} streaming.a_plain_reply_stops_with_end_turn")
class NoRoomEver(ReferenceServer):
    """A session takes one turn in its life."""

    def make_room(self, session: Session) -> None:
        return None


class _Impatient(Performer):
    """Does not wait for the other answers."""

    async def go_on(self, session: Session) -> AsyncIterator[Happening]:
        session.pending.clear()
        async for happening in super().go_on(session):
            yield happening


@fault("AAP-TURN-02", cases=PARTLY)
class OneAnswerWillDo(ReferenceServer):
    """Once one of several calls is answered the agent goes on, and the others are forgotten."""

    performer_type = _Impatient


class _Grudging(Performer):
    """Keeps a result only if nothing else is open."""

    def receive(self, session: Session, message: dict[str, Any]) -> None:
        super().receive(session, message)
        if session.pending:
            session.history.pop()


@fault("AAP-TURN-02", cases=PARTLY)
class PartOfTheAnswersLost(ReferenceServer):
    """A result that comes while other calls are open is taken and not kept."""

    performer_type = _Grudging
