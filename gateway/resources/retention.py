"""Retention: deletes sessions and files that are older, or more, than the rules of the settings keep."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import structlog

import gateway.model as m
from gateway.errors import GatewayError, NotFound
from gateway.ports import Audit, Clock, EventLog, Files, Resources, SessionService
from gateway.supervision import exception_of
from gateway.time_slices import next_slice

log = structlog.get_logger("dragoman.retention")

HOUR, DAY = 3600.0, 86_400.0
POLL_SECONDS = 1.0
"""How often a server looks whether it leads now."""
PAGE = 200
"""How many rows of a list are read at a time."""
FILE = "file"


async def run_hourly(
    round_of_work: Callable[[], Coroutine[object, None, None]], is_open: Callable[[], bool],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Work once an hour until cancelled, while this server may; an error of one round is logged."""
    while True:
        if not is_open():
            await sleep(POLL_SECONDS)
            continue
        error = await exception_of(round_of_work())
        if isinstance(error, GatewayError | OSError):
            log.warning("retention_interrupted", error=str(error))
        elif error is not None:
            log.error("retention_failed", exc_info=error)
        await sleep(HOUR)


class KeepRule(Protocol):
    """What is kept: what has changed within so many days, and so many of the newest; None is no bound."""

    @property
    def days(self) -> float | None: ...
    @property
    def newest(self) -> int | None: ...


class RetentionRules(Protocol):
    """The rules of all users; read at each round, because settings may change."""

    def rule_of(self, user: str, kind: str) -> KeepRule: ...


@dataclass(frozen=True, slots=True)
class Expired:
    """A session or a file that no rule keeps."""

    kind: Literal["session", "file"]
    owner: str
    id: str
    changed_at: float


def is_expired(rule: KeepRule, place: int, changed_at: float, now: float) -> bool:
    """Whether the rule does not keep what changed then, and has so many newer ones before it."""
    too_old = rule.days is not None and changed_at < now - rule.days * DAY
    return too_old or (rule.newest is not None and place >= rule.newest)


def has_bound(rule: KeepRule) -> bool:
    return rule.days is not None or rule.newest is not None


class ExpiredThings:
    """Finds what the rules do not keep, owner by owner, and reads lists only as far as something goes."""

    def __init__(self, events: EventLog, resources: Resources, clock: Clock) -> None:
        self._events = events
        self._resources = resources
        self._clock = clock

    async def sessions(self, rules: RetentionRules) -> AsyncIterator[Expired]:
        """The sessions that go, those that have not changed for longest first."""
        for owner in await self._session_owners():
            rule = rules.rule_of(owner, "sessions")
            if has_bound(rule):
                async for one in self._sessions_of(owner, rule):
                    yield one

    async def _session_owners(self) -> list[str]:
        """Everybody who has sessions; the rows of the list are read, not the sessions."""
        owners, after = dict[str, None](), 0
        while heads := await self._events.sessions(None, after=after, limit=PAGE, oldest_first=True):
            owners |= dict.fromkeys(head.owner for head in heads)
            after = heads[-1].ordinal
            await next_slice()
        return list(owners)

    async def _sessions_of(self, owner: str, rule: KeepRule) -> AsyncIterator[Expired]:
        """Read the list from its end: what is deleted meanwhile moves nothing that is still to be read."""
        end, now = await self._events.count_listed(owner, m.EVERY_SESSION), self._clock()
        while end > 0:
            start = max(0, end - PAGE)
            rows = await self._events.listed(owner, m.EVERY_SESSION, "updated", offset=start, limit=end - start)
            for place, row in reversed([*enumerate(rows, start)]):
                if not is_expired(rule, place, row.summary.updated_at, now):
                    return
                yield Expired("session", owner, row.session_id, row.summary.updated_at)
            end = start

    async def files(self, rules: RetentionRules) -> AsyncIterator[Expired]:
        """The files that go, of each owner the newest first."""
        for owner, kinds in (await self._resources.owners()).items():
            rule = rules.rule_of(owner, "files")
            if FILE in kinds and has_bound(rule):
                async for one in self._files_of(owner, rule):
                    yield one

    async def _files_of(self, owner: str, rule: KeepRule) -> AsyncIterator[Expired]:
        place, before, now = 0, None, self._clock()
        while page := await self._resources.list(FILE, owner, before=before, limit=PAGE, archived=True):
            for one in page:
                if is_expired(rule, place, one.updated_at, now):
                    yield Expired("file", owner, one.resource_id, one.updated_at)
                place += 1
            before = page[-1].ordinal


class Retention:
    """Deletes what the rules do not keep; a round ends early if this server does not lead any more."""

    def __init__(
        self,
        found: ExpiredThings,
        sessions: SessionService,
        resources: Resources,
        files: Files,
        rules: Callable[[], RetentionRules],
        audit: Audit,
        *,
        is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self._found = found
        self._sessions = sessions
        self._resources = resources
        self._files = files
        self._rules = rules
        self._audit = audit
        self._is_open = is_open

    async def delete_expired(self) -> None:
        """Delete everything that goes now, one thing at a time."""
        deleted = 0
        for found in (self._found.sessions, self._found.files):
            async for one in found(self._rules()):
                if not self._is_open():
                    return
                deleted += await self.delete(one)
        if deleted:
            log.info("retention_deleted", count=deleted)

    async def delete(self, one: Expired) -> bool:
        """Delete it, unless it is gone or was used meanwhile; whether it was deleted."""
        await next_slice()
        with suppress(NotFound):
            if one.kind == "file":
                await self._resources.delete(FILE, one.owner, one.id)
                await self._files.remove(one.id)
            elif await self._is_idle(one):
                await self._sessions.delete(one.owner, one.id)
            else:
                return False
            self._audit(f"{one.kind}.deleted", None, one.id)
            return True
        return False

    async def _is_idle(self, one: Expired) -> bool:
        """Whether no turn runs or waits in the session, and nothing has changed in it since it was found."""
        view = await self._sessions.get(one.owner, one.id)
        is_in_turn = view.status in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED)
        return not is_in_turn and view.updated_at <= one.changed_at
