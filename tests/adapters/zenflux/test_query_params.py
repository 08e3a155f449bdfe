"""Query parameters within their bounds."""

import pytest
from aiohttp.test_utils import make_mocked_request

from adapters.zenflux import wire
from gateway.errors import Invalid


def asked(query: str) -> object:
    return wire.page_params(make_mocked_request("GET", f"/?{query}"), 20, 100)


@pytest.mark.parametrize(("query", "page"), [
    ("", (20, 0)), ("limit=1", (1, 0)), ("limit=100&offset=7", (100, 7)), ("limit=&offset=", (20, 0)),
    ("limit=007", (7, 0)),
])
def test_a_page(query: str, page: tuple[int, int]) -> None:
    assert asked(query) == page


@pytest.mark.parametrize("query", [
    "limit=0", "limit=101", "limit=-1", "limit=--1", "limit=1e3", "limit=+5", "limit=%20", "limit=²", "offset=-1",
    "offset=1000000001", f"limit={'9' * 400}",
])
def test_no_page(query: str) -> None:
    with pytest.raises(Invalid):
        asked(query)


def test_words_and_titles() -> None:
    request = make_mocked_request("GET", "/?order=asc&title=%20Trip%20")
    assert wire.choice_param(request, "order", "desc", "asc") == "asc"
    assert wire.choice_param(request, "other", "desc", "asc") == "desc"
    assert wire.title_param(request) == "Trip"
    assert wire.title_param(make_mocked_request("GET", "/?title=%20")) is None
    assert wire.title_param(make_mocked_request("GET", "/")) is None
    with pytest.raises(Invalid):
        wire.choice_param(request, "order", "up", "down")
