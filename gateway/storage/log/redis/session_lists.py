"""The lists of sessions in Redis: two sorted sets for each owner and label; the hash of a session has its summary."""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

import gateway.model as m
from gateway.ports import ListedSession, ListOrder, SessionHead
from gateway.storage.redis import RedisClient

from .reader import Argument, RedisLogReader

log = structlog.get_logger("dragoman.log")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(m.SessionSummary).decode
SESSIONS_PER_PAGE = 64
"""How many sessions of an older Dragoman are put into the lists in one request."""
COMPLETE = "lists"
"""The key that says that all sessions are in the lists."""


class RedisSessionLists:
    """Knows the summaries of the sessions that this server writes, and reads the lists of all sessions."""

    def __init__(self, redis: RedisClient, reader: RedisLogReader) -> None:
        self._redis = redis
        self._reader = reader
        self._summaries: dict[str, m.SessionSummary] = {}
        """By session, as Redis has them; of sessions that this server has written."""

    # -- writing --------------------------------------------------------------------------------------------------

    async def changed(self, batch: Mapping[str, Sequence[m.Record]]) -> dict[str, m.SessionSummary]:
        """The new summaries of those sessions whose summaries these records change."""
        found: dict[str, m.SessionSummary] = {}
        for session_id, records in batch.items():
            events = [record for record in records if type(record.event) in m.SUMMARY_EVENTS]
            if not events:
                continue
            old = self._summaries.get(session_id)
            if old is None and records[0].seq > 1:
                old = await self._stored(session_id, records[0].seq)
            new = m.summarize(old, events)
            if new is not None and new != old:
                found[session_id] = new
        return found

    async def _stored(self, session_id: str, before: int) -> m.SessionSummary | None:
        """The summary before that record; of a session of an older Dragoman it is computed from the records."""
        [stored] = await self._redis.read_all([("HGET", self._redis.key("s", session_id), "summary")])
        if stored is not None:
            return _decode(stored)
        records = await self._reader.read_without_deltas(session_id)
        return m.summarize(None, [record for record in records if record.seq < before])

    def stored(self, session_id: str, summary: m.SessionSummary | None) -> None:
        """Redis has this summary now."""
        if summary is not None:
            self._summaries[session_id] = summary

    def let_go(self, session_id: str) -> None:
        """Another server may write the session, or this server cannot know what Redis has."""
        self._summaries.pop(session_id, None)

    def clear(self) -> None:
        self._summaries.clear()

    # -- reading --------------------------------------------------------------------------------------------------

    async def page(self, owner: str, label: str, order: ListOrder, offset: int, limit: int) -> list[ListedSession]:
        if limit <= 0:
            return []
        rows = await self._redis.run_read_script("listed", order, owner, label, offset, offset + limit - 1)
        return [
            ListedSession(session_id=session_id.decode(), ordinal=int(ordinal), summary=_decode(summary))
            for session_id, ordinal, summary in rows
            if summary is not None
        ]

    async def mentioning(self, owner: str, text: str) -> None:
        """There is no index of texts: it would take more memory than the texts."""

    async def count(self, owner: str, label: str) -> int:
        size = len(owner.encode(errors="surrogatepass"))
        [count] = await self._redis.read_all([("ZCARD", self._redis.key("createdlist", str(size), owner, label))])
        return int(count)

    # -- the sessions of an older Dragoman ------------------------------------------------------------------------

    async def complete(self) -> None:
        """Put the sessions into the lists that were written before there were lists; once for all servers."""
        [is_complete] = await self._redis.read_all([("GET", self._redis.key(COMPLETE))])
        if is_complete is not None:
            return
        after, count = 0, 0
        while heads := await self._reader.sessions(None, after=after, limit=SESSIONS_PER_PAGE, oldest_first=True):
            given: list[Argument] = []
            for head in heads:
                given += await self._entry(head)
            if given:
                count += await self._redis.run_script("enlist", *given)
            after = heads[-1].ordinal
        await self._redis.run_script("listed_all")
        if count:
            log.info("session_lists_built", sessions=count)

    async def _entry(self, head: SessionHead) -> list[Argument]:
        summary = m.summarize(None, await self._reader.read_without_deltas(head.session_id))
        return [] if summary is None else [head.session_id, head.head, *summary_arguments(summary)]


def summary_arguments(summary: m.SessionSummary | None) -> list[Argument]:
    """The arguments of scripts for a summary; for None, that nothing changes."""
    if summary is None:
        return ["", 0, 0]
    return [_encode(summary), repr(summary.updated_at), len(summary.labels), *summary.labels]
