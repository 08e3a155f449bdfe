"""Sessions that other servers hold: copies that are brought up to date before they are shown, and watchers told on."""

import asyncio
from collections.abc import Sequence

import structlog

import gateway.model as m
from gateway.engine import Cursor, Hub, Runtime, Session, restore_idle
from gateway.errors import GatewayError
from gateway.ports import StreamSlot
from gateway.storage.log.redis import LeaseLost, RedisLog, decode_entry
from gateway.storage.redis import RedisPubSub

from . import messages
from .leases import HeldSessions
from .messages import OwnerChanged, RpcReply, RpcRequest, unseal_message
from .rpc import RpcChannel

log = structlog.get_logger("dragoman.cluster")


class SessionCopies(HeldSessions):
    """Each session that is watched here and held elsewhere has a channel, over which its writer's entries come.

    What is missed is read from the log, and nobody waits in Redis for a client: there is one connection that listens,
    whoever watches. One channel for all sessions would have every server hear every word of every other one.
    """

    def __init__(self, runtime: Runtime, hub: Hub, kept: RedisLog) -> None:
        super().__init__(runtime, hub, kept)
        self._listener = RedisPubSub(
            self._redis.address, self._redis.seconds, self._hear, self._missed, self._redis.clock)
        self._post = RpcChannel(self._redis, self._serve, kept.seal)
        self._attending: dict[str, asyncio.Task[None]] = {}
        self._behind: set[str] = set()
        """Sessions of which something was missing while they were being read: they are read again."""
        self._cut_off = False
        self._mail = self._redis.key("to", self._redis.replica)
        self._redis.on_reset.append(self._begin_anew)

    async def recover(self) -> int:
        await self._listener.start(self._mail)
        return await super().recover()

    async def rest(self) -> None:
        await self._post.close()
        await super().rest()
        await self._listener.close()
        for task in self._attending.values():
            task.cancel()

    async def _serve(self, letter: RpcRequest, again: bool) -> RpcReply | None:
        """What another server asks of us; None if it is not known yet what became of it."""
        raise NotImplementedError

    # -- copies ---------------------------------------------------------------------------------------------------

    async def _loaded(self, session_id: str) -> Session | None:
        if self._log.holds(session_id):
            await self._membership.sure()
        if session_id in self._going or self._log.holds(session_id):
            return await super()._loaded(session_id)
        return await self._copy(session_id) or await self._copy(session_id)

    async def _load(self, session_id: str) -> Session | None:
        """Those who watch have all that there was before anything new is said."""
        if (shown := self._hub.head_of(session_id)) is not None:
            self._relay(session_id, await self._log.read(session_id, shown))
        self._listener.ignore(self._news(session_id))
        return await super()._load(session_id)

    async def _copy(self, session_id: str) -> Session | None:
        """The session as its writer has stored it up to now; None if it is gone, or has gone back in time."""
        stored = None if session_id in self._sessions else await self._stored_copy(session_id)
        if not self._log.holds(session_id) and (session := self._kept_copy(session_id, stored)) is not None:
            shown = self._hub.head_of(session_id)
            known = session.view.head if shown is None else min(shown, session.view.head)
            records = await self._log.since(session_id, known)
            if records is not None or self._log.holds(session_id):
                self._take_in(session_id, records or ())
            else:
                self._drop_copy(session_id)
                self._hub.cut_session(session_id)
        return await super()._loaded(session_id) if self._log.holds(session_id) else self._sessions.get(session_id)

    async def _stored_copy(self, session_id: str) -> Session | None:
        spine = await self._log.read_without_deltas(session_id)
        if not spine:
            return None
        session = Session(session_id, self._runtime)
        await restore_idle(session, spine, spine[-1].seq)
        return session

    def _kept_copy(self, session_id: str, stored: Session | None) -> Session | None:
        session = self._sessions.pop(session_id, None) or stored
        if session is not None:
            self._keep(session)
        return session

    def _is_unsettled(self, session_id: str) -> bool:
        """What is on its way into the log elsewhere cannot be known here: while a turn runs there, something may be."""
        session = self._sessions.get(session_id)
        if session is None or self._log.holds(session_id):
            return super()._is_unsettled(session_id)
        return session.view.status is m.SessionStatus.RUNNING

    async def _seen(self, session: Session) -> m.SessionView:
        try:
            return await super()._seen(session)
        except LeaseLost:
            found = await self._loaded(session.view.session_id)
            if found is None:
                raise
            return await super()._seen(found)

    def _begin_anew(self) -> None:
        """The data are gone: nothing that is at hand means anything any more."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            if session.run is not None:
                session.run.abandon()
        self._runtime.replacement_backends.clear()
        self._hub.cut_all()

    # -- those who watch ------------------------------------------------------------------------------------------

    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: str = "", *, after: int = 0,
        place: StreamSlot | None = None,
    ) -> Cursor:
        cursor = await super().subscribe(owner, session_id, dialect, options, after=after, place=place)
        if not self._log.holds(session_id):
            try:
                await self._attend(session_id)
            except BaseException:
                cursor.close()
                raise
        return cursor

    def _committed(self, records: Sequence[m.Record]) -> None:
        session_id = records[0].session_id
        if self._log.holds(session_id):
            super()._committed(records)
        else:
            self._take_in(session_id, records)

    def _take_in(self, session_id: str, records: Sequence[m.Record]) -> None:
        """What another server has stored: into the copy at hand, and to those who watch."""
        session = self._sessions.get(session_id)
        if session is not None and not self._log.holds(session_id):
            for record in records:
                if record.seq == session.view.head + 1:
                    m.apply(session.view, record)
            session.stored_seq = session.changed_seq = session.view.head
        self._relay(session_id, records)

    def _relay(self, session_id: str, records: Sequence[m.Record]) -> None:
        """To those who watch, in order and once; where something is missing, all of it is read from the log."""
        shown = self._hub.head_of(session_id)
        if shown is None:
            return
        news = [record for record in records if record.seq > shown]
        if news and news[0].seq == shown + 1:
            self._hub.publish(news)
        elif news:
            self._attend_soon(session_id)

    async def _attend(self, session_id: str) -> None:
        """Hear what is said in the session from now on, and read what was said up to now."""
        await self._listener.listen(self._news(session_id))
        await self._loaded(session_id)

    def _attend_soon(self, session_id: str) -> None:
        if not self._hub.is_watched(session_id):
            return
        if session_id in self._attending:
            self._behind.add(session_id)
            return
        task = self._attending[session_id] = asyncio.create_task(self._attended(session_id))
        task.add_done_callback(lambda done: self._attending.pop(session_id, None))

    async def _attended(self, session_id: str) -> None:
        try:
            await self._attend(session_id)
            while session_id in self._behind:
                self._behind.discard(session_id)
                await self._attend(session_id)
        except GatewayError as error:
            self._behind.discard(session_id)
            self._listener.ignore(self._news(session_id))  # so that the next beat tries again
            log.warning("a session cannot be followed just now", session=session_id, error=error.message)

    # -- what is heard --------------------------------------------------------------------------------------------

    def _news(self, session_id: str) -> str:
        return self._redis.key("news", session_id)

    def _hear(self, channel: str, message: bytes) -> None:
        if channel == self._mail:
            self._read_letter(message)
            return
        session_id = channel.removeprefix(self._news(""))
        if self._log.holds(session_id) or not self._hub.is_watched(session_id):
            self._listener.ignore(channel)
        else:
            self._take_in(session_id, decode_entry(message, self._log.seal))

    def _read_letter(self, message: bytes) -> None:
        match unseal_message(messages.decode_message(message), self._log.seal):
            case RpcRequest() as asked:
                if not self._membership.has_slept:  # it may be old, and whoever sent it has turned to another
                    self._post.asked(asked)
            case RpcReply() as replied:
                self._post.replied(replied)
            case OwnerChanged(session_id=session_id, token=token):
                if self._log.is_overtaken(session_id, token):
                    self._lose(session_id)

    def _missed(self) -> None:
        """The connection was broken: letters and news may have been lost."""
        self._membership.doubt()
        for session_id in self._hub.watched:
            if not self._log.holds(session_id):
                self._attend_soon(session_id)

    async def _after_beat(self) -> None:
        self._cut_off = False
        self._listener.poke()
        await super()._after_beat()
        for channel in self._listener.channels:
            if channel != self._mail and not self._hub.is_watched(channel.removeprefix(self._news(""))):
                self._listener.ignore(channel)
        for session_id in self._hub.watched:
            if not self._log.holds(session_id) and not self._listener.hears(self._news(session_id)):
                self._attend_soon(session_id)

    def _no_beat(self) -> None:
        """Redis has not answered for as long as a lease lasts: who watches may find a better server."""
        self._listener.poke()
        if not self._cut_off and self._membership.silence > self._redis.lease:
            self._cut_off = True
            self._hub.cut_all()
