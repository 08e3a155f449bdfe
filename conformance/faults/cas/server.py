"""The CAS reference server: small, correct, in memory, whose every rule is a step that a fault can change."""

from aiohttp import web

from conformance.faults.cas.front import LARGEST_BODY, Handler
from conformance.faults.cas.streams import Threads
from conformance.faults.refusal import Refusal


class CasServer(Threads):
    """All of CAS, with an agent that knows the directives."""

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.answer(request, handler)

        app = web.Application(middlewares=[answering], client_max_size=LARGEST_BODY)
        app.on_response_prepare.append(self.stamp)
        parts = (self.agent_routes, self.session_routes, self.event_routes, self.stream_routes, self.resource_routes)
        for route in (route for part in parts for route in part()):
            app.router.add_route(route.method, self.mount + route.path, route.handler)
        return app

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left of what clients made."""
        return not self.sessions and not self.agents and not any(self.things.values())


SERVER, REFUSAL = CasServer, Refusal
