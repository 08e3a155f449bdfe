"""Executes a request with an Idempotency-Key once, and gives the stored response to every repetition."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from hashlib import sha256

from aiohttp import web

from gateway.errors import Conflict, GatewayError, Invalid, OutcomeUnknown
from gateway.logging import get_logger
from gateway.ports import ANONYMOUS, CURRENT_IDEMPOTENCY_KEY, IdempotencyKey, ResponseStore, StoredResponse
from gateway.supervision import take_error

from .file_transfer import FORM_DIGEST, digest_form
from .json_io import read_bytes
from .security import OWNER, Handler, mark, policy_of

log = get_logger("dragoman.idempotency")

KEY_HEADERS = ("Idempotency-Key", "X-Idempotency-Key")
REPLAYED_HEADER = "Idempotent-Replayed"
METHODS_WITH_KEY = ("POST", "DELETE")
MAX_KEY_LENGTH = 255


@dataclass(slots=True)
class RunningRequest:
    """A request with a key that is running: its content, as soon as it is known, and its response."""

    digest: str = ""
    answer: asyncio.Future[StoredResponse | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future())

    def finish(self, answer: StoredResponse | None, failure: OutcomeUnknown | None) -> None:
        """Give those who wait the response, or the error; with neither the next of them executes the request."""
        if failure is None:
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(failure)
            self.answer.exception()  # perhaps nobody waits


class Idempotency:
    """The stored responses of requests with a key, by owner and path.

    Only responses of executed requests are stored. A refused request changed nothing, so it may be repeated with the
    same key; a stream is not stored, because it cannot be sent twice.

    Guaranteed: of concurrent requests with one key, at one server or at several, one is executed, and the others wait
    for its response. Its client gets the response only after the response is stored, so a client that has seen a
    response gets it again for as long as responses are stored, even from a restarted server if its storage is durable.

    Not guaranteed: the effect and the response are two commits, one right after the other. If the server dies between
    them, or is cut off from the shared storage for longer than its claim lasts, the effect is stored and the response
    is not; the client is told that the outcome is unknown, or nothing, and its retry is a new request. What a session
    accepts is accepted once even then (`CURRENT_IDEMPOTENCY_KEY`), but something may be created twice. The same happens
    if the server can store the effect and then, for lack of space, not the response: the client gets the response, and
    the server log has `idempotent_response_not_stored`.
    """

    def __init__(self, answers: ResponseStore) -> None:
        self._answers = answers
        self._going: dict[IdempotencyKey, RunningRequest] = {}

    def routes(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """Return the routes; those that change something are wrapped, unless they are wrapped already."""
        return [
            web.RouteDef(route.method, route.path, self.wrap(route.handler), route.kwargs)
            if route.method in METHODS_WITH_KEY and not policy_of(route.handler).is_idempotent else route
            for route in routes
        ]

    def wrap(self, handler: Handler) -> Handler:
        @wraps(handler)
        async def wrapped(request: web.Request) -> web.StreamResponse:
            key = _key(request)
            if key is None:
                return await handler(request)
            place = (request.get(OWNER, ANONYMOUS), request.method, request.rel_url.raw_path, key)
            return await self._once(place, request, handler)

        return mark(wrapped, is_idempotent=True)

    # -- the first request and its repetitions --------------------------------------------------------------------

    async def _once(self, place: IdempotencyKey, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Execute a request once; a multipart body is too large to be read before it is known to be the first."""
        digest = "" if _is_multipart(request) else await _digest(request)
        while (entry := self._going.get(place)) is not None:
            digest = digest or await digest_form(request)
            _check_same_request(entry.digest, digest, place)
            answer = await asyncio.shield(entry.answer)
            _check_same_request(entry.digest, digest, place)
            if answer is not None:
                return _replay_response(answer)
            if _is_multipart(request):
                raise Conflict("the first request with this Idempotency-Key failed; send it again")
        entry = self._going[place] = RunningRequest()
        # A client that disconnects does not cancel its request: its retry gets the response.
        task = asyncio.ensure_future(self._first(place, entry, digest, request, handler))
        task.add_done_callback(take_error)
        return await asyncio.shield(task)

    async def _first(
        self, place: IdempotencyKey, entry: RunningRequest, digest: str, request: web.Request, handler: Handler,
    ) -> web.StreamResponse:
        """Execute the first of the requests that are running now; an earlier one may have a stored response."""
        answer, is_claimed, failure = None, False, None
        try:
            await self._answers.claim(place)
            is_claimed = True
            answer = await self._answers.find(place)
            if answer is not None:
                entry.digest = answer.digest
                _check_same_request(answer.digest, digest or await digest_form(request), place)
                return _replay_response(answer)
            entry.digest = digest
            CURRENT_IDEMPOTENCY_KEY.set(place)  # for this task alone
            response = await handler(request)
            entry.digest = request.get(FORM_DIGEST, digest)
            answer = _storable_response(response, entry.digest)
            is_claimed = not await self._keep(place, answer)
            return response
        except OutcomeUnknown as error:
            failure = error
            raise
        finally:
            with suppress(GatewayError):  # a claim that cannot be released runs out
                if is_claimed:
                    await self._answers.release(place)
            del self._going[place]
            entry.finish(answer, failure)

    async def _keep(self, place: IdempotencyKey, answer: StoredResponse | None) -> bool:
        """Store the response; return whether it is stored. The request was executed even if it is not."""
        try:
            if answer is not None:
                await self._answers.store(place, answer)
                return True
        except OutcomeUnknown:
            raise  # the same request may be executed again from now on: its client must not rely on this response
        except GatewayError as error:
            log.warning("idempotent_response_not_stored", error=error.message)
        return False


def _is_multipart(request: web.Request) -> bool:
    return request.content_type.startswith("multipart/")


def _key(request: web.Request) -> str | None:
    key = next((request.headers[name] for name in KEY_HEADERS if request.headers.get(name)), None)
    if key is not None and len(key) > MAX_KEY_LENGTH:
        raise Invalid(f"Idempotency-Key: at most {MAX_KEY_LENGTH} characters", param=KEY_HEADERS[0])
    if key is not None and any("\ud800" <= sign <= "\udfff" for sign in key):
        raise Invalid("Idempotency-Key: not UTF-8", param=KEY_HEADERS[0])
    return key


async def _digest(request: web.Request) -> str:
    return sha256(request.query_string.encode() + b"\0" + await read_bytes(request)).hexdigest()


def _check_same_request(first: str, now: str, place: IdempotencyKey) -> None:
    if first not in ("", now):
        raise Conflict(f"the Idempotency-Key '{place[-1]}' was used for another request", param=KEY_HEADERS[0])


def _storable_response(response: web.StreamResponse, digest: str) -> StoredResponse | None:
    if not isinstance(response, web.Response) or response.status >= 400:
        return None
    body = response.body
    if not isinstance(body, bytes | bytearray | None):
        return None
    content_type = response.headers.get("Content-Type", "")
    return StoredResponse(digest=digest, status=response.status, content_type=content_type, body=bytes(body or b""))


def _replay_response(answer: StoredResponse) -> web.Response:
    headers = {REPLAYED_HEADER: "true"} | ({"Content-Type": answer.content_type} if answer.body else {})
    return web.Response(status=answer.status, body=answer.body, headers=headers)
