"""Settings are checked against the agent's card, and secrets put apart."""

import pytest
from msgspec.structs import replace

from gateway.engine.settings_validation import validate_settings
from gateway.errors import GatewayError
from gateway.model import AgentCapabilities, Permission, Settings, ToolSpec
from tests.support.engine.engine_fixture import CARD


def test_secrets_are_put_apart_and_stay_so() -> None:
    once = validate_settings(CARD, Settings(options={"api_key": "hush", "tone": "warm"}))
    assert once.options == {"tone": "warm"}
    assert once.secrets == {"api_key": "hush"}
    assert validate_settings(CARD, once) == once


def test_a_secret_can_be_set_anew() -> None:
    assert validate_settings(CARD, Settings(secrets={"api_key": "old"}, options={"api_key": "new"})).secrets == {
        "api_key": "new"
    }


@pytest.mark.parametrize(("settings", "complaint"), [
    (Settings(tools={"hammer": Permission.ALLOW}), "no tool 'hammer'; it has 'clock', 'calc'"),
    (Settings(options={"volume": "11"}), "no option 'volume'"),
    (Settings(options={"size": "huge"}), "takes 'small', 'large', not 'huge'"),
    (Settings(client_tools=(ToolSpec(name="a"), ToolSpec(name="a"))), "two client tools are named 'a'"),
    (Settings(tools={"calc": Permission.ASK}, client_tools=(ToolSpec(name="calc"),)), "name of an enabled server tool"),
    (Settings(client_tools=(ToolSpec(name="clock"),)), "name of an enabled server tool"),
])
def test_what_does_not_fit_is_named(settings: Settings, complaint: str) -> None:
    with pytest.raises(GatewayError, match=complaint):
        validate_settings(CARD, settings)


def test_a_client_tool_may_have_the_name_of_a_server_tool_that_is_off() -> None:
    settings = Settings(tools={"clock": Permission.ALLOW}, client_tools=(ToolSpec(name="calc"),))
    assert validate_settings(CARD, settings) == settings


def test_an_agent_without_client_tools_takes_none() -> None:
    card = replace(CARD, capabilities=AgentCapabilities(client_tools=False))
    with pytest.raises(GatewayError, match="does not take tools"):
        validate_settings(card, Settings(client_tools=(ToolSpec(name="mine"),)))
