"""A run listened to until it ends or waits: taken up again where it was cut, and never waited for without end."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from gateway.errors import GatewayError, TimedOut
from gateway.upstream import Cut, Heard, Upstream

from .hearing_words import members, text
from .remote_about import data_of, listed, told
from .remote_socket import Sockets, backoff
from .remote_talk import Lost, Talk

PENDING = "/human-confirmation/pending"
USER = "local"
NEWEST = 5
"""So many messages are looked at to find a run whose beginning was missed."""


class OutOfTime(TimedOut):
    """The run took longer in all than it may; taking it up again would not help."""


class Quiet(Exception):
    """Nothing was said for a while, where there may be nothing more to say."""


class Listening:
    """Hears the runs of one server.

    A run that was cut is taken up with `session.resume` after the last event that was heard, by its number; what the
    server repeats is left out. Where the connection broke before the server named the run, it is looked for among those
    that go on in the conversation, and in its newest messages. A server that cannot resume is heard up to where it was
    cut, and then the failure is raised.
    """

    def __init__(self, upstream: Upstream, sockets: Sockets) -> None:
        self._upstream, self._sockets = upstream, sockets
        self._ends_silently = False
        """Whether the last run that was heard to its end was not said to be over, as some servers do it."""

    async def hear(self, talk: Talk) -> AsyncGenerator[Heard, None]:
        """Until the run is over, or waits for people."""
        deadline = _now() + self._upstream.patience.total
        talk.asked, talk.expecting = [], False
        while not talk.over:
            try:
                heard = talk.take(await self._next(talk, deadline))
                self._ends_silently = self._ends_silently and not talk.over
            except Quiet:
                if talk.expecting:
                    return
                heard = await self._after_silence(talk)
            except OutOfTime:
                raise
            except (Cut, TimedOut) as error:
                await self._take_up(talk, error)
                continue
            for one in heard:
                yield one
            if heard and talk.asked and talk.hearing.paused and not talk.over:
                talk.expecting = await self._asks_more(talk)
                if not talk.expecting:
                    return

    # -- waiting --------------------------------------------------------------------------------------------------

    async def _next(self, talk: Talk, deadline: float) -> Any:
        patience, left = self._upstream.patience, deadline - _now()
        limit = patience.idle if talk.begun else patience.first_byte
        wait = min(left, limit - talk.silence)
        closing = talk.hearing.closing
        grace = talk.grace(soon=bool(talk.owed) or (closing and self._ends_silently))
        graceful = (talk.expecting or closing or talk.owed) and grace < wait
        wait = grace if graceful else wait
        try:
            frame = await talk.line.next(wait)
        except TimeoutError:
            talk.silence += wait
            if graceful:
                talk.quiets += 1
                raise Quiet from None
            if talk.silence >= limit:
                raise TimedOut(f"{self._upstream.name} has said nothing for {limit:g} seconds") from None
            raise OutOfTime(f"{self._upstream.name} took longer than {patience.total:g} seconds in all") from None
        talk.rest()
        return frame

    async def _after_silence(self, talk: Talk) -> list[Heard]:
        """Some servers end a run without saying so; whether it goes on, its state tells.

        A run that still waits, though it was answered, had told its question before it took answers.
        """
        if talk.owed and await self._waits(talk.run_id):
            talk.owed = [tell for tell in talk.owed if not await tell()]
        if talk.hearing.decided or (talk.hearing.closing and not await self._goes_on(talk.run_id)):
            self._ends_silently = True
            return talk.conclude()
        return []

    async def _waits(self, run_id: str) -> bool:
        """Whether anything of the run waits for people; of a server that cannot say so we do not know better."""
        try:
            return bool(await self.pending(run_id))
        except GatewayError:
            return True

    async def _goes_on(self, run_id: str) -> bool:
        try:
            state = members(data_of(await self._upstream.json("GET", f"/session/{run_id}")))
        except GatewayError as error:
            return (error.details or {}).get("upstream_status") != 404
        return state.get("active") is not False

    async def _asks_more(self, talk: Talk) -> bool:
        """Whether it waits for more than it was heard to ask; a server that cannot say so asks one thing at a time."""
        try:
            pending = await self.pending(talk.run_id)
        except GatewayError:
            return False
        heard, kinds = {ref.request_id for ref in talk.asked}, {ref.kind for ref in talk.asked if not ref.request_id}
        return any(text(one.get("request_id")) not in heard and kind_of(one) not in kinds for one in pending)

    async def pending(self, run_id: str = "") -> list[dict[str, Any]]:
        """What waits for people, in a run or anywhere."""
        query = {"session_id": run_id} if run_id else None
        found = listed(data_of(await self._upstream.json("GET", PENDING, query=query)), "pending")
        return [one for one in found if run_id in ("", one.get("session_id", run_id))]

    # -- taking up again ------------------------------------------------------------------------------------------

    async def _take_up(self, talk: Talk, error: GatewayError) -> None:
        """Go on with the run on a new connection; a run of which nothing new is heard so is given up."""
        while talk.stalls < self._upstream.patience.attempts:
            talk.stalls += 1
            await talk.line.close()
            await asyncio.sleep(backoff(talk.stalls - 1))
            if not talk.begun:
                talk.run_id = await self._find(talk) or ""
            if not talk.begun:
                raise Lost(f"{error.message}; whether it took the message is not known")
            talk.line, talk.broken, talk.silence = await self._sockets.open(), error, 0.0
            try:
                await talk.resume()
            except (Cut, TimedOut) as again:
                error = again
            else:
                return
        raise error

    async def _find(self, talk: Talk) -> str | None:
        """The run that our message began: the one that goes on, or else a new one that is over already."""
        run_id = await self.running(talk.session_id)
        if run_id is not None or talk.before is None:
            return run_id
        path = f"/conversations/{talk.session_id}/messages"
        query = {"limit": str(NEWEST), "order": "desc"}
        found = listed(data_of(await self._upstream.json("GET", path, query=query)), "messages")
        messages = sorted(found, key=lambda one: text(one.get("created_at")))  # servers differ in what desc means
        runs = [text(members(one.get("metadata")).get("session_id")) for one in messages]
        newest = next((run for run in reversed(runs) if run), "")
        return newest if newest != talk.before else None

    async def running(self, session_id: str) -> str | None:
        """The run that goes on in a conversation, as far as the server tells."""
        active = listed(await told(self._upstream, "/sessions"), "sessions")
        return next((text(one.get("session_id")) or None for one in active
                     if one.get("conversation_id") == session_id), None)


def kind_of(pending: dict[str, Any]) -> str:
    return text(members(pending.get("metadata")).get("kind"))


def _now() -> float:
    return asyncio.get_running_loop().time()
