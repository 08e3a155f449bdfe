"""Bugs that are planted on purpose, one for each kind of promise: a judge that does not find them is blind there."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from hashlib import sha1
from typing import Any, NamedTuple
from unittest.mock import patch

import gateway.model as m
from gateway.cluster import session_service
from gateway.cluster.leases import Claims, HeldSessions
from gateway.cluster.rpc import Inbox, RpcChannel
from gateway.cluster.session_service import ClusterSessionService
from gateway.cluster.stream_relay import StreamRelay
from gateway.engine import recovery, session_cache, session_queries
from gateway.engine.session import Session
from gateway.engine.streams import Hub
from gateway.engine.turn import TurnRun
from gateway.errors import NotFound, OutcomeUnknown
from gateway.storage.log import SqliteLog
from gateway.storage.log.redis import RedisLog
from gateway.storage.redis import RedisClient, RedisFull, RedisUnreachable, SharedRedis, client
from gateway.storage.redis.scripts import scripts
from gateway.storage.resources.redis_responses import RedisResponses
from gateway.storage.resources.responses import SqliteResponses

Plant = AbstractContextManager[Any]


class PlantedBug(NamedTuple):
    """A bug, and the promise that it breaks; worlds that cannot show it are left out."""

    promise: str
    plant: Callable[[], Plant]
    log: str | None = "redis"
    """The kind of log that a world must have to show it; None if any world may."""
    scenario: str | None = None
    """The worlds in which it is looked for, where it would take too many of any kind."""


def replaced(owner: Any, name: str, new: Callable[..., Any]) -> Plant:
    """A function in place of which another one is called, with whatever the first is called with."""
    parameters = inspect.signature(getattr(owner, name)).parameters.values()
    given = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY}
    try:
        inspect.signature(new).bind(*given, **named)
    except TypeError as error:
        raise AssertionError(f"{name} has changed, and the bug does not fit it any more: {error}") from None
    return patch.object(owner, name, new)


# -- scripts ----------------------------------------------------------------------------------------------------------

def changed_script(name: str, old: str, new: str) -> Plant:
    """A script of Redis in which these words are others."""
    found = dict(scripts())
    text = found[name][1]
    assert text.count(old) == 1, f"{name}.lua has changed: {old!r} is there {text.count(old)} times"
    found[name] = sha1(text.replace(old, new).encode()).hexdigest(), text.replace(old, new)
    return patch.object(client, "scripts", lambda: found)


# -- the log ----------------------------------------------------------------------------------------------------------

@contextmanager
def announced_before_stored() -> Iterator[None]:
    """Subscribers are told of records when they leave for Redis."""
    write, attach = RedisLog._write, RedisLog.attach

    def attach_early(log: RedisLog, listener: Any, leases: Any = None) -> None:
        early = EarlyListener(listener)
        log.early = early  # type: ignore[attr-defined]
        attach(log, early, leases)

    async def write_late(log: RedisLog) -> None:
        for records in log._leaving.values():
            log.early.announce(records)  # type: ignore[attr-defined]
        await write(log)

    with replaced(RedisLog, "attach", attach_early), replaced(RedisLog, "_write", write_late):
        yield


@contextmanager
def announced_before_committed() -> Iterator[None]:
    """Subscribers are told of records when they leave for the file."""
    gather, attach = SqliteLog.gather, SqliteLog.attach

    def attach_early(log: SqliteLog, listener: Any) -> None:
        early = EarlyListener(listener)
        log.early = early  # type: ignore[attr-defined]
        attach(log, early)

    def gather_late(log: SqliteLog) -> Any:
        gathered = gather(log)
        for records in log._leaving.values():
            log.early.announce(records)  # type: ignore[attr-defined]
        return gathered

    with replaced(SqliteLog, "attach", attach_early), replaced(SqliteLog, "gather", gather_late):
        yield


class EarlyListener:
    """Passes records on once, when they are announced; what is committed later was passed on before."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self._told: dict[str, int] = {}
        self.failed = listener.failed

    def announce(self, records: Sequence[m.Record]) -> None:
        session_id = records[0].session_id
        news = [record for record in records if record.seq > self._told.get(session_id, 0)]
        if news:
            self._told[session_id] = news[-1].seq
            self._listener.committed(news)

    committed = announce


