"""Where a complaint has its words, and how long it asks to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from gateway.upstream.complaints import Complaints, reason_of, seconds_of, words_of


def test_how_long_a_header_asks_to_wait() -> None:
    assert seconds_of("12") == 12
    assert seconds_of("") is None and seconds_of("soon") is None and seconds_of("-1") is None
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert seconds_of(later) in range(60, 91)


@pytest.mark.parametrize(("body", "words"), [
    ("plain", "plain"), ({"error": {"message": "deep"}}, "deep"), ({"error": "flat"}, "flat"),
    ({"detail": "there"}, "there"), ({"message": "here"}, "here"), ([1], ""), ({}, ""), ({"error": {"message": 7}}, ""),
])
def test_where_a_complaint_has_its_words(body: Any, words: str) -> None:
    assert words_of(body) == words


def test_a_reason_is_the_operating_systems() -> None:
    assert reason_of(OSError(111, "Connection refused")) == "Connection refused"
    assert reason_of(ConnectionRefusedError(111, "Connect call failed ('::1', 1)")) == "Connection refused"
    assert reason_of(ValueError()) == "ValueError"


@pytest.mark.parametrize(("body", "words"), [
    (b"<!DOCTYPE HTML>\n<html><head><title>Not\nfound </title>", "a page with the title 'Not found'"),
    (b"<html><body><h1>502</h1>", "a page"),
    (b"<b>is not</b> a page", "<b>is not</b> a page"),
    (b"<html><title>key-of-ours</title>", "a page with the title '***'"),
])
def test_of_a_page_for_people_the_title_is_told(body: bytes, words: str) -> None:
    assert Complaints("http://there", ("key-of-ours",)).quoted(body) == words


def test_what_came_in_the_place_of_json_is_named() -> None:
    assert Complaints("http://there", ()).no_json("text/html").message == (
        "http://there answered with something that is not JSON (text/html); is that its address?")
