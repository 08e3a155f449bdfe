"""A function of one's own as an agent: `backend: python, settings: {agent: my_module:reply}`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.ports import Backend

from ..kinds import BackendKind
from .agent_function import load_function
from .backend import PythonBackend
from .settings import PythonSettings


def _make(settings: Mapping[str, Any], base: Path) -> Backend:
    said = PythonSettings.model_validate(settings)
    return PythonBackend(load_function(said, base), threads=said.threads, blocked_seconds=said.blocked_seconds)


KIND = BackendKind(make=_make, card=m.AgentCard(name="python", title="Python agent"), settings=PythonSettings)

__all__ = ["KIND", "PythonBackend", "PythonSettings"]
