"""Wrong AAP servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import re
from asyncio import BaseTransport
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from conformance.faults.aap.modes import Stopped, TurnEvent
from conformance.faults.aap.player import Player
from conformance.faults.aap.requests import NewTurn, ToolMessage
from conformance.faults.aap.server import AapServer
from conformance.faults.aap.sessions import PAGE
from conformance.faults.aap.state import Session
from conformance.faults.refusal import Refusal

Events = AsyncIterator[tuple[str, Any]]
BEFORE: ContextVar[Session] = ContextVar("before")
CONNECTION: ContextVar[BaseTransport | None] = ContextVar("connection")


class ToolsInAHurry(AapServer):
    """A client tool without a description is taken, with an empty one."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        body = orjson.loads(await request.read())
        if isinstance(body, dict) and isinstance(body.get("tools"), list):
            body["tools"] = [{"description": "", **tool} for tool in body["tools"]]
            with suppress(ValidationError):
                return model.model_validate(body)
        return await super().read(request, model)


class LargeNumbersAsText(AapServer):
    """Numbers that do not fit into a double come back as strings."""

    def info(self, session: Session) -> dict[str, Any]:
        shown = orjson.dumps(super().info(session)).decode()
        changed: dict[str, Any] = orjson.loads(re.sub(r"(?<=[:,\[])-?[0-9.e+]{17,}", r'"\g<0>"', shown))
        return changed


class PagesByOffset(AapServer):
    """The cursor counts sessions, so that a deleted one makes another be skipped."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        start, sessions = int(after or 0), self.in_order()
        return sessions[start : start + PAGE], str(start + PAGE) if len(sessions) > start + PAGE else None

    def in_order(self) -> list[Session]:
        return list(self.sessions.values())


class NewestFirstByOffset(PagesByOffset):
    """The cursor counts from the newest session, so that a new one makes another appear twice."""

    def in_order(self) -> list[Session]:
        return super().in_order()[::-1]


class CursorDiesWithItsSession(AapServer):
    """The cursor is a session; when that is deleted, the list ends."""

    def page(self, after: str | None) -> tuple[list[Session], str | None]:
        names = list(self.sessions)
        if after is not None and after not in names:
            return [], None
        start = names.index(after) + 1 if after else 0
        here = names[start : start + PAGE]
        return [self.sessions[name] for name in here], here[-1] if len(names) > start + PAGE else None


class EmptyTurnsTaken(AapServer):
    """A turn without messages is a turn."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        if model is NewTurn and b'"messages":[]' in await request.read():
            return NewTurn.model_construct(messages=[])
        return await super().read(request, model)


class HalfTaken(AapServer):
    """Of a refused list, the answers that fit are kept."""

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        try:
            super().check_answers(session, turn)
        except Refusal:
            for item in turn.messages:
                if isinstance(item, ToolMessage) and item.toolCallId in session.pending:
                    self.player.receive(session, item.model_dump())
            raise


class OverridesForgotten(AapServer):
    """What a turn changes is undone when it ends."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        before = session.copy()
        super().reconfigure(session, turn)
        BEFORE.set(before)

    def make_room(self, session: Session) -> None:
        super().make_room(session)
        before = BEFORE.get()
        session.tools, session.options, session.client_tools = before.tools, before.options, before.client_tools


class ToolsAdded(AapServer):
    """Tools of a turn join those of the session."""

    def reconfigure(self, session: Session, turn: NewTurn) -> None:
        before = session.copy()
        super().reconfigure(session, turn)
        session.tools = before.tools | session.tools
        names = {tool["name"] for tool in session.client_tools}
        session.client_tools += [tool for tool in before.client_tools if tool["name"] not in names]


class OneCallAnnounced(AapServer):
    """Of parallel calls only the first is announced."""

    async def whole_stream(self, events: Events, turn: NewTurn) -> Events:
        announced = False
        async for name, body in super().whole_stream(events, turn):
            if name != "tool_call" or not announced:
                yield name, body
            announced = announced or name == "tool_call"


class ResultBeforeCall(AapServer):
    """The stream has a result before its call."""

    async def whole_stream(self, events: Events, turn: NewTurn) -> Events:
        held: list[tuple[str, Any]] = []
        async for event in super().whole_stream(events, turn):
            if event[0] == "tool_call":
                held.append(event)
                continue
            yield event
            if event[0] == "tool_result":
                for call in held:
                    yield call
                held.clear()
            if event[0] == "turn_start":
                held.clear()


class CutOnFailure(AapServer):
    """A failing turn cuts the connection."""

    async def answer_turn(
        self, request: web.Request, turn: NewTurn, happened: AsyncIterator[TurnEvent]
    ) -> web.StreamResponse:
        CONNECTION.set(request.transport)
        return await super().answer_turn(request, turn, happened)

    async def whole_stream(self, events: Events, turn: NewTurn) -> Events:
        async for name, body in super().whole_stream(events, turn):
            connection = CONNECTION.get()
            if body.get("stopReason") == "error" and connection is not None:
                connection.close()
            yield name, body


class _Stepwise(Player):
    async def go_on(self, session: Session) -> AsyncIterator[TurnEvent]:
        if session.pending or len(session.history) < 3 or session.history[-1]["role"] != "tool":
            async for item in super().go_on(session):
                yield item
        else:
            yield Stopped("tool_use")


class StopsOnceMore(AapServer):
    """After the answers the turn stops again before it goes on."""

    player_type = _Stepwise
