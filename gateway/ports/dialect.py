"""What a dialect promises: records become its frames, and everything else that the house must know of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

import gateway.model as m


class Projector(Protocol):
    """Records in, frames out; a pure function of its options and the records so far, with `record.at` as its clock."""

    def feed(self, record: m.Record) -> tuple[bytes, ...]: ...
    def flush(self, now: float) -> tuple[bytes, ...]:
        """What was held back and is due."""
    @property
    def deadline(self) -> float | None:
        """When `flush` should be called, if nothing else happens first."""


@runtime_checkable
class SkippingProjector(Protocol):
    """An outbound that spares itself work where nobody wants the frames; to have the method is enough."""

    def skip(self, record: m.Record) -> None:
        """Take the record in, as `feed` does."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One client protocol: what its table must spell, what its clients may send, and where it is served."""

    name: str
    mount: str
    projector: Callable[[Any, str], Projector]
    """(its compiled table, the options of a subscription as one word) → a fresh projector."""
    routes: Callable[..., Any]
    cues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cues that its outbound raises beside the house's events, each with the names it binds."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that its outbound binds on top of the fields of a house event, by event name."""
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Client messages that become commands, each with the names its inbound binds."""
    objects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """REST bodies the table spells, each with the names its views bind."""
    settings: type[BaseModel] | None = None
    """What config.yaml may say under the dialect's name, beside `mount`."""
    examples: Callable[[str, str, str], list[str]] | None = None
    """(address, agent, how to show a key) → command lines to try, printed when a server starts."""
    framings: tuple[Literal["json", "sse"], ...] = ("json",)
    """How its frames are put on the wire; its table is checked against each."""
    replay_from: Literal["turn", "session"] = "session"
    """From where its outbound must be fed to be in the right state: the start of the turn, or of the session."""
    decoder: Callable[..., Any] | None = None
    """(a mint) → a fresh `gateway.ports.remote.Decoder`: the dialect's stream read instead of written."""
    remote: Callable[..., Any] | None = None
    """(a `gateway.ports.remote.RemoteAddress`) → a `gateway.ports.remote.Remote`: the dialect spoken as a client."""
    recorded_commands: Callable[..., Any] | None = None
    """(a `gateway.ports.ParsedFrame` of either side, a view of what is asked, the table) → the commands in it."""
    default_options: str = ""
    """The options of a plain stream, for those who want to read one and have no wishes."""
