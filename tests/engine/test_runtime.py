"""What all sessions share knows its agents by name."""

from collections.abc import AsyncGenerator

import pytest

from gateway.engine.runtime import Runtime
from gateway.errors import NotFound
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import CARD, EngineFixture


async def silent(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    return
    yield


@pytest.fixture
def runtime() -> Runtime:
    return EngineFixture(silent).runtime


def test_an_agent_is_found_by_its_name(runtime: Runtime) -> None:
    assert runtime.card("agent") is CARD


def test_an_agent_that_nobody_knows_is_named(runtime: Runtime) -> None:
    with pytest.raises(NotFound, match="no agent 'nobody'"):
        runtime.card("nobody")


def test_a_house_keeps_nothing_of_another(runtime: Runtime) -> None:
    runtime.replacement_backends["s"] = runtime.backends["agent"]
    assert EngineFixture(silent).runtime.replacement_backends == {}
