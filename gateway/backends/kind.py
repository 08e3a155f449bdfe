"""What config.yaml can name as a backend: how it is made, what it may be told, and what clients are told of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gateway.model import AgentCard
from gateway.ports import Backend

Factory = Callable[[Mapping[str, Any], Path], Backend]
"""(the agent's settings, the folder its paths start from) → the agent."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of agent; `settings` is the shape of what config.yaml may say, where it is known beforehand."""

    make: Factory
    card: AgentCard
    settings: type[BaseModel] | None = None
