"""What config.yaml may say of a remote agent: its dialect, where it is, and how long to wait for it."""

import importlib
from functools import cache

from pydantic import field_validator

from gateway.backends.setting_types import UpstreamSettings
from gateway.ports import Dialect, Remote, RemoteAddress


@cache
def find_dialect(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"adapters.{name}").DIALECT
    return found


@cache
def client_dialects() -> tuple[str, ...]:
    """The dialects that can be spoken as a client."""
    names: list[str] = importlib.import_module("adapters").known_dialects()
    return tuple(name for name in names if find_dialect(name).remote is not None)


def open_remote(name: str, address: RemoteAddress) -> Remote:
    """The server at this address, spoken to in this dialect."""
    make = find_dialect(name).remote
    assert make is not None, "settings name only dialects that are spoken"
    remote: Remote = make(address)
    return remote


class RemoteSettings(UpstreamSettings):
    dialect: str
    agent: str | None = None
    strict_end: bool = False

    @field_validator("dialect")
    @classmethod
    def _is_spoken(cls, dialect: str) -> str:
        if dialect not in client_dialects():
            raise ValueError(f"dialect '{dialect}' has no client role; there are: {', '.join(client_dialects())}")
        return dialect

    @field_validator("url")
    @classmethod
    def _is_bare(cls, url: str) -> str:
        return url.rstrip("/")

    @property
    def address(self) -> RemoteAddress:
        return RemoteAddress(
            url=self.url, key=self.key.get_secret_value(), agent=self.agent, patience=self.timeouts,
            is_strict=self.strict_end,
        )
