"""Settings are checked against the agent's card, and secrets put apart."""

import pytest
from msgspec.structs import replace

import gateway.model as m
from gateway.engine.settings_validation import validate_settings
from gateway.errors import GatewayError
from tests.support.engine.engine_fixture import CARD


def test_secrets_are_put_apart_and_stay_so() -> None:
    once = validate_settings(CARD, m.Settings(options={"api_key": "hush", "tone": "warm"}))
    assert once.options == {"tone": "warm"}
    assert once.secrets == {"api_key": "hush"}
    assert validate_settings(CARD, once) == once


def test_a_secret_can_be_set_anew() -> None:
    assert validate_settings(CARD, m.Settings(secrets={"api_key": "old"}, options={"api_key": "new"})).secrets == {
        "api_key": "new"
    }


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (m.Settings(tools={"hammer": m.Permission.ALLOW}), "no tool 'hammer'; it has 'clock', 'calc'"),
        (m.Settings(options={"volume": "11"}), "no option 'volume'"),
        (m.Settings(options={"size": "huge"}), "takes 'small', 'large', not 'huge'"),
        (m.Settings(client_tools=(m.ToolSpec(name="a"), m.ToolSpec(name="a"))), "two client tools are named 'a'"),
        (
            m.Settings(tools={"calc": m.Permission.ASK}, client_tools=(m.ToolSpec(name="calc"),)),
            "name of an enabled server tool",
        ),
        (m.Settings(client_tools=(m.ToolSpec(name="clock"),)), "name of an enabled server tool"),
    ],
)
def test_what_does_not_fit_is_named(settings: m.Settings, complaint: str) -> None:
    with pytest.raises(GatewayError, match=complaint):
        validate_settings(CARD, settings)


def test_a_client_tool_may_have_the_name_of_a_server_tool_that_is_off() -> None:
    settings = m.Settings(tools={"clock": m.Permission.ALLOW}, client_tools=(m.ToolSpec(name="calc"),))
    assert validate_settings(CARD, settings) == settings


def test_an_agent_without_client_tools_takes_none() -> None:
    card = replace(CARD, capabilities=m.AgentCapabilities(client_tools=False))
    with pytest.raises(GatewayError, match="does not take tools"):
        validate_settings(card, m.Settings(client_tools=(m.ToolSpec(name="mine"),)))
