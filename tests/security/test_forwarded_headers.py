"""Anybody can write `X-Forwarded-*`: only a trusted proxy changes what links say, and who the client is."""

from pathlib import Path

from tests.support.gateway_server import Served, serving

CLAIMED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "gateway.example", "X-Forwarded-For": "203.0.113.9"}


async def link(served: Served, **headers: str) -> tuple[int, str]:
    """The link to a shared session, as its owner is told it."""
    named = {**CLAIMED, **headers}
    async with served.http.post(served.url("/api/sessions"), json={}) as made:
        session = (await made.json())["session_id"]
    async with served.http.post(served.url(f"/api/sessions/{session}/share"), json={}, headers=named) as response:
        return response.status, str((await response.json()).get("url"))


async def test_a_stranger_is_not_believed(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"blade": {}}, hosts=["gateway.example"]) as served:
        status, url = await link(served)
        assert status == 200
        assert url.startswith(f"{served.address}/api/share/")


async def test_links_behind_tls_say_https(tmp_path: Path) -> None:
    settings = {"dialects": {"blade": {}, "zenflux": {}}, "trusted_proxies": ["127.0.0.1"]}
    async with serving(tmp_path, hosts=["gateway.example"], **settings) as served:
        status, url = await link(served)
        assert status == 200
        assert url.startswith("https://gateway.example/api/share/")
        own = {"Origin": "https://gateway.example", "Sec-Fetch-Site": "same-origin"}
        assert (await link(served, **own))[0] == 200, "a page of the proxy's own"
        assert (await link(served, Origin="http://gateway.example"))[0] == 403
        async with served.http.ws_connect(served.url("/api/v1/ws/chat"), headers={**CLAIMED, **own}) as ws:
            await ws.send_json({"type": "req", "id": "1", "method": "chat.send", "params": {"message": "hello"}})
            assert (await ws.receive_json())["id"] == "1"


async def test_the_name_that_a_proxy_passes_on_must_be_listed(tmp_path: Path) -> None:
    settings = {"dialects": {"blade": {}}, "trusted_proxies": ["127.0.0.0/8"]}
    async with (serving(tmp_path, **settings) as served,
                served.http.get(served.url("/api/health"), headers=CLAIMED) as response):
        assert response.status == 421
        assert "add the name to `hosts:` in config.yaml" in await response.text()
