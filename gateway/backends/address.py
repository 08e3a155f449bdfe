"""What config.yaml says of any agent that is reached at an address: where it is, and how long it is waited for."""

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, SecretStr, field_validator
from yarl import URL

from gateway.upstream import Patience

from .secret import Secret


class AddressSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    key: Secret = SecretStr("")
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
        try:
            URL(url).origin()
        except ValueError as error:
            raise ValueError(f"this is no address ({error}); write it as http://HOST:PORT/PATH") from None
        return url

    @property
    def patience(self) -> Patience:
        return Patience(
            connect=self.connect_seconds, first_byte=self.first_byte_seconds, idle=self.idle_seconds,
            total=self.total_seconds, attempts=self.attempts,
        )
