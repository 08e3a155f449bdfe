"""Wrong CAS servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Item, Session
from conformance.faults.cas.variations import OtherEndings
from conformance.faults.steps import AsyncStep, Step


@dataclass
class LiveAgents:
    """A session shows its agent as it is now."""

    server: CasServer

    def shown(self, step: Step[Body], session: Session) -> Body:
        return step(session) | {"agent": self.server.agents.version(session.view["agent_id"])}


class HalfAccepted:
    """What stands before a wrong event is accepted."""

    def take_all(self, step: Step[list[Body]], session: Session, events: list[Body]) -> list[Body]:
        return [taken for event in events for taken in step(session, [event])]


@dataclass
class LateEnds:
    """The stream repeats the end of a turn after the message that took its place."""

    after = OtherEndings
    server: CasServer
    given_up: str | None = None

    async def post_events(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        session = self.server.sessions.find(request)
        if session.is_waiting and session.task is not None and "user.message" in await request.text():
            self.given_up = session.turn_id
        return await step(request)

    def begin_turn(self, step: Step[Body], session: Session, event: Body) -> Body:
        stored = step(session, event)
        if self.given_up is not None:
            idle = self.server.journal.idle(session, {"type": "cancelled"})
            self.server.journal.store(session, idle | {"turn_id": self.given_up})
        return stored


class SettledCallsListed:
    """The idle after the first answer lists the call that was answered too."""

    after = OtherEndings

    def idle(self, step: Step[Body], session: Session, reason: Body) -> Body:
        is_waiting = reason["type"] == "requires_action"
        return step(session, reason | {"event_ids": list(session.pending)} if is_waiting else reason)


@dataclass
class GapBeforeLive:
    """What happens between replay and live is lost."""

    server: CasServer

    async def pump(self, step: AsyncStep[None], response: web.StreamResponse, session: Session, *given: Any) -> None:
        thread, _, forms = given
        await _replay(self.server, response, session, *given)
        await asyncio.sleep(0.15)
        await step(response, session, thread, session.end, forms)


@dataclass
class RepeatedBeforeLive:
    """The last event of the replay comes again when the stream goes live."""

    server: CasServer

    async def pump(self, step: AsyncStep[None], response: web.StreamResponse, session: Session, *given: Any) -> None:
        thread, start, forms = given
        await _replay(self.server, response, session, *given)
        replayed = [place for place, item in enumerate(session.feed) if item.form == "stored" and place >= start]
        await step(response, session, thread, replayed[-1] if replayed else session.end, forms)


async def _replay(
    server: CasServer, response: web.StreamResponse, session: Session, thread: str | None, place: int, forms: set[str]
) -> None:
    """Send what happened before the stream was opened."""
    for item in session.feed[place:]:
        if server.streams.is_shown(item, session, thread, forms, is_old=True):
            await response.write(server.streams.frame(item.body))


@dataclass
class LateAnswers:
    """The stream sends answers to calls only after the end of the turn that they let go on."""

    held: dict[str, bytes] = field(default_factory=dict)

    def frame(self, step: Step[bytes], body: Body) -> bytes:
        session = str(body.get("session_id"))
        if body["type"] in ("user.tool_confirmation", "user.custom_tool_result"):
            self.held[session] = step(body)
            return b""
        return step(body) + (self.held.pop(session, b"") if body["type"] == "session.status_idle" else b"")


@dataclass
class SecondClassStreams:
    """Every second stream leaves out thoughts."""

    streams: int = 0

    def forms(self, step: Step[set[str]], request: web.Request, session: Session) -> set[str]:
        self.streams += 1
        return step(request, session) | ({"second class"} if self.streams % 2 == 0 else set())

    def is_shown(
        self, step: Step[bool], item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool
    ) -> bool:
        is_kept = "second class" not in forms or item.body["type"] != "agent.thinking"
        return is_kept and step(item, session, thread, forms, is_old)
