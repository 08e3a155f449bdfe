"""Samples are summed up as they should be, and a process can be measured."""

import os
import threading
import time

import pytest

from bench.measure import cpu_time, figure, paired_ratio, percentile, rss_bytes


def test_a_figure_is_a_median_with_its_spread() -> None:
    found = figure([3.0, 1.0, 8.0])
    assert (found.median, found.low, found.high, found.samples) == (3.0, 1.0, 8.0, 3)


def test_there_is_no_figure_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        figure([])


def test_ratios_are_taken_pair_by_pair() -> None:
    """A slow minute doubles both, and the ratio stays."""
    assert paired_ratio([10.0, 20.0, 10.0], [5.0, 10.0, 5.0]) == figure([2.0, 2.0, 2.0])


def test_pairs_must_be_complete() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([1.0], [1.0, 2.0])


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (50, 50), (99, 99), (100, 100)])
def test_a_percentile_is_one_of_the_samples(percent: float, expected: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == expected


def test_our_own_process_can_be_measured() -> None:
    before = cpu_time(os.getpid())
    sum(range(200_000))
    used = cpu_time(os.getpid()) - before
    assert before.cpu > 0
    assert used.cpu >= 0
    assert used.waited >= 0
    assert rss_bytes(os.getpid()) > 2**20


def test_what_threads_have_spent_stays_spent_when_they_end() -> None:
    def work() -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    before = cpu_time(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    used = cpu_time(os.getpid()) - before
    assert used.cpu > 0.05
    assert used.waited >= 0
