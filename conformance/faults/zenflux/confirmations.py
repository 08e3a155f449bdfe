"""Confirmations of the ZenFlux reference server: what its users are asked, and their answers."""

from typing import Any

from aiohttp import web

from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Refusal, State


class Confirmations:
    """Answers requests below /human-confirmation."""

    def __init__(self, state: State, front: Front, chats: Chats) -> None:
        self.state = state
        self.front = front
        self.chats = chats

    def pending(self) -> list[Body]:
        requests = [session.request for session in self.state.sessions.values() if session.request]
        return [request.content for request in requests if not request.answer.done()]

    async def get_pending(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.pending())

    async def get_confirmation(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.chats.request(request.match_info["id"]).content)

    async def post_confirmation(self, request: web.Request) -> web.StreamResponse:
        response = self.response(await self.front.read(request))
        asked = self.chats.request(request.match_info["id"])
        asked.answer.set_result(response)
        return self.front.reply({"request_id": asked.id, "response": response})

    def response(self, body: Body) -> Any:
        if not isinstance(body.get("response"), str | list | dict):
            raise Refusal(400, "VALIDATION_ERROR", "response is required.")
        return body["response"]

    async def delete_confirmation(self, request: web.Request) -> web.StreamResponse:
        asked = self.chats.request(request.match_info["id"])
        asked.answer.set_result("cancelled")
        return self.front.reply({"request_id": asked.id})
