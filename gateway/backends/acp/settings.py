"""What config.yaml may say of an agent that is a child process: its command, where it works, how long to wait."""

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
        """What must not be seen in a complaint of the agent's."""
        return tuple(value.get_secret_value() for value in self.env.values())
