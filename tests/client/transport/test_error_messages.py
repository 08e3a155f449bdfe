"""Where a complaint has its words, and how long it asks to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from gateway.client import Redactor, status_error, suppress_statuses, upstream_status
from gateway.client.transport.error_messages import UpstreamErrors, error_text, os_reason, parse_retry_after
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Invalid, Overloaded, RateLimited


def test_how_long_a_header_asks_to_wait() -> None:
    assert parse_retry_after("12") == 12
    assert parse_retry_after("") is None and parse_retry_after("soon") is None and parse_retry_after("-1") is None
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    later = format_datetime(datetime.now(UTC) + timedelta(days=2), usegmt=True)
    assert parse_retry_after(later) in range(86_400, 2 * 86_400 + 1)


@pytest.mark.parametrize(("body", "words"), [
    ("plain", "plain"), ({"error": {"message": "deep"}}, "deep"), ({"error": "flat"}, "flat"),
    ({"detail": "there"}, "there"), ({"message": "here"}, "here"), ([1], ""), ({}, ""), ({"error": {"message": 7}}, ""),
])
def test_where_a_complaint_has_its_words(body: Any, words: str) -> None:
    assert error_text(body) == words


def test_a_reason_is_the_operating_systems() -> None:
    assert os_reason(OSError(111, "Connection refused")) == "Connection refused"
    assert os_reason(ConnectionRefusedError(111, "Connect call failed ('::1', 1)")) == "Connection refused"
    assert os_reason(ValueError()) == "ValueError"


@pytest.mark.parametrize(("body", "words"), [
    (b"<!DOCTYPE HTML>\n<html><head><title>Not\nfound </title>", "a page with the title 'Not found'"),
    (b"<html><body><h1>502</h1>", "a page"),
    (b"<b>is not</b> a page", "<b>is not</b> a page"),
    (b"<html><title>key-of-ours</title>", "a page with the title '***'"),
])
def test_of_a_page_for_people_the_title_is_told(body: bytes, words: str) -> None:
    assert UpstreamErrors("http://there", Redactor(("key-of-ours",))).quote(body) == words


def test_what_came_in_the_place_of_json_is_named() -> None:
    assert UpstreamErrors("http://there", Redactor(())).not_json("text/html").message == (
        "http://there answered with something that is not JSON (text/html); is that its address?")


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
