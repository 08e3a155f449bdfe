"""Every kind of backend can be made from settings, and has a card."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.backends import DEMO_CARD, DemoBackend
from gateway.backends.kinds import KINDS, BackendContext, kind_of
from gateway.errors import NotFound


def test_every_kind_has_settings_and_a_card() -> None:
    assert all(kind.card.name == word and kind.settings for word, kind in KINDS.items())
    assert kind_of("demo", Path()) is KINDS["demo"]
    with pytest.raises(NotFound, match="no backend 'demmo'"):
        kind_of("demmo", Path())


def test_the_demo_needs_no_settings() -> None:
    assert isinstance(KINDS["demo"].make({}, BackendContext(Path())).backend, DemoBackend)
    with pytest.raises(ValidationError, match="dealy"):
        KINDS["demo"].make({"dealy": 1}, BackendContext(Path()))


def test_the_demos_card() -> None:
    assert {tool.spec.name: tool.permission for tool in DEMO_CARD.tools} == {
        "clock": "allow", "calc": "allow", "search": "allow", "erase": "ask",
    }
    assert {option.name: option.kind for option in DEMO_CARD.options} == {
        "greeting": "text", "mood": "select", "api_key": "secret",
    }
    assert all(option.default in option.choices for option in DEMO_CARD.options if option.choices)
    assert all(tool.spec.description and tool.spec.parameters["type"] == "object" for tool in DEMO_CARD.tools)
