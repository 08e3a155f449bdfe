"""What all sessions share knows its agents by name."""

from collections.abc import AsyncGenerator

import pytest

from gateway.engine.house import House
from gateway.errors import NotFound
from gateway.ports import Said, Turn
from tests.support.engine_stage import CARD, Stage


async def silent(turn: Turn) -> AsyncGenerator[Said, None]:
    return
    yield


@pytest.fixture
def house() -> House:
    return Stage(silent).house


def test_an_agent_is_found_by_its_name(house: House) -> None:
    assert house.card("agent") is CARD


def test_an_agent_that_nobody_knows_is_named(house: House) -> None:
    with pytest.raises(NotFound, match="no agent 'nobody'"):
        house.card("nobody")


def test_a_house_keeps_nothing_of_another(house: House) -> None:
    house.performers["s"] = house.backends["agent"]
    assert Stage(silent).house.performers == {}
