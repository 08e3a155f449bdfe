"""Agents: read from /meta with tolerance, whatever a server puts there."""

from typing import Any

import pytest

from conformance.aap.agent import Agent
from conformance.kit.expect import NotTestable


def test_an_agent_that_declares_nothing_has_the_mode_none() -> None:
    agent = Agent({"name": "bare"})
    assert (agent.modes, agent.history_types, agent.tools, agent.options()) == (("none",), (), (), [])
    assert not agent.takes_client_tools
    assert agent.image_kinds == frozenset()


def test_declarations_are_read() -> None:
    leaf: dict[str, Any] = {}
    told = {"history": {"full": leaf}, "stream": {"delta": leaf}, "application": {"tools": leaf}}
    agent = Agent({"name": "able", "capabilities": {**told, "image": {"data": leaf}}, "tools": [{"name": "clock"}]})
    assert (agent.modes, agent.history_types, agent.tools) == (("delta",), ("full",), ("clock",))
    assert agent.takes_client_tools
    assert agent.image_kinds == {"data"}


@pytest.mark.parametrize("junk", [None, 7, "x", [], [1], {"stream": 7}, {"stream": {"delta": None}}, [{"name": "a"}]])
def test_junk_declares_nothing(junk: Any) -> None:
    agent = Agent({"name": "odd", "capabilities": junk, "tools": "x", "options": junk})
    assert (agent.modes, agent.tools, agent.options()) == (("none",), (), [])


def test_what_is_lacking_is_not_testable() -> None:
    agent = Agent({"name": "bare"})
    for ask in (
        lambda: agent.streamed_modes,
        lambda: agent.option("secret"),
        lambda: agent.needs_mode("delta"),
        agent.needs_full_history,
    ):
        with pytest.raises(NotTestable, match="'bare' does not declare"):
            ask()


def test_an_option_is_found_by_type_and_name() -> None:
    options = [{"type": "text", "name": name, "default": ""} for name in ("a", "b")]
    agent = Agent({"name": "able", "options": options})
    assert agent.option("text")["name"] == "a"
    assert agent.option("text", "b")["name"] == "b"
    with pytest.raises(NotTestable, match="named 'c'"):
        agent.option("text", "c")
