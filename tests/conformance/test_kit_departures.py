"""Departures are noted once for each requirement, with the first thing that was seen."""

import pytest

from conformance.kit import expect
from conformance.kit.departures import Departure, Departures, Reading
from conformance.kit.expect import Unanswered


def test_of_each_requirement_the_first_departure_is_kept() -> None:
    departures = Departures()
    assert departures.first is None
    departures.note("D-A-02", "a number", {"a": None})
    departures.note("D-A-02", "a word", 7)
    departures.adopt([Departure("D-A-02", "x", "y"), Departure("D-A-03", "x", "y")])
    assert departures.noted == [Departure("D-A-02", "a number", '{"a":null}'), Departure("D-A-03", "x", "y")]
    assert departures.first == "D-A-02"
    assert str(departures.transcript).count("departs from") == 1


def test_a_misleading_departure_takes_the_place_of_one_that_misleads_nobody() -> None:
    departures = Departures()
    departures.note("D-A-02", "a number", "x")
    assert not departures.is_misled
    for seen in ("y", "z"):
        departures.note("D-A-02", "a number", seen, is_misleading=True)
    departures.note("D-A-02", "a number", "w")
    assert departures.noted == [Departure("D-A-02", "a number", "y", is_misleading=True)]
    assert departures.is_misled


def test_what_fails_is_noted_for_its_owner_or_for_the_given_one() -> None:
    departures = Departures()
    with departures.noting("D-A-01"):
        expect.fail("a", "b", "D-A-02")
    with departures.noting("D-A-01"):
        expect.fail("a", "b")
    assert [item.owner for item in departures.noted] == ["D-A-02", "D-A-01"]


def test_silence_is_a_failure_of_the_owner() -> None:
    departures = Departures()
    with pytest.raises(Unanswered) as caught, departures.noting("D-A-01"):
        raise Unanswered("a", "b")
    assert (caught.value.owner, departures.noted) == ("D-A-01", [])


def test_a_reading_is_kept_once_and_is_no_departure() -> None:
    shared, own = Departures(), Departures()
    shared.read_as("M-01", "as a list")
    shared.read_as("M-01", "as a list")
    own.adopt_readings(shared.readings)
    own.read_as("M-01", "as a string")
    assert own.readings == [Reading("M-01", "as a list"), Reading("M-01", "as a string")]
    assert own.noted == []
