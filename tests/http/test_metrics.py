"""What is counted can be read, by Prometheus and over HTTP."""

import asyncio
from typing import Any

from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from gateway.errors import GatewayError, Overloaded
from gateway.http.metrics import DEPRECATED_METRICS, LoopLagMonitor, Metrics, SessionMetrics, metrics_routes


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(metrics.render().decode()) for sample in family.samples}


def test_events_are_counted_by_dialect_many_at_a_time() -> None:
    metrics = Metrics()
    metrics.count_events("speech", 20)
    metrics.count_events("speech", 3)
    metrics.count_events("song", 1)
    found = samples(metrics)
    assert found["dragoman_events_total", "speech"] == 23
    assert found["dragoman_events_total", "song"] == 1


def test_subscribers_come_and_go_and_are_cut() -> None:
    metrics = Metrics()
    metrics.count_subscribers(+1)
    metrics.count_subscribers(+1)
    metrics.count_subscribers(-1)
    metrics.count_cut()
    found = samples(metrics)
    assert found["dragoman_subscribers",] == 1
    assert found["dragoman_cut_subscribers_total",] == 1


class Sessions(list[str]):
    """The sessions in memory."""

    turn_count = 0


class Log:
    session_count = 1
    write_error: GatewayError | None = None


def test_cached_sessions_and_the_state_of_the_log_are_asked_for() -> None:
    metrics, log = Metrics(), Log()
    metrics.register(SessionMetrics(Sessions("abc"), log, lambda: 10))
    assert samples(metrics)["dragoman_cached_sessions",] == 3
    assert samples(metrics)["dragoman_log_write_failing",] == 0
    log.write_error = Overloaded("no space")
    assert samples(metrics)["dragoman_log_write_failing",] == 1


def test_old_names_of_metrics_are_exported_beside_the_new_ones() -> None:
    metrics, log = Metrics(), Log()
    metrics.register(SessionMetrics(Sessions("abc"), log, lambda: 10))
    log.write_error = Overloaded("no space")
    found = samples(metrics)
    assert all(found[old,] == found[new.name,] for old, new in DEPRECATED_METRICS.items())
    assert found["dragoman_sessions_at_hand",] == 3
    assert found["dragoman_log_trouble",] == 1


def test_sessions_and_running_turns_are_asked_for() -> None:
    metrics, sessions, log = Metrics(), Sessions(), Log()
    metrics.register(SessionMetrics(sessions, log, lambda: 10))
    assert samples(metrics)["dragoman_sessions",] == 1
    assert samples(metrics)["dragoman_running_turns",] == 0
    log.session_count, sessions.turn_count = 2, 5
    assert samples(metrics)["dragoman_sessions",] == 2
    assert samples(metrics)["dragoman_max_sessions",] == 10
    assert samples(metrics)["dragoman_running_turns",] == 5


def test_turns_are_counted_by_outcome_and_timed() -> None:
    metrics = Metrics()
    metrics.turn_ended("completed", 0.2)
    metrics.turn_ended("completed", 70)
    metrics.turn_ended("failed", 0.01)
    found = samples(metrics)
    assert found["dragoman_turns_total", "completed"] == 2
    assert found["dragoman_turns_total", "failed"] == 1
    assert found["dragoman_turn_seconds_bucket", "0.25"] == 2
    assert found["dragoman_turn_seconds_count",] == 3


def test_a_loss_names_both_dialects_and_the_feature() -> None:
    metrics = Metrics()
    metrics.count_loss("speech", "song", "thinking")
    metrics.count_loss("speech", "song", "thinking", 2)
    page = metrics.render().decode()
    assert 'dragoman_translation_loss_total{feature="thinking",from="speech",to="song"} 3.0' in page


def test_two_servers_do_not_share_their_counters() -> None:
    one, other = Metrics(), Metrics()
    one.count_cut()
    assert samples(other)["dragoman_cut_subscribers_total",] == 0


async def test_the_lag_of_the_loop_is_measured_until_it_is_stopped() -> None:
    metrics, measured = Metrics(), asyncio.Event()
    metrics.observe_lag = lambda seconds: (Metrics.observe_lag(metrics, seconds), measured.set())  # type: ignore[assignment]
    watch = LoopLagMonitor(metrics, every=0.001)
    watch.start()
    await asyncio.wait_for(measured.wait(), 5)
    watch.stop()
    count = samples(metrics)["dragoman_loop_lag_seconds_count",]
    assert count >= 1
    assert watch._timer is None


async def test_the_page_is_served(aiohttp_client: Any) -> None:
    metrics = Metrics()
    metrics.count_cut()
    app = web.Application()
    app.add_routes(metrics_routes(metrics))
    client = await aiohttp_client(app)
    answer = await client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    page = await answer.text()
    assert "dragoman_cut_subscribers_total 1.0" in page
    assert "process_resident_memory_bytes" in page
    assert "python_gc_objects_collected_total" in page
