"""Any agent of the Agent Client Protocol: a child process, spoken to over its standard input and output."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.backends.command import seen_from
from gateway.backends.kind import Kind
from gateway.model import AgentCard, Capabilities
from gateway.ports import Backend

from .backend import AcpBackend
from .settings import AcpSettings


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    home = base.resolve()
    return AcpBackend(AcpSettings.model_validate(settings, context=seen_from(home)), home)


KIND = Kind(
    make=_make,
    card=AgentCard(
        name="acp", title="ACP agent", capabilities=Capabilities(images=("data", "http"), client_tools=False),
    ),
    settings=AcpSettings,
)

__all__ = ["KIND", "AcpBackend", "AcpSettings"]
