"""Tools of real MCP servers are listed outside of turns; one that does not answer takes nobody's time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

import gateway.model as m
from gateway.backends.mcp.tool_lists import (
    KEPT_SECONDS,
    RETRY_SECONDS,
    WAIT_SECONDS,
    McpToolLists,
)
from gateway.client import AddressPolicy
from gateway.errors import Unsupported
from gateway.ports import Backend, ServerTools
from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import made


@asynccontextmanager
async def lists(*allow: str, **backends: Backend) -> AsyncIterator[McpToolLists]:
    addresses = AddressPolicy(allow)
    made = McpToolLists(lambda: backends, lambda: addresses, asyncio.get_running_loop().time)
    try:
        yield made
    finally:
        await made.close()


def of(url: str, **fields: object) -> m.Settings:
    return m.Settings(mcp_servers=({"type": "url", "name": "mine", "url": url, **fields},))


def names(answer: ServerTools) -> list[str]:
    return [one.spec.name for one in answer.tools]


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that takes requests and does not answer."""
    asked = list[str]()

    async def wait(request: web.Request) -> web.Response:
        asked.append(request.method)
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_route("*", "/mcp", wait)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp", asked
    finally:
        await runner.cleanup()


async def test_the_tools_of_a_users_server_ask_for_permission_and_are_remembered() -> None:
    async with mcp_over_http() as mine, lists("127.0.0.1") as tools:
        first, second = await asyncio.gather(*(tools.of_user("ann", of(mine.url)) for _ in range(2)))
        assert first == second
        assert (names(first), first.is_connected) == (["add", "clock"], True)
        assert {one.permission for one in first.tools} == {m.Permission.ASK}
        assert first.connected_at is not None
        asked = len(mine.headers)
        assert await tools.of_user("ann", of(mine.url)) == first
        assert len(mine.headers) == asked
        assert names(await tools.of_user("ann", of(mine.url, tools=["clock"]))) == ["clock"]
        asked = len(mine.headers)
        await asyncio.sleep(KEPT_SECONDS)
        await tools.of_user("ann", of(mine.url))
        assert len(mine.headers) > asked


async def test_a_server_that_was_there_leaves_its_tools_behind() -> None:
    async with lists("127.0.0.1") as tools:
        async with mcp_over_http() as mine:
            settings = of(mine.url)
            there = await tools.of_user("ann", settings)
        await asyncio.sleep(KEPT_SECONDS)
        gone = await tools.of_user("ann", settings)
        assert (gone.tools, gone.is_connected, gone.connected_at) == (there.tools, False, there.connected_at)
        tools.forget()
        assert await tools.of_user("ann", settings) == ServerTools()


async def test_a_server_that_does_not_answer_is_waited_for_for_a_few_seconds() -> None:
    loop = asyncio.get_running_loop()
    async with silent_server() as (url, asked), lists("127.0.0.1") as tools:
        began = loop.time()
        assert await tools.of_user("ann", of(url)) == ServerTools()
        assert loop.time() - began == pytest.approx(WAIT_SECONDS)
        await asyncio.sleep(RETRY_SECONDS)
        assert len(asked) == 1
        began = loop.time()
        assert await tools.of_user("ann", of(url)) == ServerTools()
        assert (loop.time(), len(asked)) == (began, 1)


async def test_addresses_that_users_may_not_name_are_not_connected_to() -> None:
    async with mcp_over_http() as mine, lists() as tools:
        assert await tools.of_user("ann", of(mine.url)) == ServerTools()
        assert mine.headers == []


async def test_the_servers_of_an_agent() -> None:
    async with mcp_over_http() as house:
        servers = {"house": {"url": house.url, "permissions": {"add": "allow"}}}
        backend = made("openai", "http://127.0.0.1:9", mcp=servers)
        async with lists(one=backend) as tools:
            answer = await tools.of_agent("one", "house")
            assert {one.spec.name: one.permission for one in answer.tools} == {
                "add": m.Permission.ALLOW, "clock": m.Permission.ASK}
            done = await tools.call("one", "house", "add", {"a": 2, "b": 3}, print)
            assert (done.text, done.is_error) == ("5", False)
            assert (await tools.call("one", "house", "add", {"a": "x"}, print)).is_error
            assert await tools.of_agent("one", "nobody") == ServerTools()
            assert await tools.of_agent("nobody", "house") == ServerTools()
            with pytest.raises(Unsupported):
                await tools.call("nobody", "house", "add", {}, print)
        await backend.close()
