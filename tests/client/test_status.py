"""The status of a server's answer in the error that stands for it."""

import pytest

from gateway.client import status_details, suppress_statuses, upstream_status
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Invalid


@pytest.mark.parametrize(("error", "status"), [
    (BackendFailed("no", details=status_details(404)), 404),
    (BackendFailed("no", details={"retry_after": 3}), None),
    (BackendFailed("no", details={"upstream_status": "404"}), None),
    (ConnectionLost("broke"), None),
])
def test_only_an_answer_has_a_status(error: GatewayError, status: int | None) -> None:
    assert upstream_status(error) == status


def test_these_statuses_end_the_block_and_no_others() -> None:
    with suppress_statuses((404, 405)):
        raise BackendFailed("no such route", details=status_details(405))
    for error in (BackendFailed("no", details=status_details(403)), ConnectionLost("broke")):
        with pytest.raises(type(error)), suppress_statuses((404, 405)):
            raise error
    with pytest.raises(ValueError, match="ours"), suppress_statuses((404,)):
        raise ValueError("ours")


def test_an_error_of_any_kind_may_have_a_status() -> None:
    with suppress_statuses((409,)):
        raise Invalid("busy", details=status_details(409))
