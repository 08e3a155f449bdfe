"""What config.yaml may say of a remote agent: its dialect, where it is, and how long to wait for it."""

from pydantic import field_validator

from gateway.backends.address import AddressSettings
from gateway.upstream import RemoteAddress

from .dialling import speakers


class RemoteSettings(AddressSettings):
    dialect: str
    agent: str | None = None
    strict_end: bool = False

    @field_validator("dialect")
    @classmethod
    def _is_spoken(cls, dialect: str) -> str:
        if dialect not in speakers():
            raise ValueError(f"nobody speaks '{dialect}' as a client; there are: {', '.join(speakers())}")
        return dialect

    @field_validator("url")
    @classmethod
    def _is_bare(cls, url: str) -> str:
        return url.rstrip("/")

    @property
    def address(self) -> RemoteAddress:
        return RemoteAddress(
            url=self.url, key=self.key.get_secret_value(), agent=self.agent, patience=self.patience,
            is_strict=self.strict_end,
        )
