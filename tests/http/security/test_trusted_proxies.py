"""What `X-Forwarded-*` says is believed from trusted proxies, and of their chain no more than they vouch for."""

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from gateway.http import TrustedProxies
from gateway.http.security.trusted_proxies import ExternalAddress


class Transport:
    """A connection from this address."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": (self._peer, 1)}.get(name, default)


def reached(peer: str, trusted: list[str], **headers: str) -> ExternalAddress:
    named = {"Host": "inside:18900", **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = make_mocked_request("GET", "/", headers=named, transport=Transport(peer))
    return TrustedProxies(trusted).external_address(request)


TOLD = {"X_Forwarded_For": "203.0.113.9", "X_Forwarded_Proto": "https", "X_Forwarded_Host": "gateway.example"}


@pytest.mark.parametrize(("peer", "trusted", "believed"), [
    ("10.0.0.5", ["10.0.0.0/8"], True), ("::ffff:10.0.0.5", ["10.0.0.5"], True), ("fd00::1", ["fd00::/8"], True),
    ("10.0.0.5", [], False), ("192.0.2.1", ["10.0.0.0/8"], False), ("", ["0.0.0.0/0"], False),
])
def test_only_a_trusted_proxy_is_believed(peer: str, trusted: list[str], believed: bool) -> None:
    told, direct = (
        ExternalAddress("https", "gateway.example", "203.0.113.9"),
        ExternalAddress("http", "inside:18900", peer),
    )
    assert reached(peer, trusted, **TOLD) == (told if believed else direct)


@pytest.mark.parametrize(("chain", "client"), [
    ("6.6.6.6, 203.0.113.9", "203.0.113.9"), ("6.6.6.6, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
    ("10.0.0.9", "10.0.0.9"), ("203.0.113.9:4711", "203.0.113.9"), ("[2001:db8::9]:1", "2001:db8::9"),
    ("no address", "10.0.0.5"), ("6.6.6.6, unknown", "10.0.0.5"), (",", "10.0.0.5"),
])
def test_the_client_is_the_last_whom_no_proxy_is(chain: str, client: str) -> None:
    assert reached("10.0.0.5", ["10.0.0.0/8"], X_Forwarded_For=chain).address == client


def test_the_nearest_proxy_has_the_last_word() -> None:
    hosts = "evil.example, gateway.example"
    told = reached("10.0.0.5", ["10.0.0.5"], X_Forwarded_Proto="gopher", X_Forwarded_Host=hosts)
    assert told[:2] == ("http", "gateway.example")
