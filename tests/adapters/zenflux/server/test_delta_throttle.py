"""DeltaThrottle: nothing lost, nothing out of order, few frames, and the same ones whoever keeps the time."""

from itertools import groupby
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from adapters.zenflux.server.frame_writer import DeltaThrottle, MergedDelta

SECONDS = 0.15
Delta = tuple[int, str, float]


@st.composite
def streams(draw: st.DrawFn) -> list[Delta]:
    """Words of one block after another, at times that never go back."""
    at, index, deltas = 1000.0, 0, []
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.sampled_from([0.0, 0.001, 0.05, SECONDS, 0.15000001, 1.0]))
        index += draw(st.sampled_from([0, 0, 0, 1]))
        deltas.append((index, draw(st.text(min_size=1, max_size=3)), at))
    return deltas


def told(deltas: list[Delta]) -> list[MergedDelta]:
    throttle = DeltaThrottle(SECONDS)
    said = [one for index, text, at in deltas for one in throttle.take(index, text, at)]
    said += throttle.due(10_000.0)
    assert throttle.deadline is None
    return said


def words(said: list[tuple[int, str, float]]) -> list[tuple[int, str]]:
    return [(index, "".join(text for _, text, _ in group)) for index, group in groupby(said, key=lambda one: one[0])]


@given(streams())
def test_nothing_is_lost_and_nothing_changes_places(deltas: list[Delta]) -> None:
    said = told(deltas)
    assert words(said) == words(deltas)
    assert [one.at for one in said] == sorted(one.at for one in said)


@given(streams())
def test_frames_are_bounded(deltas: list[Delta]) -> None:
    by_block = {block: [at for _, _, at in group] for block, group in groupby(deltas, key=lambda one: one[0])}
    for block, times in by_block.items():
        frames = [one for one in told(deltas) if one.block == block]
        assert len(frames) <= len(times)
        assert len(frames) <= 2 + ceil((times[-1] - times[0]) / SECONDS)


@given(streams())
def test_the_first_words_of_a_block_are_not_held_back(deltas: list[Delta]) -> None:
    said = told(deltas)
    for block, group in groupby(deltas, key=lambda one: one[0]):
        assert next(one for one in said if one.block == block) == next(group)


@given(streams())
def test_no_words_wait_longer_than_they_must(deltas: list[Delta]) -> None:
    throttle = DeltaThrottle(SECONDS)
    for index, text, at in deltas:
        throttle.take(index, text, at)
        assert throttle.deadline is None or at < throttle.deadline <= at + SECONDS


@given(streams(), st.data())
def test_a_timer_tells_the_same(deltas: list[Delta], data: st.DataObject) -> None:
    throttle, said = DeltaThrottle(SECONDS), list[MergedDelta]()
    for index, text, at in deltas:
        if throttle.deadline is not None and throttle.deadline <= at and data.draw(st.booleans()):
            said += throttle.due(data.draw(st.floats(throttle.deadline, at)))
        said += throttle.take(index, text, at)
    assert said + throttle.due(10_000.0) == told(deltas)


def test_what_else_is_said_comes_after_what_was_held_back() -> None:
    throttle = DeltaThrottle(SECONDS)
    assert throttle.take(0, "a", 1.0) == [(0, "a", 1.0)]
    assert throttle.take(0, "b", 1.05) == []
    assert throttle.take(0, "c", 1.06) == []
    assert throttle.release(1.07) == [(0, "bc", 1.07)]
    assert throttle.release(1.08) == []


def test_a_timer_that_is_late_stamps_what_was_due_as_it_was_due() -> None:
    throttle = DeltaThrottle(SECONDS)
    throttle.take(0, "a", 1.0)
    throttle.take(0, "b", 1.05)
    assert throttle.due(1.1) == []
    assert throttle.due(9.0) == [(0, "b", 1.15)]


def test_without_a_pause_every_word_passes() -> None:
    throttle = DeltaThrottle(0.0)
    assert [throttle.take(0, "a", 1.0), throttle.take(0, "b", 1.0)] == [[(0, "a", 1.0)], [(0, "b", 1.0)]]
    assert throttle.deadline is None
