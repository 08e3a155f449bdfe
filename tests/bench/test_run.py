"""The smallest run from end to end: real servers, real sockets, every stream examined, no figure judged."""

from pathlib import Path

import pytest

from bench import load
from bench.measure import BenchFailure, choose_cores
from bench.protocols import burst
from bench.scenarios import streaming, telemetry
from bench.scenarios.runner import TINY, Bench
from bench.servers import BARE, CONTENDERS, Contender, Server


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(TINY, choose_cores(), tmp_path, lambda line: None)


def test_both_servers_say_word_for_word_what_the_agent_says(bench: Bench) -> None:
    rows = list(streaming.stream_burst(bench))
    assert [row.unit for row in rows] == ["deltas/s", "µs/delta", "% of core"]
    assert all(set(row.figures) == {contender.name for contender in CONTENDERS} for row in rows)
    assert all(figure.median > 0 for row in rows for figure in row.figures.values())


def test_a_server_that_says_something_else_is_found_out(bench: Bench) -> None:
    with bench.running(*CONTENDERS) as (ours, bare):
        load.warm_up([ours], burst(3))
        bare.load_script(burst(3), b"event: turn_start\ndata: {}\n\n")
        with pytest.raises(BenchFailure, match="0 deltas came, not 6"):
            load.concurrent_turns(bare, 1, burst(3))


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    broken = Contender("broken", lambda folder, port: ["sh", "-c", "echo no such thing >&2; exit 3"], BARE.protocol)
    with pytest.raises(BenchFailure, match="no such thing"):
        Server(broken, tmp_path, choose_cores().server)


def test_the_cost_of_traces_is_measured_only_if_spans_come(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = telemetry.measure_telemetry(bench)
    assert set(next(rows).figures) == {"traced", "dragoman"}
    monkeypatch.setattr(telemetry, "MOST_WAIT_SECONDS", 0.0)
    telemetry.Collector.received.clear()
    with pytest.raises(BenchFailure, match="sent no spans"), telemetry.collecting():
        telemetry.await_spans()
