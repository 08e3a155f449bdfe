"""The composition root: makes storage, engine, agents and dialects from the settings, and one aiohttp application."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sized
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from pydantic import BaseModel

import gateway.model as m
from gateway.api_documents import ASYNCAPI, OPENAPI, ApiDocuments, RouteGroup
from gateway.backends import BuiltinToolRunner, McpToolLists, SessionReplayer
from gateway.client import AddressPolicy
from gateway.config import Config
from gateway.console import ApiError, Console, ConsoleColumns, ConsoleServices, DialectPlace, error_body
from gateway.engine import Hub, Runtime, SessionTable
from gateway.errors import GatewayError
from gateway.http import (
    CONNECTION_LIMITS,
    OWNER,
    SOCKET_RELAY,
    WRONG_KEY_LIMITER,
    AllowList,
    Answers,
    Authenticator,
    Context,
    ErrorMiddleware,
    HttpStatusError,
    KeyMetrics,
    LimitedAppRunner,
    Metrics,
    MetricsPage,
    OpenRequests,
    OriginPolicy,
    RateLimiter,
    Readiness,
    SessionMetrics,
    SocketRelay,
    TrustedProxies,
    WrongKeyLimiter,
    add_cors_headers,
    add_request_id,
    current_caller,
    delay_100_continue,
    health_routes,
    metrics_routes,
    mount_prefix,
    pieces_response,
    public,
    take_traceparent,
    track_open_sockets,
)
from gateway.ids import make_mint
from gateway.logging import get_logger, mask_secrets
from gateway.migration import Adopter, AdoptingSessions, LiveSessionStore, ServerImports, ServerResources
from gateway.ports import Clock, EventLog, OperatorOffers, Resources, SettingsReload
from gateway.quotas import LimitRefusals, Quotas
from gateway.resources import (
    AgentService,
    AgentUsage,
    AuditedResources,
    AuditedSessions,
    CombinedDefaults,
    ExpiredThings,
    KeyService,
    LogRetention,
    McpServerService,
    Memories,
    Retention,
    RuledResources,
    Scheduler,
    Schedules,
    SessionMemories,
    Shares,
    SkillService,
    UserSettings,
    run_hourly,
)
from gateway.telemetry import Span, Tracer
from gateway.time_slices import next_slice, one_at_a_time
from gateway.usage import ObservedSessions, RequestCounter, StreamWatchers, UsageCounts, UsageMetrics, UsageStore
from gateway.yaml_positions import Problems

from .audit import AuditLog
from .composition import BackendRetirement, Components, load_components
from .engine_parts import (
    DeletedSessionCleanup,
    ServedDialects,
    StreamMetrics,
    TurnCounters,
    adoption_sources,
    make_span_export,
)
from .file_storage import make_file_storage
from .storage_factory import Storage, make_session_service, make_storage
from .turn_routes import TurnRoutes

if TYPE_CHECKING:
    from gateway.telemetry.otlp import OtlpExport

    from .oidc import OidcVerifier

log = get_logger("dragoman.app")

VERSION = version("dragoman")

REPLAY_PAGE, REPLAY_SLICE_BYTES = 512, 128 * 1024
"""How many records of a session are read at a time, and how many bytes are written in one slice."""


class Gateway:
    """All parts of one server, constructed from the settings; `web` serves them, and a reload replaces some of them."""

    def __init__(
        self, components: Components, clock: Clock = time.time, reloads: SettingsReload | None = None,
        metrics_page: MetricsPage | None = None, socket_relay: SocketRelay | None = None,
    ) -> None:
        config = components.config
        self._metrics_page, self._socket_relay = metrics_page, socket_relay
        self.clock = clock
        self._reloads = reloads
        self.components = components
        self.addresses = AddressPolicy(config.outbound.allow)
        self.metrics = Metrics()
        self.usage = AgentUsage()
        self.readiness = Readiness()
        self.quota = config.quota
        refusals = LimitRefusals()
        self.quotas = Quotas(lambda: self.quota, refusals)
        self._span_export: OtlpExport | None = None
        kept = make_storage(config, clock, lambda: self.components.config.limits, self.quotas)
        self._recount = kept.recount
        self._file_storage = make_file_storage(config, clock, lambda: self.components.config)
        self.files, self.workspaces = self._file_storage.files, self._file_storage.workspaces
        self.mcp_tools = McpToolLists(lambda: self.components.backends, lambda: self.addresses, clock)
        self.usage_store = UsageStore(kept.resources)
        self.usage_counts = UsageCounts(self.usage_store, clock)
        self._watchers = StreamWatchers(self.usage_counts)
        self._request_counter = RequestCounter(self.usage_counts, self._dialect_at)
        self.routes = TurnRoutes(config.route, kept.resources, clock)
        self.runtime = self._runtime(kept)
        self.table = SessionTable()
        self._dialects = ServedDialects(components)
        self.console_columns = ConsoleColumns(self._dialects, lambda: self.components)
        self.hub = self._hub(kept.log)
        self.drain_requested = asyncio.Event()
        """Set when an operator has asked this server, of several, to drain and stop."""
        self.sessions = make_session_service(self.runtime, self.table, self.hub, self.drain_requested.set)
        self.resources, self.answers = kept.resources, kept.answers
        self.metrics.register(
            SessionMetrics(self.table, kept.log, lambda: self.components.config.limits.max_sessions))
        self.scheduler = self._scheduler()
        self.audit = AuditLog(config.data / config.audit, clock)
        self.retention = self._retention()
        self.adopter, self.imports = self._adopter(), self._imports()
        found = self.sessions if self.adopter is None else AdoptingSessions(self.sessions, self.adopter)
        self._audited = AuditedSessions(found, self.audit.write, current_caller)
        self._managed = self._managed_resources()
        self._agents = AgentService(self._managed, lambda: self.components.cards, clock())
        self.replays = SessionReplayer(self._audited)
        self.retirement = BackendRetirement(self.table.uses_backend)
        admissions = OpenRequests(clock)
        self.keys = KeyService(kept.keys, config.data, clock, on_removed=admissions.revoke, audit=self.audit.write)
        self.tokens = _oidc_verifier(config, clock)
        self.authenticator = Authenticator(
            self.keys if "keys" in config.auth_methods else None, self.tokens, open_requests=admissions,
            admins=lambda: self.components.config.admins, tagged=lambda: self.routes.headers,
            observe=self._request_counter.count,
        )
        self.origin_policy = OriginPolicy(*_network_access(config, socket_relay is not None))
        self.wrong_keys = WrongKeyLimiter(lambda: self.components.config.limits.wrong_keys_per_minute)
        self.rate_limiter = RateLimiter(lambda: self.quota, self.wrong_keys, kept.tokens, refusals)
        self.metrics.register(UsageMetrics(self.usage_counts))
        self.metrics.register(KeyMetrics(refusals, self.quotas, self.rate_limiter, self.wrong_keys))
        self.contexts = {name: self._context(name) for name in components.dialects}
        self.console = Console(self._console_services()) if config.console else None
        self.api_documents = ApiDocuments(self.route_groups, VERSION)
        self._routes = self._all_routes()
        self.web = self._web()

    def _runtime(self, kept: Storage) -> Runtime:
        """The parts that all sessions share."""
        config, clock = self.components.config, self.clock
        return Runtime(
            log=kept.log, clock=clock, mint=make_mint(), limits=config.limits, agents=self.components.cards,
            backends=self.components.backends, observer=TurnCounters(self.metrics, self.usage), tally=self.quotas,
            tracer=self._tracer(), routes=self.routes,
            cancel_on_disconnect=config.on_disconnect == "cancel",
            cleanup=DeletedSessionCleanup(
                self.workspaces, Shares(kept.resources, clock),
                lambda: self.components.backends.values(),
            ),
            defaults=self._session_defaults(kept.resources),
            skills=self._skills(kept.resources), memories=SessionMemories(Memories(kept.resources, clock)),
        )

    def _tracer(self) -> Tracer | None:
        """The tracer of turns, if the settings name a collector; spans go to it from the start to the end."""
        settings = self.components.config.telemetry
        if settings.otlp is None:
            return None

        def export(span: Span) -> None:
            if self._span_export is not None:
                self._span_export.take(span)

        return Tracer(export, self.clock, lambda session_id: self.table.agent_of(session_id), settings.share)

    def _hub(self, log: EventLog) -> Hub:
        """The hub of all streams; the console may open columns of a session as streams of their own."""
        return Hub(
            log=log, sessions=self.table, streams=self.console_columns, clock=self.clock,
            observer=StreamMetrics(self.metrics, self._dialects, self.table, self._watchers),
            max_lag=lambda: self.components.config.limits.max_lag_events,
        )

    def _scheduler(self) -> Scheduler:
        """The scheduler, which starts tasks while this server is ready and leads."""
        return Scheduler(
            Schedules(self.resources, self.clock), self.sessions, lambda: self.components.cards, self.clock,
            is_open=self._leads,
        )

    def _retention(self) -> Retention:
        """Deletes what the settings do not keep, while this server is ready and leads."""
        return Retention(
            ExpiredThings(self.runtime.log, self.resources, self.clock), self.sessions, self.resources, self.files,
            lambda: self.components.config.retention, self.audit.write,
            is_open=self._leads,
        )

    def _adopter(self) -> Adopter | None:
        """Brings sessions of other servers over, if an agent of the settings wants that."""
        sources = adoption_sources(self.components.config)
        return Adopter(sources, self.sessions, self.runtime.log, self.resources, self.clock) if sources else None

    def _imports(self) -> ServerImports:
        """Imports what other servers have when an admin wants that."""
        return ServerImports(
            LiveSessionStore(self.sessions, self.runtime.log),
            ServerResources(
                self.resources, self.files, AgentService(self.resources, lambda: self.components.cards, 0.0),
                Schedules(self.resources, self.clock), lambda: self.addresses,
                lambda: self.components.config.default_agent,
            ),
            lambda: self.components.cards, lambda: self.components.config.default_agent, self.clock,
        )

    def _leads(self) -> bool:
        """Whether this server does now what only one of several servers may do."""
        return self.readiness.is_ready and self.sessions.leads

    def _log_files(self) -> list[Path]:
        """The logs that `retention.logs` is about."""
        config = self.components.config
        return [config.data / config.audit, *([config.data / config.shadow.report] if config.shadow else [])]

    def _managed_resources(self) -> RuledResources:
        """The resources as clients may change them: within the rules of the settings, and with an audit log."""
        return RuledResources(
            AuditedResources(self.resources, self.audit.write, current_caller),
            lambda: self.components.config.management.changes, current_caller,
        )

    def replace_components(self, parts: Components) -> None:
        """Use new components from now on; running turns and open streams keep the old ones."""
        kept = {id(backend) for backend in parts.backends.values()}
        self.retirement.retire(backend for backend in self.components.backends.values() if id(backend) not in kept)
        self.components, self.quota = parts, parts.config.quota
        self.audit.write("settings.reloaded", None, str(parts.config.file or ""))
        self.runtime.reload(
            limits=parts.config.limits, agents=parts.cards, backends=parts.backends,
            cancel_on_disconnect=parts.config.on_disconnect == "cancel",
        )
        self.routes.reload(parts.config.route)
        if self.adopter is not None:
            self.adopter.reload(adoption_sources(parts.config))
        self._dialects.reload(parts)
        self.hub.snapshots.streams.clear()  # their projectors have the old tables
        self.addresses = AddressPolicy(parts.config.outbound.allow)
        self.mcp_tools.forget()
        self.origin_policy.allowed, self.origin_policy.proxies = _network_access(
            parts.config, self._socket_relay is not None)
        for name, context in self.contexts.items():
            context.table, context.agents = parts.tables[name], parts.cards
            context.settings = parts.settings[name]
            context.heartbeat = parts.config.limits.heartbeat_seconds
            context.send_timeout = parts.config.limits.send_seconds
            context.addresses = self.addresses
            context.offers = _offers(parts.config)
        self.api_documents.forget()

    def runner(self, *, shutdown_timeout: float) -> LimitedAppRunner:
        """The runner that serves the application."""
        return LimitedAppRunner(self.web, lambda: self.components.config.limits, shutdown_timeout=shutdown_timeout)

    async def close(self) -> None:
        if self.console is not None:
            await self.console.close()
        await self.keys.close()
        if self.tokens is not None:
            await self.tokens.close()
        await self.replays.close()
        await self.mcp_tools.close()
        await self.retirement.close()
        for backend in self.components.backends.values():
            await backend.close()
        await self.usage_counts.close()
        await self.routes.close()
        if self.adopter is not None:
            await self.adopter.close()
        await self.sessions.rest()
        await self.runtime.log.close()
        await self._file_storage.close()
        if self._span_export is not None:
            await self._span_export.close()
        self.audit.close()

    # -- wiring ---------------------------------------------------------------------------------------------------

    def _session_defaults(self, resources: Resources) -> CombinedDefaults:
        def cards() -> Mapping[str, m.AgentCard]:
            return self.components.cards

        chosen, agents = UserSettings(resources, cards), AgentService(resources, cards, 0.0)
        servers = McpServerService(resources, agents, chosen, lambda: self.addresses)
        return CombinedDefaults(resources, chosen, servers, self._skills(resources))

    def _skills(self, resources: Resources) -> SkillService:
        """The skills of sessions: what their agents have installed, and what they have of the library."""
        agents = AgentService(resources, lambda: self.components.cards, 0.0)
        return SkillService(resources, _offers(self.components.config).skills, agents)

    def _context(self, name: str) -> Context[BaseModel]:
        config = self.components.config
        return Context(
            dialect=name, mount=config.dialects[name].mount or self.components.dialects[name].mount,
            sessions=ObservedSessions(
                self._audited, name, self.usage_counts, self._watchers, current_caller, self.routes.marked),
            resources=self._managed, files=self.files, answers=self.answers, agents=self.components.cards,
            agent_service=self._agents, mcp_tools=self.mcp_tools, reloads=self._reloads,
            table=self.components.tables[name], settings=self.components.settings[name], guard=self.authenticator,
            addresses=self.addresses, workspaces=self.workspaces,
            heartbeat=config.limits.heartbeat_seconds, send_timeout=config.limits.send_seconds,
            clock=self.clock, offers=_offers(config), keys=self.keys, replays=self.replays, metrics=self.metrics,
            agent_calls=self.usage.calls, tasks=self.scheduler, tools=BuiltinToolRunner(self.clock),
            is_stopping=lambda: self.readiness.is_draining, count_request=partial(self._count_message, name),
            check_stored_bytes=lambda owner, size: self.quotas.check(owner, "stored_bytes", size),
        )

    async def _count_message(self, dialect: str, owner: str, message: str) -> None:
        """Count a message that came over a socket; raises `RateLimited`."""
        self._request_counter.count_message(dialect, message)
        await self.rate_limiter.count_request(owner)

    def _console_services(self) -> ConsoleServices:
        config = self.components.config
        return ConsoleServices(
            sessions=self._audited, resources=self._managed, files=self.files, parts=lambda: self.components,
            columns=self.console_columns, auth=config.auth_methods, version=VERSION, clock=self.clock,
            places=[DialectPlace(name=name, mount=context.mount) for name, context in self.contexts.items()],
            watchers=lambda session_id: self.hub.watchers(session_id) & self.contexts.keys(),
            heartbeat=lambda: self.components.config.limits.heartbeat_seconds,
            send_timeout=lambda: self.components.config.limits.send_seconds,
            limits=lambda: self.components.config.limits.model_dump(mode="json"),
            addresses=lambda: self.addresses, data=config.data,
            workspaces=self.workspaces, metrics=self.metrics, keys=self.keys,
            usage=self.usage_counts, imports=self.imports, is_stopping=lambda: self.readiness.is_draining,
            check_stored_bytes=lambda owner, size: self.quotas.check(owner, "stored_bytes", size),
            default_agent=lambda: self.components.config.default_agent, started_at=self.clock(),
        )

    def _web(self) -> web.Application:
        refusals = ErrorMiddleware(self._spell)
        app = web.Application(
            client_max_size=self.components.config.limits.body_bytes,
            middlewares=[
                *([take_traceparent] if self.runtime.tracer is not None else []),
                refusals.middleware, self.origin_policy.middleware,
                *([self.wrong_keys.middleware] if self.components.config.auth_methods else []),
                self.authenticator.middleware, self.rate_limiter.middleware,
            ],
        )
        app[WRONG_KEY_LIMITER] = self.wrong_keys
        app.on_response_prepare.extend([add_request_id, add_cors_headers])
        app[CONNECTION_LIMITS] = lambda: self.components.config.limits
        if self._socket_relay is not None:
            app[SOCKET_RELAY] = self._socket_relay
        track_open_sockets(app, self.quotas)
        app.cleanup_ctx.extend([self._keeping, self._watching_keys, self._scheduling, self._deleting_expired])
        for name, routes in self._routes.items():
            app.add_routes(routes)
            if name in self.contexts:
                self._request_counter.add_routes(name, routes)
        if all(resource.canonical != "/" for resource in app.router.resources()):
            self._routes[SERVER].append(web.get("/", self._front))
            app.add_routes(self._routes[SERVER][-1:])
        return app

    def _all_routes(self) -> dict[str, list[web.RouteDef]]:
        """The routes of each dialect, of the server itself, and of the console."""
        found = {name: delay_100_continue(self.components.dialects[name].routes(context))
                 for name, context in self.contexts.items()}
        found[SERVER] = [
            *health_routes(self.readiness), *metrics_routes(self.metrics, self._metrics_page),
            web.get("/replay/{session}", self._replay), *self.api_documents.routes(),
        ]
        return found | ({CONSOLE: self.console.routes()} if self.console is not None else {})

    def route_groups(self) -> list[RouteGroup]:
        """What the API documents describe."""
        tables, needs_key = self.components.tables, bool(self.components.config.auth_methods)
        return [
            RouteGroup(name=name, routes=routes, table=tables.get(name), needs_key=needs_key,
                       mount=self.contexts[name].mount if name in self.contexts else "",
                       **({"error": ApiError} if name == CONSOLE else {}))
            for name, routes in self._routes.items()
        ]

    @public
    @Answers(str, media_type="text/plain", others={302: None})
    async def _front(self, request: web.Request) -> web.Response:
        """The console for browsers; for other clients, a text that lists the mounts."""
        if self.console is not None and self.console.is_browser(request):
            return self.console.redirect(mount_prefix(self.web))
        places = {name: context.mount or "/" for name, context in self.contexts.items()}
        places |= {"console": "/console"} if self.console is not None else {}
        places |= {"health": "/healthz", "readiness": "/readyz", "metrics": "/metrics"}
        places |= {"OpenAPI": OPENAPI, "AsyncAPI": ASYNCAPI}
        lines = ["Dragoman: one agent, every client protocol", *(f"  {name:<10} {at}" for name, at in places.items())]
        return web.Response(text="\n".join(lines) + "\n")

    async def _keeping(self, app: web.Application) -> AsyncIterator[None]:
        """Open the log and recover open turns before the first request is served."""
        self._span_export = make_span_export(self.components.config, VERSION)
        await self.runtime.log.open()
        await self._recount()
        await self.routes.restore()
        if left := await self.sessions.recover():
            log.info("turns_recovered", count=left)
        yield

    async def _watching_keys(self, app: web.Application) -> AsyncIterator[None]:
        """Where clients need keys, read the keys again when another process has changed them."""
        are_asked_for = "keys" in self.components.config.auth_methods
        try:
            await self.keys.open()
        except (GatewayError, Problems) as error:
            if are_asked_for:
                raise
            log.warning("keys_not_read", error=str(error))
        task = asyncio.create_task(self.keys.poll(), name="keys") if are_asked_for else None
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
        await self.scheduler.close()

    async def _deleting_expired(self, app: web.Application) -> AsyncIterator[None]:
        """Retention lives as long as the application; every server looks after the logs in its own folder."""
        logs = LogRetention(self._log_files, lambda: self.components.config.retention.logs, self.clock)
        rounds = [run_hourly(self.retention.delete_expired, self._leads),
                  run_hourly(logs.delete_expired, lambda: self.readiness.is_ready)]
        tasks = [asyncio.create_task(one, name="retention") for one in rounds]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def _at(self, path: str) -> Context[BaseModel] | None:
        """The context of the dialect that is mounted at this path."""
        at = [context for context in self.contexts.values() if f"{path}/".startswith(f"{context.mount}/")]
        return max(at, key=lambda context: len(context.mount), default=None)

    def _dialect_at(self, path: str) -> str | None:
        found = self._at(path.removeprefix(mount_prefix(self.web)))
        return None if found is None else found.dialect

    def _spell(self, path: str, error: GatewayError) -> tuple[int, object]:
        """The status and the body of an error, as the dialect at this path encodes it."""
        path = path.removeprefix(mount_prefix(self.web))
        if self.console is not None and self.console.has(path):
            return error_body(error)
        context = self._at(path)
        if context is None:
            return error.code.status, {"error": {"code": error.code, "message": error.message}}
        of_http = {"status": error.status} if isinstance(error, HttpStatusError) else {}
        return context.table.error(
            error.code, **of_http, message=error.message, param=error.param, details=error.details,
            request_id=error.request_id, reason=error.reason,
        )

    @Answers(str, media_type="application/jsonl")
    async def _replay(self, request: web.Request) -> web.Response:
        """The records of a session, one JSON object a line, secrets masked."""
        owner, session_id, lines, after, size = request[OWNER], request.match_info["session"], list[bytes](), 0, 0
        async with one_at_a_time(owner):
            while page := await self.sessions.records(owner, session_id, after, REPLAY_PAGE):
                for record in page:
                    lines.append(m.encode_record(mask_secrets(record)) + b"\n")
                    size += len(lines[-1])
                    if size > REPLAY_SLICE_BYTES:
                        await next_slice()
                        size = 0
                after = page[-1].seq
        return pieces_response(lines, "application/jsonl")


SERVER, CONSOLE = "server", "console"
"""The routes that belong to no dialect."""
_HERE = Path(__file__).parent
OWN_DOCS = next((folder for folder in (_HERE / "docs", _HERE.parent / "docs") if folder.is_dir()), _HERE / "docs")
"""The pages of the gateway: in a wheel beside this module, in a checkout beside the package."""


def _offers(config: Config) -> OperatorOffers:
    management = config.management
    return OperatorOffers(docs=management.docs or OWN_DOCS, skills=management.skills, execute=management.execute)


def _network_access(config: Config, has_workers: bool) -> tuple[AllowList, TrustedProxies]:
    proxies = TrustedProxies(config.trusted_proxies, has_workers=has_workers)
    return AllowList(config.host, config.hosts, config.origins), proxies


def _oidc_verifier(config: Config, clock: Clock) -> "OidcVerifier | None":
    """The verifier of signed tokens; its libraries are imported only if it is used."""
    if "oidc" not in config.auth_methods or config.oidc is None:
        return None
    from .oidc import OidcVerifier

    return OidcVerifier(config.oidc, clock)


# -- what can be asked without serving --------------------------------------------------------------------------------

def describe_components(config: Config) -> list[str]:
    """One line for each dialect, agent and shadow; raises `Problems` if the settings have mistakes."""
    parts = load_components(config)
    return [
        *(f"dialect {name}: {context.mount}, table for version {parts.tables[name].spec}"
          for name, context in Gateway(parts).contexts.items()),
        *(f"agent {card.name}: {config.agents[card.name].backend}, {_count(card.tools, 'tool')}, "
          f"{_count(card.options, 'option')}" for card in parts.cards.values()),
        *([f"shadow of {', '.join(config.shadow.agents or config.agents)}: {config.shadow.backend}"]
          if config.shadow else []),
    ]


def _count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
