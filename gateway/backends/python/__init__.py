"""The `python` kind: a user's function as the agent, `settings: {agent: my_module:reply}`."""

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
    wanted = PythonSettings.model_validate(settings)
    return PythonBackend(load_function(wanted, base), threads=wanted.threads, blocked_seconds=wanted.blocked_seconds)


KIND = BackendKind(make=_make, card=m.AgentCard(name="python", title="Python agent"), settings=PythonSettings)

__all__ = ["KIND", "PythonBackend", "PythonSettings"]
