"""The smallest run of the scenarios that start many servers: every stream whole, every row there, no figure judged."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.contenders import nginx_path
from bench.dialects import find_additions, find_filters, find_lists, find_replays
from bench.measure import BenchFailure, choose_cores
from bench.scenarios.durable import measure_durable
from bench.scenarios.growth.additions import measure_additions
from bench.scenarios.growth.replays import measure_replays
from bench.scenarios.growth.session_lists import measure_lists
from bench.scenarios.runner import TINY, Bench
from bench.scenarios.upstream import measure_upstream


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(TINY, choose_cores(), tmp_path, lambda line: None)


def test_with_the_log_in_a_file_it_is_the_same_words(bench: Bench) -> None:
    rows = list(measure_durable(replace(bench, effort=replace(TINY, paced=(2, 40, 1)))))
    assert {"deltas/s", "ms", "µs/delta"} <= {row.unit for row in rows}
    assert all("durable" in row.figures for row in rows)


def test_everybody_passes_on_what_the_model_says(bench: Bench) -> None:
    rows = {row.name: row for row in measure_upstream(bench)}
    there = {"dragoman", "durable"} | ({"nginx"} if nginx_path() else set())
    for label in ("1 × 5", "2 × 20"):
        assert set(rows[f"{label} deltas"].figures) == there | {"direct"}
        assert set(rows[f"{label} CPU"].figures) == set(rows[f"{label} its core busy"].figures) == there
        assert all(found.median > 0 for found in rows[f"{label} CPU"].figures.values())
        assert (f"{label} to nginx" in rows) is (nginx_path() is not None)
    for name in ("request to first delta, idle, p50", "request to first delta, idle, p99", "process start to ready",
                 "memory, just started", "2 × 20/s CPU, streams running", "translation alone, both"):
        assert rows[name].figures["dragoman"].median > 0
    assert any("LiteLLM was left out" in note and "--litellm" in note for note in rows["1 × 5 deltas"].notes)


def test_without_nginx_the_rest_is_measured_and_it_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scenarios.upstream.nginx_path", lambda: None)
    first = next(row for row in measure_upstream(bench))
    assert set(first.figures) == {"dragoman", "durable", "direct"}
    assert any("nginx was left out" in note for note in first.notes)


def test_the_first_page_of_every_list_is_measured(bench: Bench) -> None:
    rows = list(measure_lists(bench))
    assert len(rows) == len(find_lists()) + len(find_filters()) and all(row.aim is not None for row in rows)


def test_a_list_that_is_refused_is_found_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scenarios.growth.session_lists.find_lists", lambda: ["/aap/nowhere"])
    with pytest.raises(BenchFailure, match="was answered with 404"):
        list(measure_lists(bench))


def test_every_replay_is_measured_from_where_it_can_begin(bench: Bench) -> None:
    rows = list(measure_replays(bench))
    assert len(rows) == sum(1 if replay.from_zero_only else 3 for replay in find_replays()) + 2
    assert all(row.aim is not None for row in rows)
    assert {row.aim.of for row in rows if row.aim is not None} == {"exponent", "ratio"}


def test_one_more_of_everything_is_measured(bench: Bench) -> None:
    rows = list(measure_additions(bench))
    assert len(rows) == 1 + len(find_additions()) and all(row.aim is not None for row in rows)
