"""The only place where everything meets: settings → agents, log, engine and dialects → one aiohttp application."""

import asyncio
import time
from collections.abc import AsyncIterator, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from gateway.backends import Replays
from gateway.config import Config
from gateway.engine import House, Hub
from gateway.errors import GatewayError
from gateway.ids import minting
from gateway.journal import get, masked
from gateway.marks import Problems
from gateway.model import Record, encode
from gateway.ports import Clock, Forgetting, Outbound, Sessions
from gateway.quotas import Tally
from gateway.resources import (
    AuditedResources,
    AuditedSessions,
    FileStore,
    LiveKeys,
    Scheduler,
    Schedules,
    Sharing,
    Workspaces,
)
from gateway.time_slices import one_at_a_time, turn
from gateway.upstream import AddressPolicy
from gateway.web import (
    LIMITS,
    OWNER,
    WRONG_KEYS,
    Admissions,
    AllowList,
    Context,
    Guard,
    Metrics,
    OriginPolicy,
    Rates,
    Readiness,
    Refusals,
    Refused,
    Runner,
    TrustedProxies,
    WrongKeys,
    answer,
    current_caller,
    deferred,
    health_routes,
    keep_sockets,
    mark,
    metrics_routes,
    name_request,
    public,
)
from mappings.language import FEATURES, Level, Table, feature_of

from .audit import AuditLog
from .parts import Parts, load_parts
from .retiring import Retiring
from .stores import session_service, stores

if TYPE_CHECKING:
    from .oidc import OidcTokens

log = get("dragoman.app")

REPLAYED_AT_ONCE, REPLAYED_BYTES = 512, 128 * 1024
"""How many records of a session are read at a time, and how many bytes are written in one slice."""
LOST = frozenset((Level.DROPPED, Level.REJECTED))
DEGRADED = "~"
MARKS = {Level.FULL: "✓", Level.PARTIAL: DEGRADED, Level.FALLBACK: DEGRADED, Level.DROPPED: "✗", Level.REJECTED: "✗"}
MEANINGS = {Level.PARTIAL: "some of it arrives", Level.FALLBACK: "it arrives as something else"}
"""What is said of a degraded feature of which the table says no more."""


