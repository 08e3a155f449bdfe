"""A collector that hangs delays no turn; what waits too long is dropped and counted; a server that stops gives up."""

from pathlib import Path

import pytest
import structlog

from gateway.telemetry import Span, otlp
from gateway.telemetry.otlp import BATCH_SPANS, QUEUED_SPANS, OtlpExport
from tests.support.gateway_server import serving
from tests.support.otlp_collector import Collector, collecting
from tests.support.traced_conversations import turn


def named(name: str) -> Span:
    return Span(name=name, trace_id=1, span_id=2, parent_id=None, start=1.0, end=2.0)


def export_to(collector: Collector) -> OtlpExport:
    return OtlpExport(collector.address, {}, "dragoman", "0")


async def test_a_full_queue_drops_the_oldest_spans_and_the_log_tells_how_many() -> None:
    dropped = 100
    with structlog.testing.capture_logs() as lines:
        async with collecting() as collector:
            collector.may_answer.clear()
            export = export_to(collector)
            for number in range(BATCH_SPANS):
                export.take(named(f"first {number}"))
            await collector.came.wait()
            for number in range(QUEUED_SPANS + dropped):
                export.take(named(f"later {number}"))
            assert not collector.may_answer.is_set(), "nothing has waited for the collector"
            collector.may_answer.set()
            await export.close()
    arrived = {span.name for span in collector.spans}
    assert len(arrived) == BATCH_SPANS + QUEUED_SPANS
    assert arrived.isdisjoint(f"later {number}" for number in range(dropped))
    assert [(line["event"], line["count"]) for line in lines] == [("spans_not_exported", dropped)]


async def test_turns_are_played_while_the_collector_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "BATCH_SPANS", 1)  # so that the thread sends the first span at once
    async with collecting() as collector:
        collector.may_answer.clear()
        async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served:
            first = await turn(served, "hello")
            await collector.came.wait()
            second = await turn(served, "again")
            assert not collector.may_answer.is_set(), "no turn has waited for the collector"
            collector.may_answer.set()
    told = {value.value.string_value for span in collector.named("invoke_agent") for value in span.attributes}
    assert {first, second} <= told


async def test_a_server_that_stops_gives_up_a_collector_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "CLOSE_SECONDS", 0.05)
    with structlog.testing.capture_logs() as lines:
        async with collecting() as collector:
            collector.may_answer.clear()
            async with serving(tmp_path, dialects={"aap": {}}, telemetry={"otlp": collector.address}) as served:
                await turn(served, "hello")
    assert [line["seconds"] for line in lines if line["event"] == "spans_given_up"] == [0.05]
