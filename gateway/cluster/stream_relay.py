"""Sessions that are watched here and written elsewhere: their channels, and the relay to their subscribers."""

import asyncio
from collections.abc import Sequence

import gateway.model as m
from gateway.engine import Hub
from gateway.storage.redis import PubSub, SharedRedis


class SessionChannels:
    """One channel per session, over which the writer of the session publishes each entry that it stores.

    One channel for all sessions would send every entry of every server to every other server.
    """

    def __init__(self, pubsub: PubSub, redis: SharedRedis) -> None:
        self._pubsub = pubsub
        self._redis = redis
        self._sessions: dict[str, str] = {}
        """By their channels, the sessions that are listened to."""

    def _channel(self, session_id: str) -> str:
        return self._redis.part_of(session_id).key("news", session_id)

    async def listen(self, session_id: str) -> None:
        """Return when all that is published from now on will be received; raises `RedisUnreachable`."""
        channel = self._channel(session_id)
        self._sessions[channel] = session_id
        await self._pubsub.listen(channel)

    def ignore(self, session_id: str) -> None:
        channel = self._channel(session_id)
        self._sessions.pop(channel, None)
        self._pubsub.ignore(channel)

    def listens_to(self, session_id: str) -> bool:
        return self._pubsub.is_subscribed(self._channel(session_id))

    @property
    def sessions(self) -> Sequence[str]:
        """The sessions whose channels are listened to."""
        return tuple(self._sessions.values())

    def session_of(self, channel: str) -> str | None:
        """The session whose channel this is; None if it is not listened to any more."""
        return self._sessions.get(channel)


class StreamRelay:
    """Passes records that other servers have stored on to the subscribers here, in order and once.

    If records are missing, the session has to be read from the log: its id waits here until `next_gap` takes it.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._gaps: dict[str, None] = {}
        self._has_gaps = asyncio.Event()

    def relay(self, session_id: str, records: Sequence[m.Record]) -> None:
        shown = self._hub.head_of(session_id)
        if shown is None:
            return
        unseen = [record for record in records if record.seq > shown]
        if unseen and unseen[0].seq == shown + 1:
            self._hub.publish(unseen)
        elif unseen:
            self.read_again(session_id)

    def read_again(self, session_id: str) -> None:
        """Records of this session may be missing here; that matters only if somebody watches it."""
        if self._hub.is_watched(session_id):
            self._gaps[session_id] = None
            self._has_gaps.set()

    async def next_gap(self) -> str:
        """Wait for a session that has to be read again."""
        while not self._gaps:
            self._has_gaps.clear()
            await self._has_gaps.wait()
        session_id = next(iter(self._gaps))
        del self._gaps[session_id]
        return session_id