class Gateway:
    """A server's inside: made from parts, served by `web`, and able to take new parts while it runs."""

    def __init__(self, parts: Parts, clock: Clock = time.time) -> None:
        config = parts.config
        self._clock = clock
        self.parts = parts
        self.metrics = Metrics()
        self.readiness = Readiness()
        self.quota = config.quota
        self.tally = Tally(lambda: self.quota)
        kept = stores(config, clock, lambda: self.parts.config.limits, self.tally)
        self._recount = kept.recount
        self.house = House(
            log=kept.log, clock=clock, mint=minting(), limits=config.limits, agents=parts.cards,
            backends=parts.backends, observer=self.metrics, tally=self.tally,
            cancel_on_leave=config.on_disconnect == "cancel",
        )
        self.hub = Hub(
            log=self.house.log, projector=self._projector, start_of=self._start_of, clock=clock, watching=self,
            max_lag=lambda: self.parts.config.limits.max_lag_events,
        )
        self.sessions = session_service(self.house, self.hub)
        self.resources, self.answers = kept.resources, kept.answers
        self.files = FileStore(config.data / "files", clock, lambda: self.parts.config.uploads)
        self.metrics.ask(
            sessions=lambda: len(self.sessions), running=lambda: self.sessions.running,
            at_hand=lambda: self.sessions.at_hand, trouble=lambda: self.house.log.trouble is not None,
        )
        self.scheduler = Scheduler(
            Schedules(self.resources, clock), self.sessions, lambda: self.parts.cards, clock,
            is_open=lambda: self.readiness.is_ready and self.sessions.leads,
        )
        self.audit = AuditLog(config.data / config.audit, clock)
        self._audited = cast(Sessions, AuditedSessions(self.sessions, self.audit.write, current_caller))
        self.replays = Replays(self._audited)
        self.retiring = Retiring(self.sessions.is_at_work)
        self.house.after_delete += [
            Workspaces(config.data / "workspaces").forget, Sharing(self.resources, clock).forget, self._forget,
        ]
        admissions = Admissions(clock)
        self.keys = LiveKeys(kept.keys, config.data, clock, on_removed=admissions.end, audit=self.audit.write)
        self.tokens = _tokens(config, clock)
        self.guard = Guard(
            self.keys if "keys" in config.asks_for else None, self.tokens, admissions=admissions,
            admins=lambda: self.parts.config.admins,
        )
        self.origin_policy = OriginPolicy(*_allowed(config))
        self.wrong_keys = WrongKeys(lambda: self.parts.config.limits.wrong_keys_per_minute)
        self.rates = Rates(lambda: self.quota, self.wrong_keys, kept.tokens)
        self.tally.on_refusal = self.rates.on_refusal = self.metrics.keys.refused
        self.metrics.keys.tally = self.tally
        self.metrics.keys.requests = lambda: self.rates.requests
        self.metrics.keys.wrong_keys = lambda: self.wrong_keys.count
        self.contexts = {name: self._context(name) for name in parts.dialects}
        self.web = self._web()

    def take(self, parts: Parts) -> None:
        """Put new parts in the place of the old ones; turns and streams that run go on as they are."""
        kept = {id(backend) for backend in parts.backends.values()}
        self.retiring.retire(backend for backend in self.parts.backends.values() if id(backend) not in kept)
        self.parts, self.quota = parts, parts.config.quota
        self.audit.write("settings.reloaded", None, str(parts.config.file or ""))
        self.house.limits, self.house.agents, self.house.backends = parts.config.limits, parts.cards, parts.backends
        self.house.cancel_on_leave = parts.config.on_disconnect == "cancel"
        self.origin_policy.allowed, self.origin_policy.proxies = _allowed(parts.config)
        for name, context in self.contexts.items():
            context.table, context.agents = parts.tables[name], parts.cards
            context.settings = parts.settings[name]
            context.heartbeat = parts.config.limits.heartbeat_seconds
            context.patience = parts.config.limits.send_seconds
            context.addresses = AddressPolicy(parts.config.outbound.allow)
            context.trust_uploads = parts.config.workspace.trust

    def runner(self, *, shutdown_timeout: float) -> Runner:
        """What serves the application."""
        return Runner(self.web, lambda: self.parts.config.limits, shutdown_timeout=shutdown_timeout)

    async def close(self) -> None:
        await self.keys.close()
        if self.tokens is not None:
            await self.tokens.close()
        await self.replays.close()
        await self.retiring.close()
        for backend in self.parts.backends.values():
            await backend.close()
        await self.sessions.rest()
        await self.house.log.close()
        self.audit.close()

    async def _forget(self, session_id: str) -> None:
        """The session is gone; agents that keep something for it put that away."""
        for backend in self.parts.backends.values():
            if isinstance(backend, Forgetting):
                await backend.forget(session_id)

    # -- wiring ---------------------------------------------------------------------------------------------------

    def _context(self, name: str) -> Context:
        config = self.parts.config
        return Context(
            dialect=name, mount=config.dialects[name].mount or self.parts.dialects[name].mount,
            sessions=self._audited,
            resources=AuditedResources(self.resources, self.audit.write, current_caller),
            files=self.files, answers=self.answers, agents=self.parts.cards,
            table=self.parts.tables[name], settings=self.parts.settings[name], guard=self.guard,
            addresses=AddressPolicy(config.outbound.allow), trust_uploads=config.workspace.trust,
            heartbeat=config.limits.heartbeat_seconds, patience=config.limits.send_seconds, data=config.data,
            clock=self._clock, keys=self.keys, replays=self.replays, metrics=self.metrics,
            leaving=lambda: self.readiness.is_draining, admit=self.rates.admit,
            check_room=lambda owner, size: self.tally.check(owner, "stored_bytes", size),
        )

    def _web(self) -> web.Application:
        refusals = Refusals(self._spell)
        app = web.Application(
            client_max_size=self.parts.config.limits.body_bytes,
            middlewares=[
                refusals.middleware, self.origin_policy.middleware,
                *([self.wrong_keys.middleware] if self.parts.config.asks_for else []),
                self.guard.middleware, self.rates.middleware,
            ],
        )
        app[WRONG_KEYS] = self.wrong_keys
        app.on_response_prepare.extend([name_request, mark])
        app[LIMITS] = lambda: self.parts.config.limits
        keep_sockets(app, self.tally)
        app.cleanup_ctx.extend([self._keeping, self._watching_keys, self._scheduling])
        for name, context in self.contexts.items():
            app.add_routes(deferred(self.parts.dialects[name].routes(context)))
        app.add_routes(health_routes(self.readiness))
        app.add_routes(metrics_routes(self.metrics))
        app.router.add_get("/replay/{session}", self._replay)
        if all(resource.canonical != "/" for resource in app.router.resources()):
            app.router.add_get("/", self._front)
        return app

    @public
    async def _front(self, request: web.Request) -> web.Response:
        """For whoever looks in with a browser: what is where."""
        places = {name: context.mount or "/" for name, context in self.contexts.items()}
        places |= {"health": "/healthz", "readiness": "/readyz", "metrics": "/metrics"}
        lines = ["Dragoman: one agent, every client protocol", *(f"  {name:<10} {at}" for name, at in places.items())]
        return web.Response(text="\n".join(lines) + "\n")

    async def _keeping(self, app: web.Application) -> AsyncIterator[None]:
        """The log is open, and what was left behind is taken up, before anybody is served."""
        await self.house.log.open()
        await self._recount()
        if left := await self.sessions.recover():
            log.info("took up turns that were left behind", turns=left)
        yield

    async def _watching_keys(self, app: web.Application) -> AsyncIterator[None]:
        """Where keys are asked for, the server keeps up with what is changed of them elsewhere."""
        are_asked_for = "keys" in self.parts.config.asks_for
        try:
            await self.keys.open()
        except (GatewayError, Problems) as error:
            if are_asked_for:
                raise
            log.warning("keys_not_read", error=str(error))
        task = asyncio.create_task(self.keys.watch(), name="keys") if are_asked_for else None
        yield
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _scheduling(self, app: web.Application) -> AsyncIterator[None]:
        """The scheduler lives as long as the application."""
        task = asyncio.create_task(self.scheduler.run(), name="scheduler")
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def _at(self, path: str) -> Context | None:
        """The dialect that is mounted there."""
        at = [context for context in self.contexts.values() if f"{path}/".startswith(f"{context.mount}/")]
        return max(at, key=lambda context: len(context.mount), default=None)

    def _spell(self, path: str, error: GatewayError) -> tuple[int, Any]:
        """A refusal in the words of the dialect that is mounted there, or in our own."""
        context = self._at(path)
        if context is None:
            return error.code.status, {"error": {"code": error.code, "message": error.message}}
        table: Table = context.table
        of_http = {"status": error.status} if isinstance(error, Refused) else {}
        return table.error(
            error.code, **of_http, message=error.message, param=error.param, details=error.details,
            request_id=error.request_id,
        )

    async def _replay(self, request: web.Request) -> web.Response:
        """The records of a session, one JSON object a line, secrets masked."""
        owner, session_id, lines, after, size = request[OWNER], request.match_info["session"], list[bytes](), 0, 0
        async with one_at_a_time(owner):
            while page := await self.sessions.records(owner, session_id, after, REPLAYED_AT_ONCE):
                for record in page:
                    lines.append(encode(masked(record)) + b"\n")
                    size += len(lines[-1])
                    if size > REPLAYED_BYTES:
                        await turn()
                        size = 0
                after = page[-1].seq
        return answer(lines, "application/jsonl")

    # -- what the hub asks ----------------------------------------------------------------------------------------

    def _projector(self, dialect: str, options: str) -> Outbound:
        return self.parts.dialects[dialect].outbound(self.parts.tables[dialect], options)

    def _start_of(self, session_id: str, dialect: str, cursor: int) -> int:
        by_turn = self.parts.dialects[dialect].needs == "turn"
        return self.sessions.start_of_turn(session_id, cursor) if by_turn else 0

    def events(self, dialect: str, count: int) -> None:
        self.metrics.events(dialect, count)

    def subscribed(self, change: int) -> None:
        self.metrics.subscribed(change)

    def cut(self) -> None:
        self.metrics.cut()

    def unsaid(self, dialect: str, record: Record) -> None:
        """Silence is a loss where the dialect's table says that it drops the feature."""
        feature = feature_of(record.event)
        if feature is not None and self.parts.tables[dialect].support[feature] in LOST:
            self.metrics.lost(self.sessions.agent_of(record.session_id), dialect, feature)


