"""Every kind of backend can be made from settings, and has a card."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.backends import BACKENDS, DEMO_CARD, SETTINGS, DemoBackend, card_of


def test_every_backend_has_settings_and_a_card() -> None:
    assert set(BACKENDS) == set(SETTINGS)
    assert all(card_of(kind, {}).name == kind for kind in BACKENDS)


def test_the_demo_needs_no_settings() -> None:
    assert isinstance(BACKENDS["demo"]({}, Path()), DemoBackend)
    with pytest.raises(ValidationError, match="dealy"):
        BACKENDS["demo"]({"dealy": 1}, Path())


def test_the_demos_card() -> None:
    assert [tool.spec.name for tool in DEMO_CARD.tools] == ["clock", "calc", "search"]
    assert {option.name: option.kind for option in DEMO_CARD.options} == {
        "greeting": "text", "mood": "select", "api_key": "secret",
    }
    assert all(option.default in option.choices for option in DEMO_CARD.options if option.choices)
    assert all(tool.spec.description and tool.spec.parameters["type"] == "object" for tool in DEMO_CARD.tools)
