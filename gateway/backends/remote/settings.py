"""What config.yaml may say of a remote agent: its dialect, where it is, and how long to wait for it."""

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, SecretStr, field_validator

from gateway.backends.secret import Secret
from gateway.upstream import Patience, RemoteAddress

from .dialling import speakers


class RemoteSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    dialect: str
    url: str
    key: Secret = SecretStr("")
    agent: str | None = None
    connect_seconds: PositiveFloat = 10
    first_byte_seconds: PositiveFloat = 60
    idle_seconds: PositiveFloat = 120
    total_seconds: PositiveFloat = 3600
    attempts: PositiveInt = 3

    @field_validator("dialect")
    @classmethod
    def _is_spoken(cls, dialect: str) -> str:
        if dialect not in speakers():
            raise ValueError(f"nobody speaks '{dialect}' as a client; there are: {', '.join(speakers())}")
        return dialect

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        return url.rstrip("/")

    @property
    def address(self) -> RemoteAddress:
        patience = Patience(
            connect=self.connect_seconds, first_byte=self.first_byte_seconds, idle=self.idle_seconds,
            total=self.total_seconds, attempts=self.attempts,
        )
        return RemoteAddress(url=self.url, key=self.key.get_secret_value(), agent=self.agent, patience=patience)
