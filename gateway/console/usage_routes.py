"""The operation about usage: which clients speak which dialect, and what each would lose in another one."""

from aiohttp import web
from msgspec import Struct
from pydantic import Field

from gateway.errors import Invalid, NotFound
from gateway.http import json_response
from gateway.usage import ClientLosses, client_losses, client_usage, parse_age

from .operations import ConsoleQuery, ConsoleServices, Operation, read_query


class UsageQuery(ConsoleQuery):
    """How far back, and the dialect that clients may move to."""

    since: str = Field("7d", max_length=8)
    to: str | None = None


class UsageReport(Struct, kw_only=True):
    """The clients that were seen since then; each with what it would lose in the dialect `to`."""

    since: float
    now: float
    to: str | None
    clients: list[ClientLosses]


class UsageRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/usage", handler=self.usage, query=UsageQuery, answer=UsageReport,
                      for_admins=True, summary="Show which clients use which dialect, and what a move costs them."),
        ]

    async def usage(self, request: web.Request) -> web.Response:
        services, query = self._services, read_query(request, UsageQuery)
        try:
            since = services.clock() - parse_age(query.since)
        except Invalid as error:
            raise Invalid(f"since: {error.message}", param="since") from None
        clients = client_usage(await services.usage.rows(since), since)
        parts = services.parts()
        if query.to is not None and query.to not in parts.dialects:
            raise NotFound(f"'{query.to}' is not served; there are: {', '.join(parts.dialects)}", param="to")
        found = [ClientLosses(usage=one) for one in clients if query.to in (None, one.dialect)]
        if query.to is not None:
            target, table = parts.dialects[query.to], parts.tables[query.to]
            for name, dialect in parts.dialects.items():
                if name != query.to:
                    found += client_losses(clients, dialect, parts.tables[name], target, table)
        found.sort(key=lambda one: (one.usage.dialect, -one.usage.requests))
        return json_response(UsageReport(since=since, now=services.clock(), to=query.to, clients=found))
