"""The HTTP status that an error of an upstream server stands for."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited

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
    details: dict[str, Any] = {STATUS_DETAIL: status}
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
