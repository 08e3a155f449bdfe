"""Which addresses clients may name, as text and as IP addresses, and what the operator adds to them."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import pytest

from gateway.client import AddressPolicy, AddressRefused, GuardedResolver
from gateway.client.address_policy import ip_literal, is_public
from gateway.errors import Invalid

PUBLIC = AddressPolicy()
NOT_PUBLIC = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.8", "198.18.0.1", "192.0.2.1", "224.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "64:ff9b:1::1",
    "2002:7f00:1::", "2001:0:7f00:1::", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_of_machines_and_networks_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    host = f"[{address}]" if ":" in address else address
    assert PUBLIC.problem(f"http://{host}/x") is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_addresses_of_the_internet_are(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("host", [
    "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "①②⑦.0.0.1", "127.0.0.1.", "0",
    "LOCALHOST", "localhost.", "a.localhost", "redis", "printer.local", "metadata.google.internal", "router.home.arpa",
    "%31%32%37.0.0.1", "127。0。0。1", "bücher.example", "-x-.example", "a..b.example",
])
def test_hosts_in_disguise_are_refused(host: str) -> None:
    assert PUBLIC.problem(f"http://{host}/") is not None


@pytest.mark.parametrize("url", [
    "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/", "ssh://git@example.com/",
    "javascript:alert(1)", "data:,x", "//example.com/", "example.com", "", "http://", "http:///x", "http://:80/", "http://example.com:0/",
    "http://example.com:99999/", "http://[::1/", "http://a@b@10.0.0.1/", "http://example.com\\@10.0.0.1/",
    "http://exam ple.com/", "http://example.com/\n", "\thttp://example.com/",
])
def test_only_http_and_https_with_a_host_are_addresses(url: str) -> None:
    with pytest.raises(Invalid, match=r"^files\.0\.file_url: ") as refused:
        PUBLIC.check(url, "files.0.file_url")
    assert refused.value.param == "files.0.file_url"


@pytest.mark.parametrize("url", [
    "https://example.com/a?b#c", "http://example.com:8080", "https://user:secret@git.example.com/a.git",
    "https://xn--bcher-kva.example/", "HTTPS://EXAMPLE.COM./", "http://8.8.8.8/", "http://[2606:4700::1111]:80/",
])
def test_public_addresses_pass(url: str) -> None:
    PUBLIC.check(url, "url")


def test_the_operator_allows_names_and_networks() -> None:
    policy = AddressPolicy(["10.1.0.0/16", "::1", "127.0.0.1", "*.Corp.example", "redis"])
    for url in ("http://10.1.2.3/", "http://[::1]/", "http://127.0.0.1:80/", "http://a.b.corp.example", "http://redis/",
                "http://[::ffff:10.1.2.3]/"):
        assert policy.problem(url) is None, url
    for url in ("http://10.2.0.1/", "http://127.0.0.2/", "http://corp.local/", "http://redis2/", "file://redis/"):
        assert policy.problem(url) is not None, url


def test_a_literal_is_read_as_a_resolver_reads_it() -> None:
    assert ip_literal("0x7f.1") == ip_address("127.0.0.1")
    assert ip_literal("fe80::1%eth0") == ip_address("fe80::1")
    assert ip_literal("example.com") is None


# -- at connect time --------------------------------------------------------------------------------------------------

def info(address: str) -> Any:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, 6, "", (address, 80)


def test_no_socket_is_opened_to_what_is_not_public() -> None:
    opened = PUBLIC.socket_factory("example.com")
    for address in NOT_PUBLIC:
        with pytest.raises(AddressRefused):
            opened(info(address))
    opened(info("8.8.8.8")).close()
    AddressPolicy(["example.com"]).socket_factory("example.com")(info("10.0.0.1")).close()
    AddressPolicy(["10.0.0.0/8"]).socket_factory("example.com")(info("10.0.0.1")).close()


async def test_a_name_is_judged_by_all_that_it_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def lookup(host: str, port: Any, **given: Any) -> list[Any]:
        if not found:
            raise socket.gaierror(-2, "Name or service not known")
        return [info(address) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert "cannot be looked up" in str(await PUBLIC.problem_resolved("http://example.com/"))
    found[:] = ["8.8.8.8"]
    assert await PUBLIC.problem_resolved("http://example.com/") is None
    assert [one["host"] for one in await GuardedResolver(PUBLIC).resolve("example.com", 80)] == ["8.8.8.8"]
    found[:] = ["8.8.8.8", "169.254.169.254"]
    assert "not public" in str(await PUBLIC.problem_resolved("http://example.com/"))
    assert await AddressPolicy(["example.com"]).problem_resolved("http://example.com/") is None
    assert "http:// or https://" in str(await PUBLIC.problem_resolved("file:///etc/passwd"))


async def test_several_addresses_are_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(host: str, port: Any, **given: Any) -> list[Any]:
        if host == "nobody.example":
            raise socket.gaierror(-2, "Name or service not known")
        return [info("10.0.0.1" if host == "nip.example" else "8.8.8.8")]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    await PUBLIC.check_resolved([("a", "http://nobody.example/"), ("b", "http://example.com/")])
    with pytest.raises(Invalid) as refused:
        await PUBLIC.check_resolved([("a", "http://example.com/"), ("b", "http://nip.example/")])
    assert refused.value.param == "b"
    with pytest.raises(Invalid, match="256 different hosts, not 257"):
        await PUBLIC.check_resolved([(f"f{n}", f"http://{n}.example.com/") for n in range(257)])
    await PUBLIC.check_resolved([(f"f{n}", f"http://example.com/{n}") for n in range(100)])


async def test_a_slow_name_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = AddressPolicy()

    async def never(*given: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", never)
    assert "cannot be looked up" in str(await policy.problem_resolved("http://example.com/"))
