"""Exponents and flat rows: what the growth of a cost is called, and when its aim is met."""

import pytest

import gateway.model as m
from bench.scenarios.growth.costs import LARGE, MIDDLE, SMALL, exponent, flat, linear_row
from bench.stored_sessions import long_session, many_sessions

SIZES = (10, 100, 1_000)


@pytest.mark.parametrize(("power", "is_met"), [(0.0, True), (1.0, True), (1.2, False), (2.0, False)])
def test_an_exponent_is_the_power_of_the_size(power: float, is_met: bool) -> None:
    costs = {name: [3.0 * size**power] for name, size in zip((SMALL, MIDDLE, LARGE), SIZES, strict=True)}
    assert exponent(costs, SIZES).median == pytest.approx(power)
    assert linear_row("it", costs, SIZES).met is is_met


def test_a_flat_cost_may_grow_by_so_much() -> None:
    assert flat(2)("it", "ms", {SMALL: [1.0], LARGE: [2.0]}).met
    assert not flat(2)("it", "ms", {SMALL: [1.0], LARGE: [2.1]}).met


def test_a_long_session_has_as_many_events_as_it_says_and_begins_its_turns_where_it_says() -> None:
    stored, records = long_session("x", 300, 100)
    assert [record.seq for record in records] == list(range(1, 302)) and stored.head == 301
    assert [records[start - 1].turn_id for _, start in stored.turns] == [turn_id for turn_id, _ in stored.turns]
    assert all(isinstance(records[start - 1].event, m.TurnStarted) for _, start in stored.turns)


def test_many_sessions_differ() -> None:
    records = list(many_sessions(5))
    assert len({record.session_id for record in records}) == 5
