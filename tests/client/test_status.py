"""The status of a server's answer in the error that stands for it."""

import pytest

from gateway.client import status_error, suppress_statuses, upstream_status
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Invalid, Overloaded, RateLimited


@pytest.mark.parametrize(("error", "status"), [
    (status_error(404, "no"), 404),
    (BackendFailed("no", details={"retry_after": 3}), None),
    (BackendFailed("no", details={"upstream_status": "404"}), None),
    (ConnectionLost("broke"), None),
])
def test_only_an_answer_has_a_status(error: GatewayError, status: int | None) -> None:
    assert upstream_status(error) == status


def test_these_statuses_end_the_block_and_no_others() -> None:
    with suppress_statuses((404, 405)):
        raise status_error(405, "no such route")
    for error in (status_error(403, "no"), ConnectionLost("broke")):
        with pytest.raises(type(error)), suppress_statuses((404, 405)):
            raise error
    with pytest.raises(ValueError, match="ours"), suppress_statuses((404,)):
        raise ValueError("ours")


def test_an_error_of_any_kind_may_have_a_status() -> None:
    with suppress_statuses((409,)):
        raise Invalid("busy", details={"upstream_status": 409})


@pytest.mark.parametrize(("status", "kind"), [
    (401, BackendFailed), (404, BackendFailed), (429, RateLimited), (500, Overloaded), (503, Overloaded),
    (529, Overloaded),
])
def test_a_status_is_an_error_of_its_kind(status: int, kind: type[GatewayError]) -> None:
    error = status_error(status, "no", 7)
    assert type(error) is kind
    assert error.details == {"upstream_status": status, "retry_after": 7}
    assert status_error(status, "no").details == {"upstream_status": status}
