"""MCP servers through a company's proxy: the operator's by name, a client's by the IP address that was checked."""

import socket
from typing import Any

import pytest

import gateway.model as m
from gateway.client import AddressPolicy
from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import calls, says, talked, turn_of
from tests.support.client.forward_proxy import forward_proxy

LOGIN = "dragon:s3cret-pass"
PUBLIC, INNER = "93.184.215.14", "10.0.0.7"


def with_server(url: str) -> Any:
    return turn_of(settings=m.Settings(mcp_servers=({"type": "url", "name": "mine", "url": url},)))


def resolve(monkeypatch: pytest.MonkeyPatch, *found: str) -> list[str]:
    """Every name has these addresses; returns the names that are looked up."""
    names = list[str]()

    async def looked_up(self: AddressPolicy, host: str, port: int | None = None) -> list[Any]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    monkeypatch.setattr(AddressPolicy, "looked_up", looked_up)
    return names


async def test_a_server_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mcp_over_http() as mine, forward_proxy(monkeypatch, LOGIN) as proxy:
        url = mine.url.replace("127.0.0.1", "mcp.test")
        headers = {"Host": mine.url.split("/")[2]}  # the package answers to the name of this machine only
        turn, _ = await talked(
            "openai", [calls("add", '{"a": 2, "b": 3}', id="a"), says("Done.")],
            mcp={"ours": {"url": url, "permission": "allow", "headers": headers}})
    assert [one.content for one in turn.all(m.ToolReturned)] == ["5"]
    assert set(proxy.asked) >= {f"POST {url} HTTP/1.1"} and all(f" {url} " in line for line in proxy.asked)


async def test_a_server_on_this_machine_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mcp_over_http() as mine, forward_proxy(monkeypatch) as proxy:
        _, asked = await talked("openai", [says("Done.")], mcp={"ours": {"url": mine.url}})
    assert [tool["function"]["name"] for tool in asked.asked[0].json["tools"]] == ["add", "clock"]
    assert proxy.asked == []


async def test_the_proxy_is_told_the_ip_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    names = resolve(monkeypatch, PUBLIC)
    async with forward_proxy(monkeypatch, refuses=403) as proxy:
        await talked("openai", [says("Done.")], with_server("https://mcp.example.com/mcp"))
        await talked("openai", [says("Done.")], with_server("http://mcp.example.com:81/mcp"))
    assert proxy.asked[0] == f"CONNECT {PUBLIC}:443 HTTP/1.1"
    assert proxy.asked[-1] == f"POST http://{PUBLIC}:81/mcp HTTP/1.1"
    assert proxy.heads[-1]["host"] == "mcp.example.com:81"
    assert set(names) == {"mcp.example.com"}


@pytest.mark.parametrize("found", [[INNER], [PUBLIC, INNER]])
async def test_a_name_that_leads_inside_is_not_told_to_the_proxy(
    monkeypatch: pytest.MonkeyPatch, found: list[str],
) -> None:
    resolve(monkeypatch, *found)
    async with forward_proxy(monkeypatch) as proxy:
        turn, _ = await talked("openai", [says("Done.")], with_server("https://mcp.example.com/mcp"))
    assert proxy.asked == []
    assert "cannot be used" in turn.all(m.NoticePosted)[0].title


async def test_a_name_that_the_operator_allows_is_looked_up_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch)
    async with forward_proxy(monkeypatch, refuses=403) as proxy:
        await talked("openai", [says("Done.")], with_server("https://mcp.corp.example/mcp"), allow=["*.corp.example"])
    assert proxy.asked[0] == "CONNECT mcp.corp.example:443 HTTP/1.1"


async def test_the_proxy_is_named_if_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async with forward_proxy(monkeypatch, LOGIN, refuses=407) as proxy:
        turn, _ = await talked("openai", [says("Done.")], mcp={"ours": {"url": "https://mcp.test/mcp"}})
    [notice] = turn.all(m.NoticePosted)
    assert "407" in str(notice) and f"(through the proxy http://127.0.0.1:{proxy.port})" in str(notice)
    assert "s3cret" not in str(notice) and "dragon:" not in str(notice)
