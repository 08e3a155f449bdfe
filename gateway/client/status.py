"""The HTTP status that an error of an upstream server stands for."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

from gateway.errors import GatewayError

STATUS_DETAIL = "upstream_status"
"""The key of the status in the details of an error."""
NOT_SERVED_STATUSES = (404, 405, 501)
"""The statuses of a server that does not have a route."""


def status_details(status: int) -> dict[str, Any]:
    """The details of an error that stands for this status."""
    return {STATUS_DETAIL: status}


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
