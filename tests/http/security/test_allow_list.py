"""Hosts are compared in one form; an origin is the server's own only if scheme, host and port are."""

import pytest

from gateway.http import AllowList
from gateway.http.security.allow_list import is_same_origin, normalize_host


@pytest.mark.parametrize(("written", "plain"), [
    ("LocalHost.", "localhost"), ("[::1]", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("fe80::1%eth0", "fe80::1"),
    ("::ffff:127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.1", "127.1"),
    ("Gateway.Example", "gateway.example"),
])
def test_a_host_has_one_form(written: str, plain: str) -> None:
    assert normalize_host(written) == plain


@pytest.mark.parametrize(("host", "arrived_at", "known"), [
    ("10.0.0.7:18900", "10.0.0.7", True), ("10.0.0.8", "10.0.0.7", False), ("[2001:db8::1]", "2001:db8:0::1", True),
    ("10.0.0.7", "::ffff:10.0.0.7", True), ("2130706433", "10.0.0.7", False), ("a b", None, False),
    ("machine.lan:1", None, True), ("127.1", None, False),
])
def test_the_address_at_which_the_connection_arrived_is_a_name(host: str, arrived_at: str, known: bool) -> None:
    assert AllowList("machine.lan").allows_host(host, arrived_at) is known


def test_every_name_where_the_settings_say_so() -> None:
    assert AllowList(hosts=["*"]).allows_host("anything.example", None)
    assert not AllowList(hosts=["*"]).allows_host("not a name", None)


@pytest.mark.parametrize(("origin", "scheme", "host", "own"), [
    ("http://a.example", "http", "a.example", True), ("http://a.example", "http", "a.example:80", True),
    ("http://a.example:8080", "http", "a.example", False), ("http://A.example", "http", "a.EXAMPLE", True),
    ("https://a.example", "http", "a.example", True), ("http://a.example", "https", "a.example", False),
    ("https://a.example", "https", "a.example:443", True), ("http://[::1]:9", "http", "[0::1]:9", True),
    ("http://b.example", "http", "a.example", False), ("null", "http", "a.example", False),
    ("http://a.example/path", "http", "a.example", False), ("http://", "http", "", False),
])
def test_which_origin_is_the_servers_own(origin: str, scheme: str, host: str, own: bool) -> None:
    assert is_same_origin(origin, scheme, host) is own


def test_pages_of_this_machine_can_be_listed_beside_others() -> None:
    both = AllowList("0.0.0.0", origins=["loopback", "https://App.example/"])
    assert all(map(both.allows_origin, ("http://localhost:1", "tauri://localhost", "https://app.example")))
    assert not both.allows_origin("https://app.example:8443")
    assert not both.allows_origin("loopback")
