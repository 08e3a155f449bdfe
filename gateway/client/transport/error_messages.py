"""Error responses of upstream servers as `GatewayError`: message, status, and time to wait."""

import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import orjson
from yarl import URL

from gateway.client.redaction import Redactor
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited
from gateway.json_values import JsonObject

STATUS_DETAIL = "upstream_status"
"""The key of the status in the details of an error."""
TOO_MANY_REQUESTS = 429
BUSY_STATUSES = frozenset((500, 502, 503, 504, 529))
"""The statuses of a server that may serve the request later."""
NOT_SERVED_STATUSES = (404, 405, 501)
"""The statuses of a server that does not have a route."""


def status_error(status: int, message: str, retry_after: int | None = None) -> GatewayError:
    """The error that this status stands for; `retry_after` are the seconds that the server wants us to wait."""
    kind = RateLimited if status == TOO_MANY_REQUESTS else Overloaded if status in BUSY_STATUSES else BackendFailed
    details: JsonObject = {STATUS_DETAIL: status}
    return kind(message, details=details if retry_after is None else {**details, "retry_after": retry_after})


def upstream_status(error: GatewayError) -> int | None:
    """The status of the server's response; None if no response caused the error."""
    found = (error.details or {}).get(STATUS_DETAIL)
    return found if isinstance(found, int) else None


@contextmanager
def suppress_statuses(statuses: Container[int]) -> Iterator[None]:
    """End the block without an error if a server answers with one of these statuses."""
    try:
        yield
    except GatewayError as error:
        if upstream_status(error) not in statuses:
            raise


_XML_ERROR = re.compile(r"<Code>([^<]*)</Code>\s*(?:<Message>([^<]*)</Message>)?")
_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title>([^<]*)", re.IGNORECASE)


class UpstreamErrors:
    """Makes errors from the responses of one server, without our secrets."""

    def __init__(self, name: str, redactor: Redactor) -> None:
        self._name, self._redactor = name, redactor

    def from_status(self, status: int, headers: Mapping[str, str], beginning: bytes) -> GatewayError:
        """The error for a status of 300 or above; the names of `headers` are in lower case."""
        if status < 400:
            return BackendFailed(
                f"{self._name} answered {status} with a redirect, which is not followed"
                f"{_redirect_hint(headers.get('location', ''))}")
        words = self.quote(beginning)
        message = f"{self._name} answered {status}{': ' + words if words else ''}"
        return status_error(status, message, parse_retry_after(headers.get("retry-after", "")))

    def not_events(self, kind: str, beginning: bytes) -> GatewayError:
        words = self.quote(beginning)
        what = f"{self._name} answered with {kind}, not with a stream of events"
        return BackendFailed(f"{what}{': ' + words if words else ''}")

    def not_json(self, kind: str) -> GatewayError:
        return BackendFailed(
            f"{self._name} answered with something that is not JSON ({kind}); is that its address?")

    def quote(self, body: bytes) -> str:
        """The error message in a body, in one line."""
        text = _page_title(body.decode(errors="replace"))
        with suppress(orjson.JSONDecodeError):
            text = error_text(orjson.loads(body)) or text
        return self._redactor.quote(text)


def _page_title(text: str) -> str:
    """The title of an HTML page, the code and the message of an XML error; any other text as it is."""
    if found := _XML_ERROR.search(text):
        return ": ".join(filter(None, found.groups()))
    if not _PAGE.match(text):
        return text
    title = _TITLE.search(text)
    return f"a page with the title '{title[1].strip()}'" if title else "a page"


def _redirect_hint(location: str) -> str:
    """The server that a redirect points to; its path is not shown, since it may contain secrets."""
    try:
        return f" (it points to {URL(location).origin()}; if that is the right address, give it in place of this one)"
    except ValueError:
        return ""


def parse_retry_after(wait: str) -> int | None:
    """The seconds of a Retry-After header, which is a number or a date; None for anything else."""
    if wait.isascii() and wait.isdigit():
        return int(wait[:9])
    try:
        when = parsedate_to_datetime(wait)
    except (ValueError, OverflowError):
        return None
    left = when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)
    return max(0, round(left.total_seconds()))


def os_reason(error: Exception) -> str:
    """The reason of an error, in the words of the operating system if there are any."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    words = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or type(inner).__name__
    if words.startswith("Connect call failed") and isinstance(inner, OSError) and inner.errno:
        return os.strerror(inner.errno)  # the message names the address; the reason is enough
    return str(words)


def error_text(body: object) -> str:
    """The error message of a JSON body, from the usual fields."""
    for _ in range(3):
        if isinstance(body, str):
            return body
        if not isinstance(body, dict):
            return ""
        body = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
    return body if isinstance(body, str) else ""
