"""The trace of a client goes where its turn goes: through sockets, to other servers, agents, remotes and MCP tools."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.backends.agui_server import END, START, text
from tests.support.backends.agui_server import server as agui_server
from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import calls, says
from tests.support.client.byte_server import serving as upstream
from tests.support.cluster.fleet_in_loop import fleet_in_loop
from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.blade.client import connect
from tests.support.dialects.zenflux.client import Chat
from tests.support.gateway_server import serving
from tests.support.otlp_collector import attributes, collecting
from tests.support.pairs.two_gateways import address
from tests.support.traced_conversations import CLIENT, HEADER, TRACE, create_session, say, turn


async def test_an_mcp_server_gets_it_with_each_call(tmp_path: Path) -> None:
    replies = calls("add", '{"a": 2, "b": 3}', id="a"), says("Done.")
    async with collecting() as collector, mcp_over_http() as tools, upstream(*replies) as model:
        settings: dict[str, Any] = {"url": model.url, "key": "k", "model": "m", "attempts": 1,
                                    "mcp": {"ours": {"url": tools.url, "permission": "allow"}}}
        agents = {"demo": {"backend": "openai", "settings": settings}}
        telemetry = {"otlp": collector.address}
        async with serving(tmp_path, dialects={"zenflux": {}}, agents=agents, telemetry=telemetry) as served:
            said = {"message": "add them"}
            answer = await served.http.post(served.url("/api/v1/chat"), json=said, headers={"traceparent": HEADER})
            await answer.read()
        (invoked,) = collector.named("invoke_agent")
    assert [meta.get("traceparent") for meta in tools.meta] == [f"00-{TRACE}-{invoked.span_id.hex()}-01"]


async def test_an_agui_agent_gets_it(tmp_path: Path) -> None:
    async with collecting() as collector, agui_server() as agent:
        agent.play([START, *text("Sunny."), END])
        agents = {"demo": {"backend": "agui", "settings": {"url": agent.url}}}
        telemetry = {"otlp": collector.address}
        async with serving(tmp_path, dialects={"aap": {}}, agents=agents, telemetry=telemetry) as served:
            await turn(served, "weather?", traceparent=HEADER)
        (invoked,) = collector.named("invoke_agent")
    assert [headers["traceparent"] for headers in agent.headers] == [f"00-{TRACE}-{invoked.span_id.hex()}-01"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_remote_gateway_goes_on_with_it(dialect: str, tmp_path: Path) -> None:
    for name in ("far", "near"):
        (tmp_path / name).mkdir()
    async with collecting() as collector:
        telemetry = {"otlp": collector.address, "share": 0.0}  # only what a client asks for is traced
        dialects = {dialect: {}, "aap": {}}
        far = {"telemetry": {**telemetry, "service": "far"}, "dialects": dialects}
        async with serving(tmp_path / "far", **far) as remote:
            settings = {"dialect": dialect, "url": address(remote, dialect)}
            agents = {"demo": {"backend": "remote", "settings": settings}}
            near = {"telemetry": {**telemetry, "service": "near"}, "agents": agents, "dialects": {"aap": {}}}
            async with serving(tmp_path / "near", **near) as served:
                await turn(served, "hello", traceparent=HEADER)
    (ours,) = [span for span in collector.named("invoke_agent") if span.parent_span_id.hex() == CLIENT]
    (theirs,) = [span for span in collector.named("invoke_agent") if span.parent_span_id == ours.span_id]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert {resource["service.name"] for resource in collector.resources} == {"far", "near"}
    assert ours.start_time_unix_nano <= theirs.start_time_unix_nano <= ours.end_time_unix_nano


async def test_another_server_of_the_cluster_goes_on_with_it(tmp_path: Path) -> None:
    async with collecting() as collector:
        settings = {"telemetry": {"otlp": collector.address, "share": 0.0}}
        async with fleet_in_loop(tmp_path, 2, settings=settings) as fleet:
            holder, asked = (server.served for server in fleet.servers)
            session = await create_session(holder)
            await say(holder, session, "hello")
            await say(asked, session, "again", traceparent=HEADER)
    (invoked,) = collector.named("invoke_agent")
    assert (invoked.trace_id.hex(), invoked.parent_span_id.hex()) == (TRACE, CLIENT)


async def heard(chat: Chat, words: str) -> None:
    run = await chat.send(words)
    await chat.until("message_stop", run["session_id"])


async def test_all_turns_of_a_websocket_belong_to_its_handshake(tmp_path: Path) -> None:
    async with collecting() as collector:
        settings = {"dialects": {"zenflux": {}}, "telemetry": {"otlp": collector.address, "share": 0.0}}
        async with serving(tmp_path, **settings) as served:
            url = served.url("/api/v1/ws/chat")
            async with served.http.ws_connect(url, headers={"traceparent": HEADER}) as ws:
                for words in ("hello", "again"):
                    await heard(Chat(ws), words)
            async with served.http.ws_connect(url) as ws:
                await heard(Chat(ws), "not traced")
    turns = collector.named("invoke_agent")
    assert [(span.trace_id.hex(), span.parent_span_id.hex()) for span in turns] == [(TRACE, CLIENT)] * 2


async def test_all_turns_of_a_socketio_connection_belong_to_its_handshake(tmp_path: Path) -> None:
    async with collecting() as collector:
        settings = {"dialects": {"blade": {}}, "telemetry": {"otlp": collector.address, "share": 0.0}}
        async with (
            serving(tmp_path, **settings) as served,
            connect(served, transports=["websocket"], headers={"traceparent": HEADER}) as page,
        ):
            session = await page.session()
            await page.subscribe(session)
            for words in ("hello", "again"):
                await page.chat(session, words)
    turns = collector.named("invoke_agent")
    assert [(span.trace_id.hex(), span.parent_span_id.hex()) for span in turns] == [(TRACE, CLIENT)] * 2
    assert {attributes(span.attributes)["gen_ai.conversation.id"] for span in turns} == {session}