async def not_waited_for(*given: Any, **named: Any) -> None:
    """In place of a wait."""


@contextmanager
def accepted_before_stored() -> Iterator[None]:
    with replaced(RedisLog, "wait_stored", not_waited_for), replaced(SqliteLog, "wait_stored", not_waited_for):
        yield


# -- leases -----------------------------------------------------------------------------------------------------------

@contextmanager
def lease_trusted_after_expiry() -> Iterator[None]:
    with (
        replaced(HeldSessions, "verify", not_waited_for),
        replaced(HeldSessions, "lose_if_overtaken", lambda held, session_id, token: None),
    ):
        yield


async def hand_over_or_fail(held: HeldSessions) -> None:
    """As `HeldSessions.hand_over_all`, which once gave up if Redis refused."""
    for session_id in held._log.held:
        await held.hand_over(session_id)


async def verify_what_is_there(held: HeldSessions, part: RedisClient) -> None:
    """As `HeldSessions.verify`, which once passed over sessions that had been deleted."""
    sessions = held._log.held
    tokens = await part.read_all([("HGET", part.key("s", one), "token") for one in sessions])
    for session_id, token in zip(sessions, tokens, strict=True):
        if token is not None:
            held.lose_if_overtaken(session_id, int(token))


async def verify_tokens(held: HeldSessions, part: RedisClient) -> None:
    """As `HeldSessions.verify`, which once did not look whether Redis had lost the end of a log."""
    sessions = held._log.held
    tokens = await part.read_all([("HGET", part.key("s", one), "token") for one in sessions])
    for session_id, token in zip(sessions, tokens, strict=True):
        if token is None:
            held.lose(session_id)
        else:
            held.lose_if_overtaken(session_id, int(token))


async def take_nothing_over(claims: Claims, parts: Sequence[RedisClient]) -> int:
    return 0


@contextmanager
def turn_never_ended_after_takeover() -> Iterator[None]:
    with replaced(Claims, "take_over", take_nothing_over), replaced(
        session_cache.Session, "revive", lambda session, records: None,
    ):
        yield


# -- streams ----------------------------------------------------------------------------------------------------------

def shifted_cursor(by: int) -> Plant:
    """Streams that are resumed begin so many records late."""
    subscribe = Hub.subscribe

    def shifted(hub: Hub, session_id: str, head: int, dialect: str, options: Any, after: int, place: Any) -> Any:
        moved = max(0, min(head, after + by)) if after else after
        return subscribe(hub, session_id, head, dialect, options, moved, place)

    return replaced(Hub, "subscribe", shifted)


def leaking_subscription() -> Plant:
    """Every stream leaves a task behind."""
    subscribe = Hub.subscribe

    def leaking(hub: Hub, *given: Any) -> Any:
        asyncio.get_running_loop().create_task(asyncio.sleep(1e9))
        return subscribe(hub, *given)

    return replaced(Hub, "subscribe", leaking)


def remembered_subscriptions() -> Plant:
    """A server keeps every stream that it has ever served."""
    subscribe, kept = Hub.subscribe, list[Any]()

    def remembering(hub: Hub, *given: Any) -> Any:
        kept.append(subscribe(hub, *given))
        return kept[-1]

    return replaced(Hub, "subscribe", remembering)


def relay_with_gaps(relay: StreamRelay, session_id: str, records: Sequence[m.Record]) -> None:
    """As `StreamRelay.relay`, whether or not records are missing before these.

    Streams would notice that their window lacks records, and read the log: they are told that they have had them.
    """
    feed = relay._hub.feeds.get(session_id)
    news = [record for record in records if feed is not None and record.seq > feed.head]
    if feed is not None and news:
        if news[0].seq > feed.head + 1:
            feed.records.clear()
            for channel in feed.channels.values():
                channel.seq = news[0].seq - 1
        relay._hub.publish(news)


# -- turns and asks ---------------------------------------------------------------------------------------------------

class NoGrammar:
    """Lets everything pass."""

    def check(self, *given: Any) -> None:
        pass


