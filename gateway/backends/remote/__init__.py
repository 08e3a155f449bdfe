"""The `remote` kind: a server of one of the served dialects as the agent."""

import importlib
from collections.abc import Mapping
from functools import cache

from pydantic import ValidationInfo, field_validator

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, MadeBackend
from gateway.backends.setting_types import UpstreamSettings
from gateway.ports import Dialect, Remote, RemoteAddress

from .backend import RemoteBackend, SessionLink


@cache
def find_dialect(name: str) -> Dialect:
    found: Dialect = importlib.import_module("adapters").load_dialect(name)
    return found


@cache
def client_dialects() -> tuple[str, ...]:
    """The dialects that have a client role."""
    names: list[str] = importlib.import_module("adapters").known_dialects()
    return tuple(name for name in names if find_dialect(name).remote is not None)


def open_remote(name: str, address: RemoteAddress) -> Remote:
    """The client role of a dialect, for the server at this address."""
    make = find_dialect(name).remote
    assert make is not None, "settings name only dialects with a client role"
    remote: Remote = make(address)
    return remote


class RemoteSettings(UpstreamSettings):
    dialect: str
    agent: str | None = None
    strict_end: bool = False
    adopt: bool = False
    adopt_for: str = ""

    @field_validator("adopt")
    @classmethod
    def _lists_sessions(cls, adopt: bool, info: ValidationInfo) -> bool:
        if adopt and "dialect" in info.data and find_dialect(info.data["dialect"]).past_sessions is None:
            raise ValueError(f"sessions of {info.data['dialect']} servers cannot be read: the dialect does not say how")
        return adopt

    @field_validator("dialect")
    @classmethod
    def _has_client_role(cls, dialect: str) -> str:
        if dialect not in client_dialects():
            raise ValueError(f"dialect '{dialect}' has no client role; available: {', '.join(client_dialects())}")
        return dialect

    @field_validator("url")
    @classmethod
    def _without_slash(cls, url: str) -> str:
        return url.rstrip("/")

    @property
    def address(self) -> RemoteAddress:
        return RemoteAddress(
            url=self.url, key=self.key.get_secret_value(), agent=self.agent, patience=self.timeouts,
            is_strict=self.strict_end,
        )


def _make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    wanted = RemoteSettings.model_validate(settings)
    return MadeBackend(RemoteBackend(
        open_remote(wanted.dialect, wanted.address), wanted.dialect, wanted.url, context.addresses))


KIND = BackendKind(
    make=_make,
    card=m.AgentCard(name="remote", title="Remote agent", capabilities=m.AgentCapabilities(images=("http", "data"))),
    settings=RemoteSettings,
)

__all__ = [
    "KIND",
    "RemoteBackend",
    "RemoteSettings",
    "SessionLink",
    "client_dialects",
    "find_dialect",
    "open_remote",
]
