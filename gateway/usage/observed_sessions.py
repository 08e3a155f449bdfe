"""The session service of one dialect, which counts the documented features that its clients send and receive."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import (
    NO_OPTIONS,
    Caller,
    Receipt,
    SessionService,
    StreamKey,
    StreamOptions,
    StreamSlot,
    Subscription,
)
from mappings.language import feature_of

from .request_counter import key_of
from .usage_counts import FEATURE, UsageCounts

Watched = tuple[str, StreamKey]
Who = Callable[[], Caller | None]
Mark = Callable[[Caller, Sequence[m.AnyCommand]], Sequence[m.AnyCommand]]
"""(who sends commands, the commands) → the commands, with what decides on the way that they take."""


class StreamWatchers:
    """The clients that watch sessions on this server; what is sent to them is counted for each."""

    def __init__(self, counts: UsageCounts) -> None:
        self._counts = counts
        self._open: dict[Watched, Counter[tuple[str, str]]] = {}

    def add(self, session_id: str, key: StreamKey, caller: Caller) -> Callable[[], None]:
        """Count for this client what is sent under this key, until the returned function is called."""
        place, client = (session_id, key), (key_of(caller), caller.client)
        self._open.setdefault(place, Counter())[client] += 1

        def leave() -> None:
            left = self._open[place]
            left[client] -= 1
            if not left[client]:
                del left[client]
            if not left:
                del self._open[place]

        return leave

    def count_sent(self, session_id: str, key: StreamKey, feature: str) -> None:
        """Count a feature that went to all who watch the session under this key."""
        for name, client in self._open.get((session_id, key), ()):
            self._counts.count(key.dialect, name, client, FEATURE, feature)


class ObservedSessions:
    """The session service, as the handlers of one dialect use it."""

    def __init__(
        self, sessions: SessionService, dialect: str, counts: UsageCounts, watchers: StreamWatchers, who: Who,
        mark: Mark,
    ) -> None:
        self._mark = mark
        self._sessions, self._dialect, self._counts, self._watchers = sessions, dialect, counts, watchers
        self._who = who
        self.get, self.find_by_id, self.active, self.list = (
            sessions.get, sessions.find_by_id, sessions.active, sessions.list)
        self.find, self.heads, self.head, self.records = (
            sessions.find, sessions.heads, sessions.head, sessions.records)
        self.created_between, self.read, self.resume_place = (
            sessions.created_between, sessions.read, sessions.resume_place)
        self.import_session, self.update, self.close, self.rewind = (
            sessions.import_session, sessions.update, sessions.close, sessions.rewind)
        self.archive_scope, self.post_event, self.delete = (
            sessions.archive_scope, sessions.post_event, sessions.delete)
        self.check_turn, self.client_left, self.replace_backend = (
            sessions.check_turn, sessions.client_left, sessions.replace_backend)
        self.reserve_stream = sessions.reserve_stream

    async def create(
        self, owner: str, agent: str, *, settings: m.Settings = m.Settings(), history: Sequence[m.SeedMessage] = (),  # noqa: B008
        title: str | None = None, metadata: JsonObject | None = None,
    ) -> m.SessionView:
        view = await self._sessions.create(
            owner, agent, settings=settings, history=history, title=title, metadata=metadata)
        self._count(_features_of_settings(settings))
        self._count(["history_seed"] if history else [])
        return view

    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        caller = self._who()
        if caller is not None:
            commands = self._mark(caller, commands)
        receipt = await self._sessions.submit(owner, session_id, commands)
        self._count(_features_of_commands(commands))
        return receipt

    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        place: StreamSlot | None = None,
    ) -> Subscription:
        caller = self._who()
        if caller is None:
            return await self._sessions.subscribe(owner, session_id, dialect, options, after=after, place=place)
        reserved = self._sessions.reserve_stream(owner) if place is None else place
        reserved.on_close(self._watchers.add(session_id, StreamKey(dialect, options), caller))
        try:
            return await self._sessions.subscribe(
                owner, session_id, dialect, options, after=after, place=reserved)
        except BaseException:
            reserved.close()
            raise

    def _count(self, features: Iterable[str]) -> None:
        caller = self._who()
        if caller is not None:
            for feature in features:
                self._counts.count(self._dialect, key_of(caller), caller.client, FEATURE, feature)


def _features_of_commands(commands: Sequence[m.AnyCommand]) -> Iterator[str]:
    for command in commands:
        if isinstance(command, m.Configure):
            yield from _features_of_settings(command.settings)
        elif (feature := feature_of(m.InputAccepted(command_id="", command=command))) is not None:
            yield feature


def _features_of_settings(settings: m.Settings) -> Iterator[str]:
    """What a session has beside its conversation."""
    yield from (name for name in ("skills", "mcp_servers") if getattr(settings, name, None))
    if settings.memory:
        yield "memories"
