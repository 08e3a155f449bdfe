"""The operations for admins: figures of the server, the last warnings of its log, and keys."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from aiohttp import web
from msgspec import Struct
from pydantic import Field

from gateway.errors import Unsupported
from gateway.http import CALLER, Metrics, WireModel, dumps, json_response, read_json, stream_sse
from gateway.logging import RECENT_WARNINGS, LoggedWarning
from gateway.ports import Chunk, Frame

from .operations import SSE, ConsoleServices, Operation

FIGURE_SECONDS = 2.0
"""Seconds between two readings of a stream of figures."""
KeyName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]


class LagFigures(Struct, kw_only=True):
    """How late the event loop ran its timers: their number, and the sum of the seconds."""

    count: float
    sum: float


class LossFigures(Struct, kw_only=True):
    """How often a feature of an agent was lost in a dialect."""

    source: str
    target: str
    feature: str
    count: float


class ServerFigures(Struct, kw_only=True):
    """The numbers of one moment; counters only grow, so their differences are rates."""

    at: float
    turns_running: float
    turns: dict[str, float]
    """Ended turns by outcome."""
    streams: float
    cut_streams: float
    sessions: float
    cached_sessions: float
    events: dict[str, float]
    """Events sent to clients, by dialect."""
    losses: list[LossFigures]
    lag: LagFigures
    tasks: float
    memory_bytes: float
    cpu_seconds: float


class RecentWarnings(Struct, kw_only=True):
    """The last warnings and errors of the server's log, newest first."""

    warnings: list[LoggedWarning]


class ShownKey(Struct, kw_only=True):
    """A key without the key."""

    name: str
    user: str
    created_at: float
    last_used_at: float | None
    last_used_from: str
    made_by: str | None


class KeyList(Struct, kw_only=True):
    keys: list[ShownKey]


class KeyToCreate(WireModel):
    name: KeyName
    user: KeyName | None = None


class CreatedKey(Struct, kw_only=True):
    """A new key; it is shown only now."""

    name: str
    user: str
    key: str


def read_figures(metrics: Metrics, dialects: Sequence[str], now: float) -> ServerFigures:
    """The figures of now, from the metrics that Prometheus gets."""
    flat: dict[str, float] = {}
    labelled: dict[str, list[tuple[dict[str, str], float]]] = {}
    for sample in (sample for family in metrics.registry.collect() for sample in family.samples):
        if sample.labels:
            labelled.setdefault(sample.name, []).append((sample.labels, sample.value))
        else:
            flat[sample.name] = sample.value

    def by(name: str, label: str) -> dict[str, float]:
        return {labels[label]: value for labels, value in labelled.get(name, ())}

    losses = labelled.get("dragoman_translation_loss_total", ())
    return ServerFigures(
        at=now, turns_running=flat.get("dragoman_running_turns", 0.0), turns=by("dragoman_turns_total", "outcome"),
        streams=flat.get("dragoman_subscribers", 0.0), cut_streams=flat.get("dragoman_cut_subscribers_total", 0.0),
        sessions=flat.get("dragoman_sessions", 0.0), cached_sessions=flat.get("dragoman_cached_sessions", 0.0),
        events={name: count for name, count in by("dragoman_events_total", "dialect").items() if name in dialects},
        losses=[LossFigures(source=labels["from"], target=labels["to"], feature=labels["feature"], count=value)
                for labels, value in losses],
        lag=LagFigures(count=flat.get("dragoman_loop_lag_seconds_count", 0.0),
                       sum=flat.get("dragoman_loop_lag_seconds_sum", 0.0)),
        tasks=flat.get("dragoman_tasks", 0.0), memory_bytes=flat.get("process_resident_memory_bytes", 0.0),
        cpu_seconds=flat.get("process_cpu_seconds_total", 0.0),
    )


class FigureSubscription:
    """Figures every two seconds, as a subscription."""

    cut_at: int | None = None

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._is_new = True

    @property
    def is_draining(self) -> bool:
        return self._services.is_stopping()

    async def chunks(self) -> Sequence[Chunk]:
        if not self._is_new:
            await asyncio.sleep(FIGURE_SECONDS)
        self._is_new = False
        if self._services.is_stopping():
            return ()
        body = dumps(figures_now(self._services))
        return (Chunk(0, (Frame(b"event: figures\ndata: %b\n\n" % body, "figures"),), False),)

    def cut(self) -> None:
        """The client did not read: nothing is held for it."""

    def close(self) -> None:
        """Nothing is open."""


def figures_now(services: ConsoleServices) -> ServerFigures:
    return read_figures(services.metrics, [*services.parts().dialects], services.clock())


class AdminRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/figures", handler=self.figures, answer=ServerFigures, for_admins=True,
                      summary="Read the figures of the server."),
            Operation(method="GET", path="/figures/stream", handler=self.stream, for_admins=True, media_type=SSE,
                      events={"figures": ServerFigures}, summary="Follow the figures of the server."),
            Operation(method="GET", path="/warnings", handler=self.warnings, answer=RecentWarnings, for_admins=True,
                      summary="Read the last warnings of the server's log."),
            Operation(method="GET", path="/keys", handler=self.keys, answer=KeyList, for_admins=True,
                      summary="List the keys of all users."),
            Operation(method="POST", path="/keys", handler=self.add_key, body=KeyToCreate, answer=CreatedKey,
                      status=201, for_admins=True, summary="Create a key; it is shown only now."),
            Operation(method="DELETE", path="/keys/{name}", handler=self.remove_key, status=204, for_admins=True,
                      summary="Remove a key, and the keys that were made with it."),
        ]

    async def figures(self, request: web.Request) -> web.Response:
        return json_response(figures_now(self._services))

    async def stream(self, request: web.Request) -> web.StreamResponse:
        services = self._services
        services.check_open()
        with services.sessions.reserve_stream(request[CALLER].user):
            return await stream_sse(
                request, FigureSubscription(services), heartbeat=services.heartbeat(),
                patience=services.send_timeout())

    async def warnings(self, request: web.Request) -> web.Response:
        return json_response(RecentWarnings(warnings=list(reversed(RECENT_WARNINGS))))

    async def keys(self, request: web.Request) -> web.Response:
        self._check_keys()
        found = await self._services.keys.all()
        names = {key.hash: key.name for key in found}
        return json_response(KeyList(keys=[ShownKey(
            name=key.name, user=key.user, created_at=key.created.timestamp(),
            last_used_at=key.used.timestamp() if key.used else None, last_used_from=key.used_from,
            made_by=names.get(key.parent, "a removed key") if key.parent else None,
        ) for key in found]))

    async def add_key(self, request: web.Request) -> web.Response:
        self._check_keys()
        body = await read_json(request, KeyToCreate)
        token = await self._services.keys.add(body.name, body.user, request[CALLER])
        return json_response(CreatedKey(name=body.name, user=body.user or body.name, key=token), 201)

    async def remove_key(self, request: web.Request) -> web.Response:
        self._check_keys()
        await self._services.keys.remove(request.match_info["name"], request[CALLER])
        return web.Response(status=204)

    def _check_keys(self) -> None:
        if "keys" not in self._services.auth:
            raise Unsupported("this server asks for no keys: set `auth: keys` in config.yaml")
