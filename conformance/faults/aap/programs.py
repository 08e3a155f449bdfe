"""Wrong AAP servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import re
from asyncio import BaseTransport
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from conformance.faults.aap.modes import Stopped, TurnEvent
from conformance.faults.aap.requests import NewTurn, ToolMessage
from conformance.faults.aap.server import AapServer
from conformance.faults.aap.sessions import PAGE
from conformance.faults.aap.state import Session
from conformance.faults.refusal import Refusal
from conformance.faults.steps import AsyncStep, Step

Events = AsyncIterator[tuple[str, Any]]
Page = tuple[list[Session], str | None]
BEFORE: ContextVar[Session] = ContextVar("before")
CONNECTION: ContextVar[BaseTransport | None] = ContextVar("connection")


class ToolsInAHurry:
    """A client tool without a description is taken, with an empty one."""

    async def read(self, step: AsyncStep[Any], request: web.Request, model: type[BaseModel]) -> Any:
        with suppress(orjson.JSONDecodeError, ValidationError):
            body = orjson.loads(await request.read())
            if isinstance(body, dict) and isinstance(body.get("tools"), list):
                body["tools"] = [{"description": "", **tool} for tool in body["tools"]]
                return model.model_validate(body)
        return await step(request, model)


class LargeNumbersAsText:
    """Numbers that do not fit into a double come back as strings."""

    def info(self, step: Step[dict[str, Any]], session: Session) -> dict[str, Any]:
        shown = orjson.dumps(step(session)).decode()
        changed: dict[str, Any] = orjson.loads(re.sub(r"(?<=[:,\[])-?[0-9.e+]{17,}", r'"\g<0>"', shown))
        return changed


@dataclass
class PagesByOffset:
    """The cursor counts sessions, so that a deleted one makes another be skipped."""

    server: AapServer

    def page(self, step: Step[Page], after: str | None) -> Page:
        return _from_offset(list(self.server.state.sessions.values()), after)


@dataclass
class NewestFirstByOffset:
    """The cursor counts from the newest session, so that a new one makes another appear twice."""

    server: AapServer

    def page(self, step: Step[Page], after: str | None) -> Page:
        return _from_offset(list(self.server.state.sessions.values())[::-1], after)


def _from_offset(sessions: list[Session], after: str | None) -> Page:
    start = int(after or 0)
    return sessions[start : start + PAGE], str(start + PAGE) if len(sessions) > start + PAGE else None


@dataclass
class CursorDiesWithItsSession:
    """The cursor is a session; when that is deleted, the list ends."""

    server: AapServer

    def page(self, step: Step[Page], after: str | None) -> Page:
        names = list(self.server.state.sessions)
        if after is not None and after not in names:
            return [], None
        start = names.index(after) + 1 if after else 0
        here = names[start : start + PAGE]
        return [self.server.state.sessions[name] for name in here], here[-1] if len(names) > start + PAGE else None


class EmptyTurnsTaken:
    """A turn without messages is a turn."""

    async def read(self, step: AsyncStep[Any], request: web.Request, model: type[BaseModel]) -> Any:
        if model is NewTurn and b'"messages":[]' in await request.read():
            return NewTurn.model_construct(messages=[])
        return await step(request, model)


@dataclass
class HalfTaken:
    """Of a refused list, the answers that fit are kept."""

    server: AapServer

    def check_answers(self, step: Step[None], session: Session, turn: NewTurn) -> None:
        try:
            step(session, turn)
        except Refusal:
            for item in turn.messages:
                if isinstance(item, ToolMessage) and item.toolCallId in session.pending:
                    self.server.player.receive(session, item.model_dump())
            raise


class OverridesForgotten:
    """What a turn changes is undone when it ends."""

    def reconfigure(self, step: Step[None], session: Session, turn: NewTurn) -> None:
        before = session.copy()
        step(session, turn)
        BEFORE.set(before)

    def make_room(self, step: Step[None], session: Session) -> None:
        step(session)
        before = BEFORE.get()
        session.tools, session.options, session.client_tools = before.tools, before.options, before.client_tools


class ToolsAdded:
    """Tools of a turn join those of the session."""

    def reconfigure(self, step: Step[None], session: Session, turn: NewTurn) -> None:
        before = session.copy()
        step(session, turn)
        session.tools = before.tools | session.tools
        names = {tool["name"] for tool in session.client_tools}
        session.client_tools += [tool for tool in before.client_tools if tool["name"] not in names]


class OneCallAnnounced:
    """Of parallel calls only the first is announced."""

    async def whole_stream(self, step: Step[Events], events: Events, turn: NewTurn) -> Events:
        announced = False
        async for name, body in step(events, turn):
            if name != "tool_call" or not announced:
                yield name, body
            announced = announced or name == "tool_call"


class ResultBeforeCall:
    """The stream has a result before its call."""

    async def whole_stream(self, step: Step[Events], events: Events, turn: NewTurn) -> Events:
        held: list[tuple[str, Any]] = []
        async for event in step(events, turn):
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


class CutOnFailure:
    """A failing turn cuts the connection."""

    async def answer_turn(
        self,
        step: AsyncStep[web.StreamResponse],
        request: web.Request,
        turn: NewTurn,
        happened: AsyncIterator[TurnEvent],
    ) -> web.StreamResponse:
        CONNECTION.set(request.transport)
        return await step(request, turn, happened)

    async def whole_stream(self, step: Step[Events], events: Events, turn: NewTurn) -> Events:
        async for name, body in step(events, turn):
            connection = CONNECTION.get()
            if body.get("stopReason") == "error" and connection is not None:
                connection.close()
            yield name, body


class StopsOnceMore:
    """After the answers to several calls the turn stops again before it goes on."""

    async def go_on(self, step: Step[AsyncIterator[TurnEvent]], session: Session) -> AsyncIterator[TurnEvent]:
        if session.pending or [item["role"] for item in session.history[-2:]] != ["tool", "tool"]:
            async for item in step(session):
                yield item
        else:
            yield Stopped("tool_use")
