"""The `acp` kind: an agent of the Agent Client Protocol, as a child process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.backends.kinds import BackendKind
from gateway.backends.setting_types import settings_context
from gateway.ports import Backend

from .backend import AcpBackend
from .settings import AcpSettings


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    home = base.resolve()
    return AcpBackend(AcpSettings.model_validate(settings, context=settings_context(home)), home)


KIND = BackendKind(
    make=_make,
    card=m.AgentCard(
        name="acp", title="ACP agent", capabilities=m.AgentCapabilities(images=("data", "http"), client_tools=False),
    ),
    settings=AcpSettings,
)

__all__ = ["KIND", "AcpBackend", "AcpSettings"]
