"""What all sessions share: the log, the clock, the agents and their limits."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import gateway.model as m
from gateway.errors import NotFound
from gateway.ids import Mint
from gateway.ports import Backend, Clock, EventLog
from gateway.quotas import Quotas


class EngineLimits(Protocol):
    """What the engine wants to know of the limits in the settings."""

    @property
    def turn_seconds(self) -> float: ...
    @property
    def turn_events(self) -> int: ...
    @property
    def ask_seconds(self) -> float: ...
    @property
    def history_messages(self) -> int: ...
    @property
    def max_sessions(self) -> int: ...
    @property
    def cached_sessions(self) -> int: ...
    @property
    def max_subscribers(self) -> int: ...
    @property
    def max_lag_events(self) -> int: ...


class TurnObserver(Protocol):
    """Who counts turns; nothing depends on it."""

    def turn_ended(self, outcome: str, seconds: float) -> None: ...


@dataclass(kw_only=True, slots=True)
class Runtime:
    """What all sessions share."""

    log: EventLog
    clock: Clock
    mint: Mint
    limits: EngineLimits
    agents: Mapping[str, m.AgentCard]
    backends: Mapping[str, Backend]
    observer: TurnObserver
    tally: Quotas = field(default_factory=Quotas)
    cancel_on_disconnect: bool = False
    is_draining: bool = False
    """Set when the server is about to stop: no new turns."""
    after_delete: list[Callable[[str], Awaitable[None]]] = field(default_factory=list)
    """Who puts away what belongs to a session once that is gone."""
    replacement_backends: dict[str, Backend] = field(default_factory=dict)
    """Sessions in which somebody else plays the agent."""

    def card(self, agent: str) -> m.AgentCard:
        card = self.agents.get(agent)
        if card is None:
            raise NotFound(f"there is no agent '{agent}'")
        return card
