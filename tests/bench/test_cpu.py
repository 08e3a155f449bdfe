"""Where the microseconds go: every module belongs to a room or a library, and the rooms together are the whole."""

import asyncio.events
import json
from dataclasses import replace
from pathlib import Path

import aiohttp.web
import pytest

import gateway.engine.session
from bench.measure import choose_cores
from bench.scenarios.cpu import COLUMNS, measure_cpu
from bench.scenarios.runner import TINY, Bench
from bench.stack_sampler import room_of, shares


def test_a_module_belongs_to_a_room_or_a_library() -> None:
    assert room_of(gateway.engine.session.__file__) == "gateway/engine"
    assert room_of(aiohttp.web.__file__) == "aiohttp"
    assert room_of(asyncio.events.__file__) == "asyncio"
    assert room_of(json.__file__) == "Python's library"
    assert room_of("<string>") == "the rest"


def test_looks_are_shared_out() -> None:
    looks: list[list[str | int]] = [
        ["gateway/engine", "a.py:f", 1], ["gateway/engine", "a.py:g", 2], ["aiohttp", "x.py:h", 1]]
    rooms, functions = shares(looks)
    assert rooms == {"gateway/engine": 0.75, "aiohttp": 0.25}
    assert next(iter(functions.items())) == ("gateway/engine a.py:g", 0.5)


def test_the_rooms_together_are_the_whole(tmp_path: Path) -> None:
    effort = replace(TINY, turns=(50, 8), traced=(50, 60, 3))
    *rooms, whole = measure_cpu(Bench(effort, choose_cores(), tmp_path, lambda line: None))
    assert {"gateway/engine", "aiohttp"} & {row.name for row in rooms}
    for column in COLUMNS:
        assert sum(row.figures[column].median for row in rooms) == pytest.approx(whole.figures[column].median)
