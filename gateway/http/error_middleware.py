"""Turns errors into HTTP responses in the format of the dialect that the client uses."""

from collections.abc import Callable

from aiohttp import web

import gateway.model as m
from gateway.errors import DISK_FULL, GatewayError, Overloaded, is_disk_full
from gateway.logging import SampledLogger, get_logger

from .backpressure import RETRY_SECONDS
from .json_io import json_response
from .request import request_id_of
from .security import Handler, retry_after_seconds

log = get_logger("dragoman.http")

ErrorEncoder = Callable[[str, GatewayError], tuple[int, object]]
"""(path, error) → status and body of the dialect that is mounted at the path."""

_CODES = {code.status: code for code in m.FaultCode} | {405: m.FaultCode.INVALID, 415: m.FaultCode.INVALID}


class HttpStatusError(GatewayError):
    """An error of the HTTP server itself, with the code that fits its status."""

    def __init__(self, error: web.HTTPException) -> None:
        super().__init__(error.reason or error.text or "refused")
        self.code = _CODES.get(error.status, m.FaultCode.INVALID)  # type: ignore[misc]
        self.status = error.status


class ErrorMiddleware:
    """A middleware that answers every error in the format of the dialect."""

    def __init__(self, spell: ErrorEncoder) -> None:
        self._spell = spell
        self._sampled = SampledLogger(log)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except GatewayError as error:
            return self._answer(request, error)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            response = self._answer(request, _error_of_http(request, error))
            response.set_status(error.status)
            response.headers.update({name: error.headers[name] for name in ("Allow",) if name in error.headers})
            return response
        except ConnectionError:
            raise  # the client has disconnected
        except Exception as error:  # a bug: the client gets a 500 of its dialect, the server log gets the traceback
            if is_disk_full(error):
                self._sampled.warning("disk_full", method=request.method, path=request.path)
                return self._answer(request, Overloaded(DISK_FULL))
            log.exception("request_failed", method=request.method, path=request.path)
            return self._answer(request, GatewayError("an internal error occurred"))

    def _answer(self, request: web.Request, error: GatewayError) -> web.Response:
        error.request_id = request_id_of(request)
        status, body = self._spell(request.path, error)
        response = json_response(body, status)
        if error.code in (m.FaultCode.OVERLOADED, m.FaultCode.RATE_LIMITED):
            response.headers["Retry-After"] = str(retry_after_seconds(error, RETRY_SECONDS))
        if not request.content.is_eof():
            response.force_close()  # the rest of the body would be read as a request
        return response


def _error_of_http(request: web.Request, error: web.HTTPException) -> HttpStatusError:
    refused = HttpStatusError(error)
    if isinstance(error, web.HTTPMethodNotAllowed):
        refused.message = f"{request.method} is not possible here; possible: {', '.join(sorted(error.allowed_methods))}"
    elif isinstance(error, web.HTTPNotFound):
        refused.message = f"there is nothing at {request.path}"
    return refused
