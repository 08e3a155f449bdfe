"""A served gateway sends the spans of its turns to a real OTLP receiver, and hands its trace on to upstreams."""

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
import structlog
import trustme

from gateway.config import load_config
from gateway.telemetry import Span
from gateway.telemetry.otlp import REPORT_SECONDS, CollectorExporter, QueuedSpan
from gateway.yaml_positions import Problems
from tests.support.backends.model_services import says
from tests.support.client.byte_server import serving as upstream
from tests.support.client.forward_proxy import forward_proxy
from tests.support.extras import packages_of
from tests.support.gateway_server import serving, write_settings
from tests.support.otlp_collector import attributes, collecting
from tests.support.traced_conversations import CLIENT, HEADER, TRACE, turn

SPAN = Span(name="a", trace_id=1, span_id=2, parent_id=None, start=1.0)


async def test_a_collector_gets_the_spans_of_a_turn_in_the_trace_of_the_client(tmp_path: Path) -> None:
    async with collecting() as collector:
        telemetry = {"otlp": collector.address, "service": "front", "headers": {"x-key": "sesame"}}
        async with serving(tmp_path, dialects={"aap": {}}, telemetry=telemetry) as served:
            session = await turn(served, "/tool calc", "calc", traceparent=HEADER)
    (invoked,), (chat, *_), (tool,) = (collector.named(name) for name in ("invoke_agent", "chat", "execute_tool"))
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert invoked.parent_span_id.hex() == CLIENT
    assert chat.parent_span_id == tool.parent_span_id == invoked.span_id
    assert invoked.start_time_unix_nano <= chat.start_time_unix_nano <= chat.end_time_unix_nano
    assert attributes(invoked.attributes)["gen_ai.conversation.id"] == session
    assert attributes(tool.attributes)["gen_ai.tool.name"] == "calc"
    assert collector.resources[0]["service.name"] == "front" and collector.headers[0]["x-key"] == "sesame"


async def test_lines_of_the_log_have_the_trace_of_their_turn(tmp_path: Path) -> None:
    async with collecting() as collector:
        async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served:
            with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
                await turn(served, "hello")
        (invoked,) = collector.named("invoke_agent")
    told = {line["event"]: line.get("trace_id") for line in lines}
    assert told["commands_accepted"] == told["turn_ended"] == invoked.trace_id.hex()


async def test_an_upstream_gets_the_trace_with_the_turn_as_its_parent(tmp_path: Path) -> None:
    async with collecting() as collector, upstream(says("hello")) as model:
        settings: dict[str, Any] = {"url": model.url, "key": "k", "model": "m", "attempts": 1}
        agents = {"demo": {"backend": "openai", "settings": settings}}
        telemetry = {"otlp": collector.address}
        async with serving(tmp_path, dialects={"aap": {}}, agents=agents, telemetry=telemetry) as served:
            await turn(served, "hello", traceparent=HEADER)
        (invoked,) = collector.named("invoke_agent")
    assert [asked.headers["traceparent"] for asked in model.asked] == [f"00-{TRACE}-{invoked.span_id.hex()}-01"]


async def test_without_telemetry_nothing_is_taken_up_recorded_or_handed_on(tmp_path: Path) -> None:
    async with upstream(says("hello")) as model:
        settings = {"url": model.url, "key": "k", "model": "m", "attempts": 1}
        agents = {"demo": {"backend": "openai", "settings": settings}}
        async with serving(tmp_path, dialects={"aap": {}}, agents=agents) as served:
            session = await turn(served, "hello", traceparent=HEADER)
            async with served.http.get(served.url(f"/replay/{session}")) as response:
                assert TRACE not in await response.text()
    assert ["traceparent" in asked.headers for asked in model.asked] == [False]


def test_failures_are_told_once_a_minute_with_their_number() -> None:
    now = [0.0]
    exporter = CollectorExporter(lambda spans: False, "http://collector", lambda: now[0])
    with structlog.testing.capture_logs() as lines:
        for number, now[0] in enumerate((0.0, 1.0, 2.0, REPORT_SECONDS, REPORT_SECONDS + 1)):
            exporter.export([QueuedSpan(SPAN, 2 * number + 1), QueuedSpan(SPAN, 2 * number + 2)])
        exporter.shutdown()
    told = [(line["event"], line["count"]) for line in lines]
    assert told == [("spans_not_exported", 2), ("spans_not_exported", 6), ("spans_not_exported", 2)]


async def test_a_collector_that_refuses_leaves_turns_and_the_end_of_the_server_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:
    async with collecting() as collector:
        collector.status = 400
        async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served:
            await turn(served, "hello")
    assert collector.headers and not [line for line in caplog.records if line.levelno >= logging.WARNING]


def test_an_address_that_is_none_is_a_problem_of_the_settings(tmp_path: Path) -> None:
    write_settings(tmp_path, telemetry={"otlp": "collector:4318"})
    with pytest.raises(Problems, match="expected the address of a collector"):
        load_config(tmp_path / "config.yaml")


def test_packages_that_are_missing_are_a_problem_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.config.checks.find_spec", lambda name: None)
    write_settings(tmp_path, telemetry={"otlp": "http://collector:4318"})
    with pytest.raises(Problems) as told:
        load_config(tmp_path / "config.yaml")
    assert f"pip install {packages_of('otel')}, or Dragoman with its extra 'otel'" in str(told.value)


async def test_spans_pass_through_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with collecting() as collector, forward_proxy(monkeypatch, "dragon:s3cret-pass") as proxy:
        name = collector.address.replace("127.0.0.1", "collector.test")
        async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": name}) as served:
            await turn(served, "hello")
    assert proxy.asked == [f"POST {name}/v1/traces HTTP/1.1"]
    assert collector.spans and "Proxy-Authorization" not in collector.headers[0]


async def test_a_collector_that_asks_who_we_are_is_shown_our_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    authority.issue_cert("gateway.test").private_key_and_cert_chain_pem.write_to_path(tmp_path / "mine.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CLIENT_CERT_FILE", str(tmp_path / "mine.pem"))
    async with (
        collecting(context) as collector,
        serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served,
    ):
        await turn(served, "hello")
    assert collector.named("invoke_agent")


async def test_spans_are_counted_as_lost_if_the_file_of_authorities_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    with structlog.testing.capture_logs() as lines:
        async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": "https://127.0.0.1:9"}) as served:
            await turn(served, "hello")
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["spans_not_exported"]


async def test_the_collector_of_this_machine_is_reached_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        collecting() as collector, forward_proxy(monkeypatch) as proxy,
        serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served,
    ):
        await turn(served, "hello")
    assert (proxy.asked, bool(collector.spans)) == ([], True)