def torn_turn_end(session: Any, turn_id: str, ended: m.TurnEnded) -> None:
    """End a turn without closing what is open in it."""
    session.grammar = NoGrammar()
    session.append(ended, turn_id=turn_id)
    session.grammar = m.Grammar()


def repeated_turn_end(session: Any, turn_id: str, ended: m.TurnEnded) -> None:
    """End a turn twice."""
    END(session, turn_id, ended)
    session.grammar = NoGrammar()
    session.append(ended, turn_id=turn_id)
    session.grammar = m.Grammar()


END = recovery.append_turn_end


@contextmanager
def ask_settled_twice() -> Iterator[None]:
    """Every answer settles its ask, and settles it again."""
    append = Session.append

    def append_twice(session: Session, event: m.AnyEvent, scope_id: str = m.ROOT, turn_id: str | None = None) -> Any:
        record = append(session, event, scope_id, turn_id)
        if isinstance(event, m.InputResolved):
            grammar, session.grammar = session.grammar, NoGrammar()  # type: ignore[assignment]
            append(session, event, scope_id, turn_id)
            session.grammar = grammar
        return record

    with replaced(Session, "append", append_twice):
        yield


@contextmanager
def number_skipped_after_restart() -> Iterator[None]:
    """The first record after a restart has the number after the next."""
    restore = session_cache.restore_running

    async def skip(session: Any, records: Sequence[m.Record], head: int) -> None:
        await restore(session, records, head)
        session.view.head += 1

    with replaced(session_cache, "restore_running", skip):
        yield


@contextmanager
def call_carried_out_twice() -> Iterator[None]:
    """A server that is asked again does not look whether the call was carried out, and remembers no call."""
    here = ClusterSessionService._here

    async def again(service: ClusterSessionService, call: Any, request: str) -> Any:
        return await here(service, call, request)

    with (
        replaced(ClusterSessionService, "_once", again),
        replaced(RpcChannel, "_keep", lambda channel, request, answer: None),
    ):
        yield


# -- what is whose ----------------------------------------------------------------------------------------------------

async def find_nothing(answers: Any, place: Any) -> None:
    """No response is stored."""


@contextmanager
def answers_forgotten() -> Iterator[None]:
    with replaced(RedisResponses, "find", find_nothing), replaced(SqliteResponses, "find", find_nothing):
        yield


class FirstTryClient:
    """A client of Redis that gives up with the connection."""

    def __init__(self, redis: SharedRedis) -> None:
        self._redis = redis.parts[0]
        self.lease, self.parts = redis.lease, redis.parts

    def part_of(self, word: str) -> "FirstTryClient":
        return self

    async def run_script(self, script: str, *given: Any) -> Any:
        try:
            return await self._redis.run_script(script, *given)
        except RedisUnreachable as error:
            raise RedisFull(error.message) from None


STORE = RedisResponses.store


async def store_or_give_up(responses: RedisResponses, place: Any, answer: Any) -> None:
    """As `RedisResponses.store`, which once gave up with the connection."""
    own = copy(responses)
    own._redis = FirstTryClient(responses._redis)  # type: ignore[assignment]
    await STORE(own, place, answer)


@contextmanager
def tenants_mixed() -> Iterator[None]:
    """Sessions are found whoever asks for them."""
    async def find_any(source: Any, owner: str, session_id: str) -> Session:
        session = await source.load(session_id)
        if session is None:
            raise NotFound(f"there is no session '{session_id}'")
        return session  # type: ignore[no-any-return]

    with replaced(session_queries, "find_session", find_any):
        yield


