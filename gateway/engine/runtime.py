"""What all sessions share: the log, the clock, agents and limits; and the session as its turns see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import gateway.model as m
from gateway.errors import NotFound
from gateway.ids import Mint
from gateway.ports import Backend, ChosenRoute, Clock, EventLog, MemoryRecall, SkillReader
from gateway.quotas import Quotas


class EngineLimits(Protocol):
    """The limits in the settings that the engine obeys."""

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
    """Counts turns; nothing depends on it."""

    def turn_ended(self, view: m.SessionView, ended: m.TurnEnded) -> None: ...


class TurnTracer(Protocol):
    """Traces turns; nothing depends on it."""

    def begin(self) -> tuple[str, str | None]:
        """The trace of a turn that starts now, as a header `traceparent`, and the id of the client's span."""
    def committed(self, records: Sequence[m.Record]) -> None:
        """These records of one session are stored."""
    def restored(self, records: Sequence[m.Record]) -> None:
        """These are the records of a session whose turn was begun by another process."""


class Routes(Protocol):
    """Says which agent runs a turn."""

    def choose(self, view: m.SessionView, via: Sequence[str]) -> ChosenRoute | None:
        """The agent that runs the next turn in place of that of the session; None for the session's own."""
    def turn_ended(self, rule_id: str, ended: m.TurnEnded) -> None:
        """A turn that a rule has moved is over."""


class NoRoutes:
    """Every turn is run by the agent of its session."""

    def choose(self, view: m.SessionView, via: Sequence[str]) -> ChosenRoute | None:
        return None

    def turn_ended(self, rule_id: str, ended: m.TurnEnded) -> None:
        """No rule has moved it."""


class SessionCleanup(Protocol):
    """Deletes what the application and its backends keep for a session."""

    async def session_deleted(self, session_id: str) -> None:
        """The session and its log are deleted."""


class NoCleanup:
    """Nothing is kept for sessions."""

    async def session_deleted(self, session_id: str) -> None:
        """There is nothing to delete."""


class SessionDefaults(Protocol):
    """Fills in what a new session leaves open."""

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings: ...


class NoDefaults:
    """Nothing is filled in."""

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        return settings


class NoSkills:
    """No session has skills."""

    async def read_file(self, owner: str, skill: m.SkillRef, path: str) -> m.SkillFile:
        raise NotFound(f"there is no skill '{skill.name}'")


class NoMemories:
    """No user has memories."""

    async def recall(self, owner: str, message: str, user: str | None) -> Sequence[m.MemoryRef]:
        return ()


@dataclass(kw_only=True, slots=True)
class Runtime:
    """What all sessions share; `reload` replaces what may change while the server runs."""

    log: EventLog
    clock: Clock
    mint: Mint
    limits: EngineLimits
    agents: Mapping[str, m.AgentCard]
    backends: Mapping[str, Backend]
    observer: TurnObserver
    tracer: TurnTracer | None = None
    tally: Quotas = field(default_factory=Quotas)
    cancel_on_disconnect: bool = False
    is_draining: bool = False
    """Whether the server is about to stop, and starts no turns."""
    cleanup: SessionCleanup = field(default_factory=NoCleanup)
    defaults: SessionDefaults = field(default_factory=NoDefaults)
    skills: SkillReader = field(default_factory=NoSkills)
    memories: MemoryRecall = field(default_factory=NoMemories)
    routes: Routes = field(default_factory=NoRoutes)
    replacement_backends: dict[str, Backend] = field(default_factory=dict)
    """By session: the backend that runs its turns in place of the backend of its agent."""

    def reload(
        self, *, limits: EngineLimits, agents: Mapping[str, m.AgentCard], backends: Mapping[str, Backend],
        cancel_on_disconnect: bool,
    ) -> None:
        """Use new settings from now on; running turns keep their backend."""
        self.limits, self.agents, self.backends = limits, agents, backends
        self.cancel_on_disconnect = cancel_on_disconnect

    def card(self, agent: str) -> m.AgentCard:
        card = self.agents.get(agent)
        if card is None:
            raise NotFound(f"there is no agent '{agent}'")
        return card


class SessionWriter(Protocol):
    """Appends events to the log of one session."""

    runtime: Runtime
    view: m.SessionView
    grammar: m.Grammar
    stored_seq: int
    changed_seq: int

    def append(self, event: m.AnyEvent, scope_id: str = ..., turn_id: str | None = ...) -> m.Record:
        """Check the event against the grammar, number it, and append it to the log."""
    def append_delta(self, event: m.BlockDelta, turn_id: str) -> None:
        """Append one delta of the agent itself."""
    def append_deltas(self, deltas: Sequence[m.BlockDelta], turn_id: str) -> None:
        """Append several deltas that arrived together."""
    def turn_ended(self, turn_id: str, ended: m.TurnEnded) -> None:
        """The turn has ended, and its last record is appended."""
