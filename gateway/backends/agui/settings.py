"""The settings of an AG-UI agent in config.yaml."""

from typing import Any

from pydantic import Field, PositiveInt

from gateway.backends.setting_types import SecretSetting, UpstreamSettings
from gateway.client import HttpClient


class AguiSettings(UpstreamSettings):
    headers: dict[str, SecretSetting] = Field(default_factory=dict)
    forward: dict[str, Any] = Field(default_factory=dict)
    max_runs: PositiveInt = 25

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that are removed from messages of the agent."""
        return (self.key.get_secret_value(), *(value.get_secret_value() for value in self.headers.values()))

    @property
    def upstream(self) -> HttpClient:
        key = self.key.get_secret_value()
        headers = {name: value.get_secret_value() for name, value in self.headers.items()}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return HttpClient(self.url, headers=headers, secrets=self.secrets, timeouts=self.timeouts)
