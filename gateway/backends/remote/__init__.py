"""A server of one of our dialects as the agent: what its client would hear, the session hears."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.backends.kind import Kind
from gateway.model import AgentCard, Capabilities
from gateway.ports import Backend

from .backend import RemoteBackend
from .dialling import dialect, dialled, speakers
from .settings import RemoteSettings


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    wanted = RemoteSettings.model_validate(settings)
    return RemoteBackend(dialled(wanted.dialect, wanted.address), wanted.dialect, wanted.url)


KIND = Kind(
    make=_make,
    card=AgentCard(name="remote", title="Remote agent", capabilities=Capabilities(images=("http", "data"))),
    settings=RemoteSettings,
)

__all__ = ["KIND", "RemoteBackend", "RemoteSettings", "dialect", "dialled", "speakers"]
