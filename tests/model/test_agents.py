"""An agent's card: what it has, and what fills the gaps of a session's settings."""

import gateway.model as m
from tests.support.engine.engine_fixture import CARD


def test_defaults_fill_what_nobody_set() -> None:
    filled = CARD.filled(m.Settings(options={"tone": "warm"}))
    assert filled.options == {"tone": "warm", "size": "small"}
    assert filled.secrets == {"api_key": ""}


def test_tools_and_options_are_found_by_name() -> None:
    assert CARD.tool("clock") is CARD.tools[0]
    assert CARD.tool("hammer") is None
    assert CARD.option("size") is CARD.options[2]
    assert CARD.option("volume") is None
