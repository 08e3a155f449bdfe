"""What a dialect promises: how records become its frames, and all else that the gateway must know about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct
from pydantic import BaseModel

import gateway.model as m


class StreamOptions(Struct, frozen=True):
    """How one client wants its stream; each dialect derives its own. Equal options share one projection."""


NO_OPTIONS = StreamOptions()
"""The options of a stream whose dialect has none."""


class StreamKey(NamedTuple):
    """A dialect and the options of a stream: subscribers of a session with equal keys share one channel."""

    dialect: str
    options: StreamOptions


Framing = Literal["json", "sse", "socketio"]
"""How the frames of a table are put on the wire: as JSON, as server-sent events, as events of Socket.IO."""
FrameCursor = int | str | None
"""What a client names to resume after a frame."""


class Frame(Struct, frozen=True, gc=False):
    """One frame of a dialect, encoded once for all who watch with equal options.

    `name` is the table's word for the frame, `cursor` is what a client names to resume after the frame: both travel
    beside the body, so that nobody looks for them in the bytes.
    """

    body: bytes
    name: str = ""
    cursor: FrameCursor = None


Frames = tuple[Frame, ...]
NO_FRAMES: Frames = ()


class Projector(Protocol):
    """Records in, frames out; a pure function of its options and the records so far, with `record.at` as its clock."""

    def feed(self, record: m.Record) -> Frames: ...
    def flush(self, now: float) -> Frames:
        """The frames that were held back and are due."""
    @property
    def deadline(self) -> float | None:
        """When `flush` should be called, if nothing else happens first."""


@runtime_checkable
class SkippingProjector(Protocol):
    """A projector that works less where nobody wants the frames; to have the method is enough."""

    def skip(self, record: m.Record) -> None:
        """Take the record in, as `feed` does."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One client protocol: what its table must spell, what its clients may send, and where it is served."""

    name: str
    mount: str
    projector: Callable[[Any, Any], Projector]
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
    framings: tuple[Framing, ...] = ("json",)
    """How its frames are put on the wire, those of a default stream first; its table is checked for each."""
    replay_from: Literal["turn", "session"] = "session"
    """From where its outbound must be fed to be in the right state: the start of the turn, or of the session."""
    decoder: Callable[..., Any] | None = None
    """(a mint) → a fresh `gateway.ports.remote.Decoder`: the dialect's stream read instead of written."""
    remote: Callable[..., Any] | None = None
    """(a `gateway.ports.remote.RemoteAddress`) → a `gateway.ports.remote.Remote`: the dialect spoken as a client."""
    recorded_commands: Callable[..., Any] | None = None
    """(a `gateway.ports.ParsedFrame` of either side, a view of what is asked, the table) → the commands in it."""
    default_options: StreamOptions = NO_OPTIONS
    """The options of a plain stream, for those who want to read one and have no wishes."""
