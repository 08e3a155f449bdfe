"""Where an agent is and how long it is waited for, said the same way of every agent that has an address."""

import pytest
from pydantic import ValidationError

from gateway.backends.agui import AguiSettings
from gateway.backends.remote import RemoteSettings
from gateway.backends.setting_types import UpstreamSettings
from gateway.ports.remote import Timeouts


def test_the_seconds_become_patience() -> None:
    given = UpstreamSettings(
        url="http://x", connect_seconds=1, first_byte_seconds=2, idle_seconds=3, total_seconds=4, attempts=5,
    )
    assert given.timeouts == Timeouts(connect=1, first_byte=2, idle=3, total=4, attempts=5)


@pytest.mark.parametrize("wrong", [{"url": "x"}, {"url": "http://x", "attempts": 0}, {"url": "http://x", "tries": 1}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        UpstreamSettings.model_validate(wrong)


@pytest.mark.parametrize("url", ["http://", "http:///x", "http://[bad", "http://h:99999/x", "http://h:x/x"])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(ValidationError, match=r"this is not an address .*; write it as http://HOST:PORT/PATH"):
        UpstreamSettings(url=url)


def test_agents_with_an_address_have_all_of_it() -> None:
    for settings in (AguiSettings, RemoteSettings):
        assert set(UpstreamSettings.model_fields) < set(settings.model_fields)
