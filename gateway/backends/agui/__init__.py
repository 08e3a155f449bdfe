"""The `agui` kind: an agent behind an AG-UI URL."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.backends.kinds import BackendKind
from gateway.ports import Backend

from .backend import AguiBackend
from .settings import AguiSettings


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    return AguiBackend(AguiSettings.model_validate(settings))


KIND = BackendKind(
    make=_make,
    card=m.AgentCard(name="agui", title="AG-UI agent", capabilities=m.AgentCapabilities(images=("data", "http"))),
    settings=AguiSettings,
)

__all__ = ["KIND", "AguiBackend", "AguiSettings"]