def _allowed(config: Config) -> tuple[AllowList, TrustedProxies]:
    return AllowList(config.host, config.hosts, config.origins), TrustedProxies(config.trusted_proxies)


def _tokens(config: Config, clock: Clock) -> "OidcTokens | None":
    """What verifies signed tokens is fetched only where it is wanted."""
    if "oidc" not in config.asks_for or config.oidc is None:
        return None
    from .oidc import OidcTokens

    return OidcTokens(config.oidc, clock)


# -- what can be asked without serving --------------------------------------------------------------------------------

def check(config: Config) -> list[str]:
    """One line for each thing that is in order; raises `Problems` for all that is not."""
    parts = load_parts(config)
    return [
        *(f"dialect {name}: {context.mount}, table for version {parts.tables[name].spec}"
          for name, context in Gateway(parts).contexts.items()),
        *(f"agent {card.name}: {config.agents[card.name].backend}, {_many(card.tools, 'tool')}, "
          f"{_many(card.options, 'option')}" for card in parts.cards.values()),
        *([f"shadow of {', '.join(config.shadow.agents or config.agents)}: {config.shadow.backend}"]
          if config.shadow else []),
    ]


def _many(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


@dataclass(frozen=True)
class Grid:
    """What each dialect tells its clients of each feature; the first row is the head, a number stands for a note."""

    rows: list[list[str]]
    notes: list[str]


def grid(config: Config) -> Grid:
    tables = load_parts(config).tables
    rows, notes = [["feature", *tables]], list[str]()
    for feature in FEATURES:
        row = [feature]
        for name, table in tables.items():
            mark = MARKS[table.support[feature]]
            if mark == DEGRADED:
                notes.append(f"{name} {feature}: {table.notes.get(feature) or MEANINGS[table.support[feature]]}")
                mark += str(len(notes))
            row.append(mark)
        rows.append(row)
    return Grid(rows, notes)


def pairs(config: Config) -> list[list[str]]:
    """What is lost between an agent behind one dialect and a client of another; the first row is the head."""
    tables = load_parts(config).tables
    return [["agent", "client", "lost", "degraded"], *(
        [source, target, *(", ".join(names) or "nothing" for names in losses(tables[source], tables[target]))]
        for source in tables for target in tables
    )]


def losses(first: Table, second: Table) -> tuple[list[str], list[str]]:
    """Features that the second's clients do not get of a server of the first, and those they get in a lesser form."""
    levels = {name: {first.heard[name], second.support[name]} for name in FEATURES}
    lost = [name for name, both in levels.items() if LOST & both]
    return lost, [name for name, both in levels.items() if name not in lost and both != {Level.FULL}]
