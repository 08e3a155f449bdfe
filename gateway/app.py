"""The only place where everything meets: settings → agents, log, engine and dialects → one aiohttp application."""

import asyncio
import time
from collections.abc import AsyncIterator, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.backends import Replays
from gateway.config import Config
from gateway.engine import House, Hub
from gateway.errors import GatewayError
from gateway.ids import minting
from gateway.journal import get, masked
from gateway.model import Record, encode
from gateway.ports import Clock, Forgetting, Outbound
from gateway.resources import FileStore, KeyStore, Scheduler, Schedules, Sharing, Workspaces
from gateway.time_slices import one_at_a_time, turn
from gateway.web import (
    OWNER,
    Context,
    Cors,
    Guard,
    Metrics,
    Readiness,
    Refusals,
    Refused,
    health_routes,
    keep_sockets,
    metrics_routes,
    name_request,
    public,
)
from mappings.language import FEATURES, Level, Table, feature_of

from .parts import Parts, load_parts
from .retiring import Retiring
from .stores import session_service, stores

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
        kept = stores(config, clock, lambda: self.parts.config.limits.max_resources)
        self.house = House(
            log=kept.log, clock=clock, mint=minting(), limits=config.limits, agents=parts.cards,
            backends=parts.backends, observer=self.metrics, cancel_on_leave=config.on_disconnect == "cancel",
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
        self.replays = Replays(self.sessions)
        self.retiring = Retiring(self.sessions.is_at_work)
        self.house.after_delete += [
            Workspaces(config.data / "workspaces").forget, Sharing(self.resources, clock).forget, self._forget,
        ]
        self.keys = KeyStore(config.data)
        self.guard = Guard(self.keys if config.auth == "keys" else None)
        self.contexts = {name: self._context(name) for name in parts.dialects}
        self.web = self._web()

    def take(self, parts: Parts) -> None:
        """Put new parts in the place of the old ones; turns and streams that run go on as they are."""
        kept = {id(backend) for backend in parts.backends.values()}
        self.retiring.retire(backend for backend in self.parts.backends.values() if id(backend) not in kept)
        self.parts = parts
        self.house.limits, self.house.agents, self.house.backends = parts.config.limits, parts.cards, parts.backends
        self.house.cancel_on_leave = parts.config.on_disconnect == "cancel"
        for name, context in self.contexts.items():
            context.table, context.agents = parts.tables[name], parts.cards
            context.settings = parts.settings[name]
            context.heartbeat = parts.config.limits.heartbeat_seconds
            context.patience = parts.config.limits.send_seconds

    async def close(self) -> None:
        self.keys.remember_use()
        await self.replays.close()
        await self.retiring.close()
        for backend in self.parts.backends.values():
            await backend.close()
        await self.sessions.rest()
        await self.house.log.close()

    async def _forget(self, session_id: str) -> None:
        """The session is gone; agents that keep something for it put that away."""
        for backend in self.parts.backends.values():
            if isinstance(backend, Forgetting):
                await backend.forget(session_id)

    # -- wiring ---------------------------------------------------------------------------------------------------

    def _context(self, name: str) -> Context:
        config = self.parts.config
        return Context(
            dialect=name, mount=config.dialects[name].mount or self.parts.dialects[name].mount, sessions=self.sessions,
            resources=self.resources, files=self.files, answers=self.answers, agents=self.parts.cards,
            table=self.parts.tables[name], settings=self.parts.settings[name], guard=self.guard,
            heartbeat=config.limits.heartbeat_seconds, patience=config.limits.send_seconds, data=config.data,
            clock=self._clock, keys=self.keys, replays=self.replays, metrics=self.metrics,
            leaving=lambda: self.readiness.is_draining,
        )

    def _web(self) -> web.Application:
        refusals, cors = Refusals(self._spell), Cors(self._is_open)
        app = web.Application(
            client_max_size=self.parts.config.limits.body_bytes,
            middlewares=[cors.middleware, refusals.middleware, self.guard.middleware],
        )
        app.on_response_prepare.extend([name_request, cors.mark])
        keep_sockets(app)
        app.cleanup_ctx.extend([self._keeping, self._scheduling])
        for name, context in self.contexts.items():
            app.add_routes(self.parts.dialects[name].routes(context))
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
        if left := await self.sessions.recover():
            log.info("took up turns that were left behind", turns=left)
        yield

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

    def _is_open(self, path: str) -> bool:
        """Whether pages of other sites may ask there."""
        context = self._at(path)
        return context is not None and getattr(context.settings, "cors", False)

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
        return web.Response(body=b"".join(lines), content_type="application/jsonl")

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
