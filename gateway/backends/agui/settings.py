"""What config.yaml may say of an agent behind an AG-UI address: where it is, how to be let in, how long to wait."""

from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, SecretStr, field_validator

from gateway.backends.secret import Secret
from gateway.upstream import Patience, Upstream


class AguiSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    key: Secret = SecretStr("")
    headers: dict[str, Secret] = {}
    forward: dict[str, Any] = {}
    max_runs: PositiveInt = 25
    connect_seconds: PositiveFloat = 10
    first_byte_seconds: PositiveFloat = 60
    idle_seconds: PositiveFloat = 120
    total_seconds: PositiveFloat = 3600
    attempts: PositiveInt = 3

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        return url

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be seen in a complaint of the agent's."""
        return (self.key.get_secret_value(), *(value.get_secret_value() for value in self.headers.values()))

    @property
    def upstream(self) -> Upstream:
        key = self.key.get_secret_value()
        headers = {name: value.get_secret_value() for name, value in self.headers.items()}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        patience = Patience(
            connect=self.connect_seconds, first_byte=self.first_byte_seconds, idle=self.idle_seconds,
            total=self.total_seconds, attempts=self.attempts,
        )
        return Upstream(self.url, headers=headers, secrets=self.secrets, patience=patience)
