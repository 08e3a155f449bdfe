"""The examiners reach servers through the proxy of a company."""

import pytest
from yarl import URL

from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served
from conformance.kit.proxy import proxy_for
from conformance.kit.runner import obstacle
from conformance.kit.server_probe import locate
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome
from tests.support.client.forward_proxy import forward_proxy
from tests.support.conformance.examinations import KEY, PATIENT, examine_at, suited

PROXY = "http://proxy.corp:3128"


@pytest.mark.parametrize(("url", "exceptions"), [
    ("http://api.test", ""), ("https://api.test:8443/x", "other.test,api.test:443"), ("http://10.0.0.7", "10.1.0.0/16"),
    ("http://notapi.test", "api.test"),
])
def test_reached_through_the_proxy(url: str, exceptions: str) -> None:
    environ = {"HTTP_PROXY": PROXY, "HTTPS_PROXY": "proxy.corp:3128", "NO_PROXY": exceptions}
    assert proxy_for(url, environ) == URL(PROXY)


@pytest.mark.parametrize(("url", "exceptions"), [
    ("http://localhost:18900", ""), ("http://127.0.0.9", ""), ("http://[::1]:1", ""), ("https://a.localhost", ""),
    ("http://api.test", "*"), ("http://api.test", ".test"), ("http://a.api.test", "x, api.test"),
    ("https://api.test:8443", "api.test:8443"), ("http://10.1.2.3", "10.0.0.0/8"), ("http://10.1.2.3", "10.1.2.3"),
])
def test_reached_directly(url: str, exceptions: str) -> None:
    assert proxy_for(url, {"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY, "no_proxy": exceptions}) is None
    assert proxy_for(url, {}) is None


@pytest.mark.parametrize("given", ["https://a:s3cret@proxy.corp", "socks5://proxy.corp:1080", "http://", "http://a:b:c"])
async def test_what_is_no_address_of_a_proxy_is_said_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, given: str,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", given)
    told = await obstacle("http://api.test", PATIENT)
    assert told == ("HTTP_PROXY is not the address of a proxy: expected http://host:port; "
                    "https:// and socks5:// are not supported")


async def test_a_server_that_only_the_proxy_can_find_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    server = AapServer()
    profile = suited("aap", server)
    async with served(server) as url, forward_proxy(monkeypatch, "dragon:s3cret-pass") as proxy:
        url = url.replace("127.0.0.1", "api.test")
        assert await obstacle(url, PATIENT) is None
        assert (await locate(load_suite("aap"), Target(url, KEY, PATIENT))).url == url
        report = await examine_at("aap", url, profile, "AAP-META-01", "AAP-SESS-01", within=PATIENT)
    assert {case.outcome for case in report.results} == {Outcome.PASSED}
    assert proxy.asked and all(f" {url}/" in line for line in proxy.asked)
