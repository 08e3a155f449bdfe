"""The settings of an ACP agent in config.yaml."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from gateway.backends.setting_types import Executable, SecretSetting


class AcpSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    env: dict[str, SecretSetting] = {}
    command: Executable
    args: tuple[str, ...] = ()
    root: Path = Path("data/acp")
    auth_method: str | None = None
    start_seconds: PositiveFloat = 30
    answer_seconds: PositiveFloat = 60
    cancel_seconds: PositiveFloat = 5
    starts_per_minute: PositiveInt = 5
    line_bytes: PositiveInt = 16 * 1024 * 1024

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that are removed from messages of the agent."""
        return tuple(value.get_secret_value() for value in self.env.values())