NEW_TOKEN = "redis.call('HINCRBY', key, 'token', ARGV[5] or 1)"
SAME_TOKEN = "tonumber(redis.call('HGET', key, 'token'))"
PLANTED: dict[str, PlantedBug] = {
    "token_taken_over": PlantedBug(
        "one writer per session: whoever takes it over has a token of its own",
        lambda: changed_script("claim", NEW_TOKEN, SAME_TOKEN)),
    "lease_trusted_after_expiry": PlantedBug(
        "a server whose lease ran out looks which sessions it has lost", lease_trusted_after_expiry, scenario="pause"),
    "stop_given_up": PlantedBug(
        "a server that is told to stop ends in order, whatever Redis says",
        lambda: replaced(HeldSessions, "hand_over_all", hand_over_or_fail)),
    "deleted_sessions_shown": PlantedBug(
        "what was deleted while a server was away is not shown by it",
        lambda: replaced(HeldSessions, "verify", verify_what_is_there), scenario="cut"),
    "lost_end_unnoticed": PlantedBug(
        "a session whose last records Redis has lost does not stay busy",
        lambda: replaced(HeldSessions, "verify", verify_tokens), scenario="second"),
    "announced_before_stored": PlantedBug(
        "an event is in the log before any client sees it (Redis)", announced_before_stored),
    "announced_before_committed": PlantedBug(
        "an event is in the log before any client sees it (SQLite)", announced_before_committed, "sqlite", "disk"),
    "accepted_before_stored": PlantedBug(
        "a message that a client was told is accepted is in the log", accepted_before_stored, None),
    "published_not_stored": PlantedBug(
        "what is published to other servers is what is stored",
        lambda: changed_script("append", "'w', deltas)", "'w', tonumber(after) % 5 == 0 and '' or deltas)")),
    "cursor_late": PlantedBug(
        "a stream that is resumed misses nothing", lambda: shifted_cursor(1), None),
    "cursor_early": PlantedBug(
        "a stream that is resumed repeats nothing", lambda: shifted_cursor(-1), None),
    "gap_passed_on": PlantedBug(
        "a server that has missed records reads them before it passes later ones on",
        lambda: replaced(StreamRelay, "relay", relay_with_gaps), scenario="others"),
    "missed_messages_ignored": PlantedBug(
        "a server that was cut off from Redis reads what it has missed",
        lambda: replaced(Inbox, "missed", lambda inbox: None), scenario="others"),
    "streams_remembered": PlantedBug(
        "a server has nothing in memory of streams that are over", remembered_subscriptions, None, scenario="others"),
    "task_left_behind": PlantedBug("a server has no more tasks in the end than at first", leaking_subscription, None),
    "ask_settled_twice": PlantedBug("an ask is settled once", ask_settled_twice, None),
    "number_skipped_after_restart": PlantedBug(
        "the numbers of records are dense, also after a restart", number_skipped_after_restart, None),
    "hung_turn_kept": PlantedBug(
        "a turn whose agent hangs ends when its time is over",
        lambda: replaced(TurnRun, "_start_timer", lambda turn, seconds: None), None),
    "torn_after_death": PlantedBug(
        "whatever was open when a server died is closed",
        lambda: replaced(recovery, "append_turn_end", torn_turn_end), None),
    "turn_ended_twice": PlantedBug(
        "every turn ends once", lambda: replaced(recovery, "append_turn_end", repeated_turn_end), None),
    "turn_never_ended_after_takeover": PlantedBug(
        "a turn whose server died is ended by another one", turn_never_ended_after_takeover),
    "call_carried_out_twice": PlantedBug(
        "a call whose reply was lost is carried out once", call_carried_out_twice),
    "answers_forgotten": PlantedBug(
        "a request that is repeated under its key gets the first response", answers_forgotten, None),
    "response_given_up": PlantedBug(
        "whoever was given a response gets it again, though Redis was away when it was to be stored",
        lambda: replaced(RedisResponses, "store", store_or_give_up), scenario="keyed"),
    "key_not_claimed": PlantedBug(
        "of requests with one key that are sent to several servers at once one is carried out",
        lambda: replaced(RedisResponses, "claim", not_waited_for)),
    "key_unknown_to_writer": PlantedBug(
        "a message that is repeated under its key at another server is accepted once",
        lambda: replaced(session_service, "keyed_request", lambda call: None), scenario="away"),
    "tenants_mixed": PlantedBug("nobody sees the sessions of others", tenants_mixed, None),
    "refused_though_done": PlantedBug(
        "a refusal with 503 means that nothing happened",
        lambda: patch.object(OutcomeUnknown, "code", m.FaultCode.OVERLOADED), scenario="silence"),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """While this holds, the gateways of worlds have this bug."""
    with PLANTED[name].plant():
        yield
