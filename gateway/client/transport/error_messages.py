"""What an upstream says when it fails: how long to wait, why, and in which words."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson
from yarl import URL

from gateway.client.redaction import redact
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited

MAX_QUOTED = 500
"""So much of an upstream's complaint is passed on."""
_BUSY = frozenset((500, 502, 503, 504, 529))
_PAGE = re.compile(r"\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title>([^<]*)", re.IGNORECASE)


class UpstreamErrors:
    """What one server says of its failures, in our words and without our secrets."""

    def __init__(self, name: str, secrets: tuple[str, ...]) -> None:
        self._name, self._secrets = name, secrets

    def from_status(self, status: int, headers: Mapping[str, str], beginning: bytes) -> GatewayError:
        """What a status of 300 and above means; `headers` are asked in lower case."""
        if status < 400:
            return BackendFailed(
                f"{self._name} answered {status} with a redirect, which is not followed"
                f"{_redirect_hint(headers.get('location', ''))}")
        words = self.quote(beginning)
        message = f"{self._name} answered {status}{': ' + words if words else ''}"
        details: dict[str, Any] = {"upstream_status": status}
        wait = parse_retry_after(headers.get("retry-after", ""))
        if wait is not None:
            details["retry_after"] = wait
        if status == 429:
            return RateLimited(message, details=details)
        if status in _BUSY:
            return Overloaded(message, details=details)
        return BackendFailed(message, details=details)

    def not_events(self, kind: str, beginning: bytes) -> GatewayError:
        words = self.quote(beginning)
        what = f"{self._name} answered with {kind}, not with a stream of events"
        return BackendFailed(f"{what}{': ' + words if words else ''}")

    def not_json(self, kind: str) -> GatewayError:
        return BackendFailed(
            f"{self._name} answered with something that is not JSON ({kind}); is that its address?")

    def quote(self, body: bytes) -> str:
        """What a server says of its failure, in one line."""
        text = _page_title(body.decode(errors="replace"))
        with suppress(orjson.JSONDecodeError):
            text = error_text(orjson.loads(body)) or text
        return redact(" ".join(text.split()), self._secrets)[:MAX_QUOTED]


def _page_title(text: str) -> str:
    """Of a page for people, its title; anything else as it is."""
    if not _PAGE.match(text):
        return text
    title = _TITLE.search(text)
    return f"a page with the title '{title[1].strip()}'" if title else "a page"


def _redirect_hint(location: str) -> str:
    """Which server a redirection points to; its path may hold anything, and is kept to ourselves."""
    try:
        return f" (it points to {URL(location).origin()}; if that is the right address, give it in place of this one)"
    except ValueError:
        return ""


def parse_retry_after(wait: str) -> int | None:
    """What a Retry-After asks for: seconds, or a date; nothing where it is neither."""
    if wait.isascii() and wait.isdigit():
        return int(wait[:9])
    try:
        when = parsedate_to_datetime(wait)
    except (ValueError, OverflowError):
        return None
    left = when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)
    return max(0, round(left.total_seconds()))


def os_reason(error: Exception) -> str:
    """Why, in the words of the operating system where there are any."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    words = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or type(inner).__name__
    if words.startswith("Connect call failed") and isinstance(inner, OSError) and inner.errno:
        return os.strerror(inner.errno)  # where it failed is known; why is what people know by its name
    return str(words)


def error_text(body: Any) -> str:
    """The message of a failure, wherever the usual places have it."""
    for _ in range(3):
        if isinstance(body, str):
            return body
        if not isinstance(body, dict):
            return ""
        body = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
    return body if isinstance(body, str) else ""
