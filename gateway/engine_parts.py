"""The parts that the application gives to the engine: dialects, stream metrics, traces, cleanup, adopted sessions."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from yarl import URL

import gateway.model as m
from gateway.backends.remote import RemoteSettings, find_dialect
from gateway.client import proxy_for
from gateway.config import Config
from gateway.engine import SessionTable
from gateway.http import Metrics
from gateway.migration import AdoptionSource, Origin
from gateway.ports import Backend, Projector, StatefulBackend, StreamKey, StreamOptions, Workspaces
from gateway.resources import AgentUsage, Shares
from gateway.usage import StreamWatchers
from mappings.language import FEATURE_EVENTS, LOST_LEVELS, feature_of

from .composition import REMOTE, Components

if TYPE_CHECKING:
    from gateway.telemetry.otlp import OtlpExport


class ServedDialects:
    """The dialects of the current settings, and their tables; the hub makes its projectors here."""

    def __init__(self, components: Components) -> None:
        self._components = components

    def reload(self, components: Components) -> None:
        """Use new tables from now on; open streams keep their projector."""
        self._components = components

    def projector(self, dialect: str, options: StreamOptions) -> Projector:
        return self._components.dialects[dialect].projector(self._components.tables[dialect], options)

    def replays_turn(self, dialect: str) -> bool:
        return self._components.dialects[dialect].replay_from == "turn"

    def loses(self, dialect: str, feature: str) -> bool:
        """Say whether the table of the dialect says that the feature is lost."""
        return self._components.tables[dialect].support[feature] in LOST_LEVELS


class StreamMetrics:
    """Counts the streams of all dialects, the features that their clients are sent, and those that dialects lose."""

    counted_events = FEATURE_EVENTS

    def __init__(
        self, metrics: Metrics, dialects: ServedDialects, table: SessionTable, watchers: StreamWatchers,
    ) -> None:
        self.events, self.subscribed, self.cut = metrics.count_events, metrics.count_subscribers, metrics.count_cut
        self._watchers = watchers
        self._metrics = metrics
        self._dialects = dialects
        self._table = table

    def count_record(self, key: StreamKey, record: m.Record, is_sent: bool) -> None:
        """Count a use or a loss; a block whose deltas were sent has no frame at its end, and is not lost."""
        feature = feature_of(record.event)
        if feature is None:
            return
        if is_sent or not self._dialects.loses(key.dialect, feature):
            self._watchers.count_sent(record.session_id, key, feature)
        else:
            self._metrics.count_loss(self._table.agent_of(record.session_id), key.dialect, feature)


class TurnCounters:
    """Counts turns: for the operator by outcome, and for users by agent."""

    def __init__(self, metrics: Metrics, usage: AgentUsage) -> None:
        self._metrics = metrics
        self._usage = usage

    def turn_ended(self, view: m.SessionView, ended: m.TurnEnded) -> None:
        self._metrics.turn_ended(ended.outcome, ended.duration_ms / 1000)
        self._usage.turn_ended(view, ended)


class DeletedSessionCleanup:
    """Deletes the workspace and the shares of a deleted session, and what backends keep for it."""

    def __init__(self, workspaces: Workspaces, shares: Shares, backends: Callable[[], Iterable[Backend]]) -> None:
        self._workspaces = workspaces
        self._shares = shares
        self._backends = backends

    async def session_deleted(self, session_id: str) -> None:
        await self._workspaces.forget(session_id)
        await self._shares.forget(session_id)
        for backend in self._backends():
            if isinstance(backend, StatefulBackend):
                await backend.forget(session_id)


def make_span_export(config: Config, version: str) -> "OtlpExport | None":
    """The way of spans to the collector of the settings; the libraries of OpenTelemetry are imported only here."""
    settings = config.telemetry
    if settings.otlp is None:
        return None
    from gateway.telemetry.otlp import OtlpExport

    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    proxy = proxy_for(URL(settings.otlp))
    return OtlpExport(settings.otlp, headers, settings.service, version, None if proxy is None else str(proxy.url))


def adopting_agents(config: Config) -> dict[str, RemoteSettings]:
    """The agents whose conversations are brought over when a client first asks for them."""
    found = {name: RemoteSettings.model_validate(agent.settings)
             for name, agent in config.agents.items() if agent.backend == REMOTE}
    return {name: settings for name, settings in found.items() if settings.adopt}


def adoption_sources(config: Config) -> list[AdoptionSource]:
    """The servers of these agents."""
    found = []
    for name, settings in adopting_agents(config).items():
        make = find_dialect(settings.dialect).past_sessions
        assert make is not None, "the settings were checked"
        found.append(AdoptionSource(
            agent=name, owner=settings.adopt_for, sessions=make(settings.address, ""),
            origin=Origin(dialect=settings.dialect, url=settings.url),
        ))
    return found
