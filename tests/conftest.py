"""What all tests share: a quiet journal, and property tests without a stopwatch."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("dragoman", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")


LONGEST = ("test_kill_sample", "test_fleet", "test_deaths", "test_slow_clients", "test_alarms", "test_conforming")
"""Files whose tests take longest: begun first, so that no worker is left with one when the others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def drop(*entry: Any) -> Any:
    raise structlog.DropEvent


def be_quiet() -> None:
    """What is logged goes nowhere, unless a test captures it."""
    structlog.reset_defaults()
    structlog.configure(processors=[drop])


@pytest.fixture(autouse=True, scope="module")
def journal_put_back() -> Iterator[None]:
    """A test that sets up the journal leaves nothing behind that writes into a closed stream."""
    be_quiet()
    yield
    be_quiet()


@pytest.fixture
def journal_for_a_while() -> Iterator[None]:
    """For a test that sets up the journal for itself."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    be_quiet()
    logging.basicConfig(handlers=handlers, level=level, force=True)
