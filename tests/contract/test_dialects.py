"""What every dialect promises, whichever there are: they are found, not listed."""

import inspect

import pytest
from hypothesis import given

import gateway.model as m
from gateway.ports import Dialect, Frame, StreamOptions
from mappings.language import FEATURES, builtin_path
from tests.support.dialect_parts import has_part, part
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.record_streams import sessions


def projections() -> list[tuple[str, StreamOptions]]:
    """Each dialect with each of the options to try; one that names none has none."""
    return [(name, options) for name in DIALECTS for options in _tried(name)]


def _tried(name: str) -> tuple[StreamOptions, ...]:
    if not has_part(name, "stream_options"):
        return (dialect(name).default_options,)
    return tuple(part(name, "stream_options").TRIED)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_called_like_its_folder_and_its_table(name: str) -> None:
    its = dialect(name)
    assert isinstance(its, Dialect)
    assert its.name == name
    assert its.mount.startswith("/")
    assert builtin_path(name).is_file()
    assert table(name).dialect == name


@pytest.mark.parametrize("name", DIALECTS)
def test_a_table_says_how_well_it_carries_every_feature(name: str) -> None:
    assert set(table(name).support) == set(FEATURES)
    lesser = [feature for feature, level in table(name).support.items() if level in ("partial", "fallback")]
    assert [feature for feature in lesser if feature not in table(name).notes] == [], "say what becomes of it"


@pytest.mark.parametrize("name", DIALECTS)
def test_every_fault_can_be_told(name: str) -> None:
    for code in m.FaultCode:
        status, body = table(name).error(code, message="why")
        assert 400 <= status < 600
        assert isinstance(body, dict)
        assert "why" in str(body)


@given(records=sessions())
def test_replay_equals_live(records: list[m.Record]) -> None:
    """One test for all dialects: to make up a session takes longer than to project it."""
    for name, options in projections():
        its = dialect(name)
        first, second = (its.projector(table(name), options) for _ in range(2))
        live = [first.feed(record) for record in records]
        assert [second.feed(record) for record in records] == live, (name, options)
        assert all(isinstance(frame, Frame) and frame.body for frames in live for frame in frames), (name, options)


@given(records=sessions(turns=1))
def test_nothing_is_held_back_beyond_the_end_of_a_turn(records: list[m.Record]) -> None:
    for name, options in projections():
        outbound = dialect(name).projector(table(name), options)
        for record in records:
            outbound.feed(record)
        outbound.flush(records[-1].at + 3600)
        assert outbound.deadline is None, (name, options)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_projector_knows_no_socket_and_no_clock(name: str) -> None:
    source = inspect.getsource(inspect.getmodule(dialect(name).projector))  # type: ignore[arg-type]
    for word in ("import asyncio", "import time", "aiohttp", "datetime.now", "import random", "import uuid"):
        assert word not in source


def test_there_are_events_to_spell() -> None:
    assert len(m.EVENTS) == 27
    assert DIALECTS


@pytest.mark.parametrize("name", DIALECTS)
def test_options_are_hashable_and_equal_by_their_fields(name: str) -> None:
    """Subscribers with equal options share one projection."""
    wanted = [options for its, options in projections() if its == name]
    again = [options for its, options in projections() if its == name]
    assert len({*wanted, *again}) == len(wanted)
    assert isinstance(dialect(name).default_options, StreamOptions)
