"""Imports into a server that is running: the server itself asks the other one, and tells what it does."""

from collections.abc import Awaitable, Callable, Collection

from msgspec import Struct

from gateway.backends.remote import client_dialects, find_dialect
from gateway.errors import Invalid
from gateway.ports import Clock, PastSessions, RemoteAddress

from .importer import ImportChoice, Importer, ImportLine, ImportSummary, SessionStore
from .past_records import Destination, Origin


class ImportOrder(Struct, frozen=True, kw_only=True):
    """Which server to import from, whose sessions they become, and how."""

    dialect: str
    address: RemoteAddress
    user: str = ""
    """The user at the other server, if the dialect lists by user."""
    owner: str = ""
    agent: str | None = None
    """The agent of sessions whose own agent is not here; None for the first of the settings."""
    choice: ImportChoice = ImportChoice()


class ImportNews(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of what an import tells: about a session, or how the import ended."""

    line: ImportLine | None = None
    done: ImportSummary | None = None
    error: str = ""


class ServerImports:
    """Runs imports into the sessions of this server; several may run at once."""

    def __init__(
        self, store: SessionStore, agents: Callable[[], Collection[str]], default_agent: Callable[[], str],
        clock: Clock,
    ) -> None:
        self._store, self._agents, self._default_agent, self._clock = store, agents, default_agent, clock

    async def run(self, order: ImportOrder, report: Callable[[ImportLine], Awaitable[None]]) -> ImportSummary:
        """Import all that is listed; raises the `GatewayError` that stops the import."""
        source, agents = self._source(order), self._agents()
        try:
            if order.agent is not None and order.agent not in agents:
                raise Invalid(f"there is no agent '{order.agent}'; there are: {', '.join(agents)}", param="agent")
            importer = Importer(
                source, self._store, Origin(dialect=order.dialect, url=order.address.url),
                Destination(owner=order.owner, agent=order.agent or self._default_agent(), agents=frozenset(agents)),
                self._clock, choice=order.choice, report=report,
            )
            await importer.run()
            return importer.summary
        finally:
            await source.close()

    def _source(self, order: ImportOrder) -> PastSessions:
        make = find_dialect(order.dialect).past_sessions if order.dialect in client_dialects() else None
        if make is None:
            raise Invalid(f"sessions of '{order.dialect}' servers cannot be read", param="dialect")
        return make(order.address, order.user)
