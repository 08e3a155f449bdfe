"""The `remote` kind: a server of one of the served dialects as the agent."""

from collections.abc import Mapping

import gateway.model as m
from gateway.backends.kinds import BackendContext, BackendKind, MadeBackend

from .backend import RemoteBackend
from .settings import RemoteSettings, client_dialects, find_dialect, open_remote


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
    "client_dialects",
    "find_dialect",
    "open_remote",
]
