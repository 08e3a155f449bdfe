"""Runs one import: sessions and what is beside them, into the stores of a server or of a command."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack

from msgspec import Struct
from msgspec.structs import replace

from gateway.backends.remote import client_dialects, find_dialect
from gateway.errors import Invalid
from gateway.ports import Clock, PastResources, PastSessions, RemoteAddress, ResourceGroup

from .importer import ImportChoice, Importer, ImportLine, ImportSummary, SessionStore
from .past_records import Destination, Origin
from .resource_importer import ResourceImporter
from .resource_lines import ResourceLine
from .resource_store import ResourceStore

SESSIONS = "sessions"
PARTS = (SESSIONS, *map(str, ResourceGroup))
"""What can be imported."""


class ImportOrder(Struct, frozen=True, kw_only=True):
    """Which server to import from, whose sessions they become, and how."""

    dialect: str
    address: RemoteAddress
    user: str = ""
    """The user at the other server, if the dialect lists by user."""
    owner: str = ""
    agent: str | None = None
    """The agent of sessions whose own agent is not here; None for the first of the settings."""
    parts: tuple[str, ...] = PARTS
    """Which of `PARTS` are imported."""
    choice: ImportChoice = ImportChoice()


Line = ImportLine | ResourceLine


class ImportNews(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of what an import tells: about a session or another thing, or how the import ended."""

    line: ImportLine | None = None
    resource: ResourceLine | None = None
    done: ImportSummary | None = None
    error: str = ""


class ServerImports:
    """Runs imports into these stores; several may run at once. Without a store, the things of it are left out."""

    def __init__(
        self, sessions: SessionStore | None, resources: ResourceStore | None, agents: Callable[[], Collection[str]],
        default_agent: Callable[[], str], clock: Clock,
    ) -> None:
        self._sessions, self._resources = sessions, resources
        self._agents, self._default_agent, self._clock = agents, default_agent, clock

    async def run(self, order: ImportOrder, report: Callable[[Line], Awaitable[None]]) -> ImportSummary:
        """Import all that is listed; raises the `GatewayError` that stops the import."""
        agents, origin = self._agents(), Origin(dialect=order.dialect, url=order.address.url)
        if order.agent is not None and order.agent not in agents:
            raise Invalid(f"there is no agent '{order.agent}'; there are: {', '.join(agents)}", param="agent")
        if unknown := set(order.parts) - set(PARTS):
            raise Invalid(f"'{min(unknown)}' cannot be imported; there are: {', '.join(PARTS)}", param="parts")
        summary = ImportSummary({}, {})
        async with AsyncExitStack() as stack:
            sessions, resources = self._sources(order)
            stack.push_async_callback(sessions.close)
            if resources is not None:
                stack.push_async_callback(resources.close)
            if self._sessions is not None and SESSIONS in order.parts:
                importer = Importer(
                    sessions, self._sessions, origin, Destination(
                        owner=order.owner, agent=order.agent or self._default_agent(), agents=frozenset(agents)),
                    self._clock, choice=order.choice, report=report,
                )
                await importer.run()
                summary = importer.summary
            groups = [group for group in ResourceGroup if group in order.parts]
            if self._resources is not None and resources is not None and groups:
                others = ResourceImporter(
                    resources, self._resources, origin, order.owner, agents, rate=order.choice.rate,
                    is_dry=order.choice.is_dry, report=report,
                )
                await others.run(groups)
                summary = replace(summary, groups=others.groups)
        return summary

    def _sources(self, order: ImportOrder) -> tuple[PastSessions, PastResources | None]:
        dialect = find_dialect(order.dialect) if order.dialect in client_dialects() else None
        if dialect is None or dialect.past_sessions is None:
            raise Invalid(f"sessions of '{order.dialect}' servers cannot be read", param="dialect")
        resources = dialect.past_resources
        return (dialect.past_sessions(order.address, order.user),
                resources(order.address, order.user) if resources is not None else None)
