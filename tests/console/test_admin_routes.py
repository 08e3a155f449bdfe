"""What admins see: figures that grow, warnings without secrets, and keys without the keys."""

import asyncio
from io import StringIO
from pathlib import Path

import pytest
import structlog

from gateway import logging
from tests.support.console_client import ConsoleClient
from tests.support.gateway_server import serving


async def test_figures_grow_with_what_happens(console: ConsoleClient) -> None:
    before = await console.get("/figures")
    session = await console.create()
    served = console.served
    turn = {"messages": [{"role": "user", "content": "/title Trip"}], "stream": "delta"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as answer:
        await answer.read()
    after = await console.get("/figures")
    assert (before["turns"], after["turns"]) == ({}, {"completed": 1})
    assert after["sessions"] == before["sessions"] + 1
    assert after["events"]["aap"] > 0
    assert {"source": "demo", "target": "aap", "feature": "titles", "count": 1} in after["losses"]
    await console.get(f"/sessions/{session}/frames?dialect=aap")
    assert set((await console.get("/figures"))["events"]) == {"aap"}, "the console is no client"


async def test_figures_are_told_again_and_again(console: ConsoleClient) -> None:
    async with asyncio.timeout(60), console.events("/figures/stream") as events:
        first, second = await anext(events), await anext(events)
        assert first.name == "figures"
        assert second.data["at"] >= first.data["at"] + 1.9


@pytest.fixture
def logged() -> StringIO:
    stream, before = StringIO(), structlog.get_config()
    logging.RECENT_WARNINGS.clear()
    logging.configure_logging("json", "info", stream)
    yield stream
    structlog.configure(**before)
    logging.RECENT_WARNINGS.clear()


async def test_the_last_warnings_are_shown_without_secrets(logged: StringIO, console: ConsoleClient) -> None:
    log = logging.get_logger("dragoman.test")
    log.info("not_a_warning")
    log.warning("something_odd", session="sess_1", key="dgm_secret", url="http://x/?token=dgm_secret", long="x" * 9999)
    log.error("something_worse", code="internal")
    worse, odd = (await console.get("/warnings"))["warnings"]
    assert (worse["level"], worse["event"], worse["fields"]) == ("error", "something_worse", {"code": "internal"})
    assert (odd["logger"], odd["fields"]["session"], odd["fields"]["key"]) == ("dragoman.test", "sess_1", "***")
    assert "dgm_secret" not in str(odd)
    assert len(odd["fields"]["long"]) == 500
    for number in range(300):
        log.warning("again", number=number)
    shown = (await console.get("/warnings"))["warnings"]
    assert (len(shown), shown[0]["fields"]["number"]) == (200, "299")


async def test_admins_make_and_remove_keys(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys", admins=["bob"]) as served:
        bob = ConsoleClient(served, await served.gateway.keys.add("bob"))
        made = await bob.call("POST", "/keys", {"name": "laptop", "user": "ann"}, 201)
        ann = ConsoleClient(served, made["key"])
        assert (await ann.get("/server"))["user"] == "ann"
        keys = {key["name"]: key for key in (await bob.get("/keys"))["keys"]}
        assert (keys["laptop"]["user"], keys["laptop"]["last_used_from"]) == ("ann", "127.0.0.1")
        assert made["key"] not in str(keys)
        await bob.call("DELETE", "/keys/laptop", status=204)
        await ann.error("GET", "/server", 401)
        await bob.error("DELETE", "/keys/laptop", 404)
        await bob.error("POST", "/keys", 409, {"name": "bob"})
        for body in ({}, {"name": ""}, {"name": "a\nb"}, {"name": "x" * 101}, {"name": 5}):
            await bob.error("POST", "/keys", 400, body)


async def test_without_keys_there_are_none_to_show(console: ConsoleClient) -> None:
    assert "auth: keys" in (await console.error("GET", "/keys", 422))["message"]
