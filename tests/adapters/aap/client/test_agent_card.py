"""What a server tells of its agents: which one is meant, and what it can do."""

from typing import Any

import pytest
from msgspec.structs import replace

import gateway.model as m
from adapters.aap.bodies import ServerToolBody
from adapters.aap.client.readers import best_stream_mode, read_agent_card
from adapters.aap.client.requests import settings_to_send
from adapters.aap.server.views import meta_body
from gateway.backends.demo.backend import DEMO_CARD
from gateway.errors import BackendFailed
from tests.support.dialect_tables import table

OBJECT = {"type": "object"}


def described(*agents: dict[str, Any], version: Any = 3) -> dict[str, Any]:
    return {"version": version, "agents": list(agents)}


def test_our_own_description_comes_back_whole() -> None:
    """But for the model, for directives, and for tools that are denied by themselves: AAP does not tell."""
    ours = replace(DEMO_CARD, model=None, directives=(), tools=(
        *DEMO_CARD.tools[:2], m.AgentTool(spec=m.ToolSpec(name="saw", parameters=OBJECT), permission=m.Permission.ASK)))
    assert read_agent_card(meta_body(table("aap"), [ours]), "it", None) == ours


def test_a_server_that_does_not_say_which_tools_it_trusts_is_trusted_with_none() -> None:
    card = read_agent_card(described({"name": "a", "tools": [{"name": "saw"}]}), "it", None)
    assert [tool.permission for tool in card.tools] == [m.Permission.ASK]
    assert settings_to_send(card, m.Settings()).tools == [ServerToolBody(name="saw", trust=False)]


def test_an_agent_that_says_little_can_do_little() -> None:
    card = read_agent_card(described({"name": "a"}), "it", None)
    assert card == m.AgentCard(name="a", capabilities=m.AgentCapabilities(
        streaming=("none",), history=(), images=(), client_tools=False))
    assert best_stream_mode(card) == "none"


@pytest.mark.parametrize(("modes", "best"), [
    (("none", "message", "delta"), "delta"), (("none", "message"), "message"), (("none",), "none"),
    (("morse",), "none"),
])
def test_the_best_way_to_hear_an_agent(modes: tuple[str, ...], best: str) -> None:
    card = read_agent_card(
        described({"name": "a", "capabilities": {"stream": {mode: {} for mode in modes}}}), "it", None
    )
    assert best_stream_mode(card) == best


def test_the_agent_wanted_is_found_or_the_first_is_taken() -> None:
    two = described({"name": "a"}, {"name": "b"})
    assert [read_agent_card(two, "it", wanted).name for wanted in (None, "a", "b")] == ["a", "a", "b"]
    with pytest.raises(BackendFailed, match="it has no agent 'c'; it has 'a', 'b'"):
        read_agent_card(two, "it", "c")
    with pytest.raises(BackendFailed, match="it has no agent; it has none"):
        read_agent_card(described(), "it", None)


def test_a_version_nobody_understands_is_refused() -> None:
    with pytest.raises(BackendFailed, match="speaks version 4 of AAP"):
        read_agent_card(described({"name": "a"}, version=4), "it", None)


@pytest.mark.parametrize("body", [None, {}, {"version": "3", "agents": []}, {"version": 3, "agents": [{}]}])
def test_what_is_no_description_is_refused(body: Any) -> None:
    with pytest.raises(BackendFailed, match="the description of the server cannot be understood"):
        read_agent_card(body, "it", None)


def test_options_are_read_and_a_hidden_default_is_nobodys_value() -> None:
    options = [
        {"type": "secret", "name": "key", "default": "***"}, {"type": "number", "name": "n", "default": "1"},
        {"type": "select", "name": "mood", "options": ["a", "b"], "default": "a", "title": "Mood"},
    ]
    assert read_agent_card(described({"name": "a", "options": options}), "it", None).options == (
        m.AgentOption(name="key", kind=m.OptionKind.SECRET),
        m.AgentOption(name="mood", kind=m.OptionKind.SELECT, default="a", choices=("a", "b"), title="Mood"),
    )
