"""Servers whose answers over REST are wrapped wrongly, or not at all."""

from typing import Any

import orjson
from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.zenflux.front import Handler
from conformance.faults.zenflux.memory import Body
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.zenflux.management import CASES, VOICE_CASES

MANAGED = (*CASES, *VOICE_CASES)
MANAGED_IDS = tuple(name for case in MANAGED for name in case.requirements)
MANAGED_NAMES = " ".join(case.name for case in MANAGED)
HEALTH = "health.the_server_is_healthy health.the_server_is_alive health.the_server_is_measured"
HEALTH_IDS = ("ZF-HTTP-3.13-01", "ZF-HTTP-3.13-02", "ZF-HTTP-3.13-03")
BAD = "chat.bad_bodies_are_errors_in_the_wrapper"
UNKNOWN = "chat.unknown_things_are_errors_in_the_wrapper"
WRAPPED = "chat.every_answer_is_wrapped"
OPENS = "frames.the_endpoint_opens"
STATUS = "sessions.the_status_says_what_the_code_says"


@fault("ZF-GEN-03", "ZF-GEN-04", "ZF-GEN-01", *HEALTH_IDS, cases=f"{WRAPPED} {BAD} {UNKNOWN} {OPENS} {HEALTH}")
class Unwrapped(ZenfluxServer):
    """Answers are bare data."""

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        body = orjson.dumps({"detail": message} if data is None else data)
        return web.Response(body=body, status=code, content_type="application/json")


@fault("ZF-GEN-03", *HEALTH_IDS, cases=f"{WRAPPED} {HEALTH}")
class CodeIsZero(ZenfluxServer):
    """The code of a good answer is 0."""

    def reply(self, data: Any) -> web.Response:
        return web.json_response({"code": 0, "message": "success", "data": data})


@fault("ZF-GEN-04", cases=f"{BAD} {UNKNOWN}")
class ErrorsWithData(ZenfluxServer):
    """The data of an error is an object."""

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"code": status, "message": words, "data": {}}, status=status)


@fault("ZF-GEN-04", cases=BAD)
class BadBodiesBreak(ZenfluxServer):
    """A body that makes no sense breaks the server."""

    async def read(self, request: web.Request) -> Body:
        try:
            return dict(orjson.loads(await request.read()))
        except (ValueError, TypeError):
            raise web.HTTPInternalServerError from None


@fault("G-ZF-23", cases=STATUS)
class AlwaysTwoHundred(ZenfluxServer):
    """Errors have the status 200."""

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"code": status, "message": words, "data": None})


@fault("G-ZF-22", cases="paging.wrapped_objects_are_laid_out_too")
class OnlyWrapped(ZenfluxServer):
    """What is wrapped is nowhere else."""

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        return web.json_response({"code": code, "message": message, "data": data}, status=code)


@fault("G-ZF-34", cases="sessions.no_key_is_asked_for")
class AsksForAKey(ZenfluxServer):
    """Without a key nothing is answered."""

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if "Authorization" not in request.headers:
            return self.refusal(401, "A key, please.")
        return await super().answer(request, handler)


@fault(*MANAGED_IDS, cases=MANAGED_NAMES)
class ManagementInHtml(ZenfluxServer):
    """Management answers with pages."""

    async def manage(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html></html>", content_type="text/html")
