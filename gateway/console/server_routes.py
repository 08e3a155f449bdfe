"""The operations about the server: who may do what, agents, dialects with their addresses, limits."""

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.http import CALLER, absolute_url, json_response
from gateway.json_values import JsonObject
from gateway.ports import Framing

from .operations import ConsoleServices, DialectPlace, Operation

NAME = "Dragoman"


class Hello(Struct, kw_only=True):
    """What a page must know before it has a key: whether it needs one."""

    name: str
    version: str
    auth: tuple[str, ...]
    """The ways to authenticate; empty if no key is needed."""


class ShownAgent(Struct, kw_only=True):
    """An agent of the settings."""

    name: str
    title: str | None
    description: str | None
    version: str
    model: str | None
    is_default: bool
    tools: list[m.AgentTool]
    options: tuple[m.AgentOption, ...]
    client_tools: bool
    directives: tuple[m.AgentDirective, ...]


class ShownDialect(Struct, kw_only=True):
    """A served dialect, its address, and command lines to try."""

    name: str
    mount: str
    url: str
    spec: str
    framing: Framing
    examples: list[str]
    table: str


class CallerRights(Struct, kw_only=True):
    """What the caller may do in the console beside reading its own sessions."""

    examine: bool
    keys: bool
    figures: bool
    warnings: bool
    share: bool


class ShownServer(Struct, kw_only=True):
    version: str
    user: str
    role: str
    auth: tuple[str, ...]
    started_at: float
    now: float
    agents: list[ShownAgent]
    dialects: list[ShownDialect]
    limits: JsonObject | None
    """For admins."""
    may: CallerRights


class ServerRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/hello", handler=self.hello, answer=Hello, is_public=True,
                      summary="Say whether a key is needed."),
            Operation(method="GET", path="/server", handler=self.server, answer=ShownServer,
                      summary="Show the agents, the dialects with their addresses, and what the caller may do."),
        ]

    async def hello(self, request: web.Request) -> web.Response:
        return json_response(Hello(name=NAME, version=self._services.version, auth=self._services.auth))

    async def server(self, request: web.Request) -> web.Response:
        caller, services = request[CALLER], self._services
        agents = [self._agent(card) for card in services.parts().cards.values()]
        return json_response(ShownServer(
            version=services.version, user=caller.user, role=caller.role, auth=services.auth,
            started_at=services.started_at, now=services.clock(), agents=agents,
            dialects=[self._dialect(request, place) for place in services.places],
            limits=dict(services.limits()) if caller.is_admin else None,
            may=CallerRights(
                examine=caller.is_admin, keys=caller.is_admin and "keys" in services.auth, figures=caller.is_admin,
                warnings=caller.is_admin, share=True,
            ),
        ))

    def _agent(self, card: m.AgentCard) -> ShownAgent:
        return ShownAgent(
            name=card.name, title=card.title, description=card.description, version=card.version, model=card.model,
            is_default=card.name == self._services.default_agent(), tools=list(card.tools), options=card.options,
            client_tools=card.capabilities.client_tools, directives=card.directives,
        )

    def _dialect(self, request: web.Request, place: DialectPlace) -> ShownDialect:
        parts = self._services.parts()
        dialect, url = parts.dialects[place.name], absolute_url(request, place.mount)
        key = ' -H "Authorization: Bearer $KEY"' if self._services.auth else ""
        return ShownDialect(
            name=place.name, mount=place.mount, url=url, spec=parts.tables[place.name].spec,
            framing=dialect.framings[0], table=f"mappings/{place.name}.yaml",
            examples=dialect.examples(url, self._services.default_agent(), key) if dialect.examples else [],
        )
