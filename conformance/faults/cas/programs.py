"""Wrong CAS servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio

from aiohttp import web

from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Item, Session
from conformance.faults.cas.variations import OtherEndings


class LiveAgents(CasServer):
    """A session shows its agent as it is now."""

    def shown(self, session: Session) -> Body:
        return super().shown(session) | {"agent": self.version(session.view["agent_id"])}


class HalfAccepted(CasServer):
    """What stands before a wrong event is accepted."""

    def take_all(self, session: Session, events: list[Body]) -> list[Body]:
        return [taken for event in events for taken in super(HalfAccepted, self).take_all(session, [event])]


class LateEnds(OtherEndings):
    """The stream repeats the end of a turn after the message that took its place."""

    given_up: str | None = None

    async def give_up(self, session: Session, task: "asyncio.Task[None]") -> None:
        self.given_up = session.turn_id
        await super().give_up(session, task)

    def hear(self, session: Session, event: Body) -> Body:
        stored = super().hear(session, event)
        if self.given_up is not None:
            self.store(session, self.idle(session, {"type": "cancelled"}) | {"turn_id": self.given_up})
        return stored


class SettledCallsListed(OtherEndings):
    """The idle after the first answer lists the call that was answered too."""

    def left(self, session: Session) -> list[str]:
        return list(session.pending)


class _Joining(CasServer):
    """Does something wrong where the replay meets the present."""

    async def pump(
        self, response: web.StreamResponse, session: Session, thread: str | None, place: int, forms: set[str]
    ) -> None:
        for item in session.feed[place:]:
            if self.is_shown(item, session, thread, forms, is_old=True):
                await response.write(self.frame(item.body))
        await super().pump(response, session, thread, await self.joined(session), forms)

    async def joined(self, session: Session) -> int:
        """Where the stream goes on after its replay."""
        raise NotImplementedError


class GapBeforeLive(_Joining):
    """What happens between replay and live is lost."""

    async def joined(self, session: Session) -> int:
        await asyncio.sleep(0.15)
        return session.end


class RepeatedBeforeLive(_Joining):
    """The last event of the replay comes again when the stream goes live."""

    async def joined(self, session: Session) -> int:
        stored = [place for place, item in enumerate(session.feed) if item.form == "stored"]
        return stored[-1] if stored else 0


class SecondClassStreams(CasServer):
    """Every second stream leaves out thoughts."""

    streams = 0

    def forms(self, request: web.Request, session: Session) -> set[str]:
        self.streams += 1
        return super().forms(request, session) | ({"second class"} if self.streams % 2 == 0 else set())

    def is_shown(self, item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool) -> bool:
        is_kept = "second class" not in forms or item.body["type"] != "agent.thinking"
        return is_kept and super().is_shown(item, session, thread, forms, is_old)
