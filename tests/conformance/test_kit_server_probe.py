"""Whether somebody who speaks the dialect is there is seen before anything is examined."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.faults.fault import load_faults
from conformance.faults.kill.setups import setup_of
from conformance.faults.local_server import served
from conformance.kit.missing_features import missing
from conformance.kit.runner import Runner
from conformance.kit.server_probe import NoServer, locate, plain
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Verdict
from gateway.server import startup_lines
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.conformance.examinations import KEY, SERVERS
from tests.support.dialect_tables import dialect
from tests.support.gateway_server import serving


async def found(dialect: str, url: str, key: str | None = KEY) -> Target:
    return await locate(load_suite(dialect), Target(url, key, 5.0))


async def complaint(dialect: str, url: str, key: str | None = KEY) -> str:
    with pytest.raises(NoServer) as caught:
        await found(dialect, url, key)
    return str(caught.value)


@pytest.mark.parametrize("mounts", [{}, {name: f"/at/{place}" for place, name in enumerate(EXAMINED)}])
async def test_what_serve_prints_can_be_examined_as_it_is(tmp_path: Path, mounts: dict[str, str]) -> None:
    dialects = {name: {"mount": mounts[name]} if mounts else {} for name in EXAMINED}
    async with serving(tmp_path, dialects=dialects) as server:
        lines = startup_lines(server.gateway, server.address)
        printed = {name: line.split()[1] for name in EXAMINED for line in lines if line.startswith(f"  {name} ")}
        assert list(printed) == EXAMINED
        for name, url in printed.items():
            suite, quick = load_suite(name), examination_facts(name).quick_requirement
            wanted = [item for item in suite.catalogue.requirements if item.id == quick]
            report = await Runner(suite, await found(name, url, None), suite.read_profile()).run(wanted)
            assert report.verdict is Verdict.CONFORMS, report.results


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_a_server_is_found_where_it_is(dialect: str) -> None:
    async with served(SERVERS[dialect]()) as url:
        assert (await found(dialect, url + "/")).url == url
        assert (await found(dialect, url.replace("http", "ws") + "?a=b")).url == url
        own = load_suite(dialect).own_path
        assert await found(dialect, url + own) == Target(url, KEY, 5.0)


async def test_a_wrong_address_is_told_with_the_right_one(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={key: {} for key in EXAMINED}) as server:
        for name, usual in ((name, dialect(name).mount) for name in EXAMINED):
            for wrong in ("/nowhere", "/aap" if name != "aap" else ""):
                told = await complaint(name, server.address + wrong, None)
                assert told.startswith(f"no server of {name} answers at {server.address}{wrong} (GET /")
                assert told.endswith(f"; one answers at {server.address}{usual}: give that address")


async def test_a_server_of_another_dialect_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"cas": {}}) as server:
        url = f"{server.address}/api/v1/cloud"
        told = await complaint("aap", url, None)
        assert told == (f"no server of aap answers at {url} (GET /meta: 404, GET /sessions: 200); "
                        f"a server of cas does: dragoman conform cas {url}")


@asynccontextmanager
async def answering(handler: Callable[[web.Request], Any]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.mark.parametrize("dialect", EXAMINED)
@pytest.mark.parametrize(("answer", "words"), [
    (lambda: web.Response(status=404), "404"),
    (lambda: web.Response(text="<html>", content_type="text/html"), "200 text/html"),
    (lambda: web.Response(status=301, headers={"Location": "https://elsewhere"}), "301 to https://elsewhere"),
])
async def test_somebody_else_is_told_by_what_he_answers(
    dialect: str, answer: Callable[[], web.Response], words: str
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return answer()

    async with answering(handler) as url:
        told = await complaint(dialect, url)
        answers = told.removeprefix(f"no server of {dialect} answers at {url} (").partition(")")[0].split(", ")
        assert len(answers) == len(load_suite(dialect).probes)
        assert all(answer.startswith("GET /") and answer.endswith(f": {words}") for answer in answers)
        assert told.endswith(f"; is that its address? Dragoman has {dialect} at {load_suite(dialect).usual_path}")


@pytest.mark.parametrize("dialect", [name for name in EXAMINED if setup_of(name).has_keys])
async def test_a_key_that_is_missing_or_wrong_is_told_before_anything_is_asked(dialect: str) -> None:
    async with served(SERVERS[dialect]()) as url:
        assert (await complaint(dialect, url, None)).endswith("401); give its key with --key or in CONFORM_KEY")
        assert (await complaint(dialect, url, "another")).endswith("401); is it the right key?")


async def test_a_password_in_the_address_is_not_shown() -> None:
    async with served(SERVERS["aap"]()) as url:
        address = url.replace("http://", "http://me:pass-word-1@").removesuffix("/aap")
        told = await complaint("aap", address, None)
    assert "pass-word-1" not in told and url.removesuffix("/aap") in told


async def test_a_server_that_answers_wrongly_is_examined() -> None:
    async with served(load_faults("aap")["version-as-text"].server(key=KEY)) as url:
        assert (await found("aap", url)).url == url

    async def broken(request: web.Request) -> web.Response:
        return web.json_response({"error": "out of order"}, status=500)

    async with answering(broken) as url:
        for dialect in EXAMINED:
            assert (await found(dialect, url)).url == url


async def test_a_server_that_does_not_answer_is_examined(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    assert (await found("zenflux", f"{url}/api/v1")).url == url


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_a_server_whose_answers_never_end_is_waited_for_at_full_length_once(dialect: str) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await asyncio.sleep(3600)
        return response

    clock, suite = asyncio.get_running_loop().time, load_suite(dialect)
    async with answering(endless) as url:
        begun = clock()
        target = await locate(suite, Target(url, KEY, 10.0))
        assert target.url == url
        probed = clock()
        await missing(suite.catalogue, target)
        has_routes = any(feature.routes for feature in suite.catalogue.features.values())
        assert clock() - probed == pytest.approx(10 if has_routes else 0, abs=0.5)
    everything = sum(len(load_suite(name).probes) for name in EXAMINED)
    assert probed - begun < 10 + 2 * everything


@pytest.mark.parametrize("url", ["127.0.0.1:1", "ftp://h/x", "", "http://"])
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(ValueError, match="is not an http or https address"):
        plain(url)
