"""The order of the tests: nothing is lost, and the longest are shared out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import longest_first
from tests.support.longest_first import LONGEST, dealt

SECONDS = {"test_long": 60, "test_longish": 20}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longest_first, "LONGEST", SECONDS)


def items(*stems: str) -> list[Any]:
    return [SimpleNamespace(path=Path(f"tests/{stem}.py"), number=number) for number, stem in enumerate(stems)]


def stems(found: list[Any]) -> list[str]:
    return [item.path.stem for item in found]


MANY = ["test_quick"] * 20 + ["test_longish"] * 4 + ["test_long"] * 4 + ["test_quick"] * 11


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 60])
def test_nothing_is_lost(workers: int) -> None:
    assert sorted(item.number for item in dealt(items(*MANY), workers)) == list(range(len(MANY)))
    assert dealt([], workers) == []


def test_one_worker_begins_with_the_longest() -> None:
    found = dealt(items(*MANY), 1)
    assert stems(found)[:8] == ["test_long"] * 4 + ["test_longish"] * 4
    assert [item.number for item in found[8:]] == [*range(20), *range(28, 39)]


def test_every_part_begins_with_its_share_of_the_longest() -> None:
    found = stems(dealt(items(*MANY), 3))
    parts = [found[:13], found[13:26], found[26:]]
    assert [sum(SECONDS.get(stem, 0) for stem in part) for part in parts] == [120, 100, 100]
    assert all(part.index("test_quick") == sum(stem != "test_quick" for stem in part) for part in parts)


def test_every_file_that_takes_long_is_there() -> None:
    tests = Path(__file__).parents[1]
    there = {path.stem for path in tests.rglob("test_*.py") if tests / "prove" not in path.parents}
    assert set(LONGEST) <= there
