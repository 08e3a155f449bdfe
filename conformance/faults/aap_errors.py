"""Servers that say no in the wrong way."""

from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel

from conformance.faults.fault import fault
from conformance.faults.reference import ReferenceServer

UNKNOWN = "errors.unknown_things_are_said_in_words"
WRONG = "errors.wrong_requests_are_said_in_words"
MALFORMED = "errors.malformed_bodies_are_said_in_words"
KEY = "errors.a_wrong_key_is_said_in_words"


@fault("AAP-ERR-01", "AAP-SESS-02", cases=f"{UNKNOWN} {WRONG} {MALFORMED} {KEY} sessions.the_agent_must_be_known")
class RefusalInPlainText(ReferenceServer):
    """Refusals are plain text."""

    def refusal(self, status: int, words: str) -> web.Response:
        return web.Response(text=words, status=status)


@fault("AAP-ERR-01", cases=f"{UNKNOWN} {WRONG} {MALFORMED} {KEY}")
class RefusalAsObject(ReferenceServer):
    """The error is an object instead of a string."""

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"error": {"message": words}}, status=status)


@fault("AAP-ERR-01", cases=MALFORMED)
class MalformedIs500(ReferenceServer):
    """A body that is not JSON breaks the server."""

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        try:
            orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            raise web.HTTPInternalServerError() from None
        return await super().read(request, model)


@fault("AAP-ERR-01", cases=KEY)
class WrongKeyIs404(ReferenceServer):
    """A wrong key is answered as if there were nothing."""

    def refusal(self, status: int, words: str) -> web.Response:
        return super().refusal(404 if status == 401 else status, words)
