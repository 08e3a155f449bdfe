"""The settings are laid over the card of the backend."""

import gateway.model as m
from gateway.composition import merge_card
from gateway.config import AgentSettings

DEFAULT = m.AgentCard(
    name="backend", version="2.0.0", title="Backend", model="m-1",
    tools=(m.AgentTool(spec=m.ToolSpec(name="clock")),),
    options=(m.AgentOption(name="tone"),),
    capabilities=m.AgentCapabilities(images=("http",)),
)


def test_what_the_settings_leave_open_is_the_backends() -> None:
    card = merge_card(DEFAULT, "mine", AgentSettings(backend="demo"))
    assert card.name == "mine"
    assert (card.version, card.title, card.model) == ("2.0.0", "Backend", "m-1")
    assert (card.tools, card.options, card.capabilities) == (DEFAULT.tools, DEFAULT.options, DEFAULT.capabilities)


def test_what_the_settings_say_goes_before_it() -> None:
    card = merge_card(DEFAULT, "mine", AgentSettings.model_validate({
        "backend": "demo", "title": "Mine", "version": "3.1.0", "description": "says little",
        "tools": [{"name": "search", "parameters": {"type": "object"}, "permission": "ask"}],
        "options": [{"name": "mood", "type": "select", "options": ["good", "bad"], "default": "good"}],
        "capabilities": {"streaming": ["none"], "client_tools": False},
    }))
    assert (card.title, card.version, card.description, card.model) == ("Mine", "3.1.0", "says little", "m-1")
    search = m.AgentTool(spec=m.ToolSpec(name="search", parameters={"type": "object"}), permission=m.Permission.ASK)
    assert card.tools == (search,)
    assert card.options == (
        m.AgentOption(name="mood", kind=m.OptionKind.SELECT, default="good", choices=("good", "bad")),
    )
    assert card.capabilities == m.AgentCapabilities(streaming=("none",), images=("http",), client_tools=False)


def test_no_tools_is_something_to_say() -> None:
    assert merge_card(DEFAULT, "mine", AgentSettings(backend="demo", tools=())).tools == ()
