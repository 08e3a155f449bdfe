"""What a dialect promises: how records become its frames, and all else that the gateway must know about it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from msgspec import Struct
from pydantic import BaseModel

import gateway.model as m
from gateway.ids import Mint
from gateway.json_values import JsonObject, JsonValue

from .past_resources import PastResources
from .past_sessions import PastSessions
from .remote import Decoder, ParsedFrame, Remote, RemoteAddress
from .resources import SharedKind, ShownResource

if TYPE_CHECKING:
    from aiohttp import web

Member = TypeVar("Member", bound=StrEnum)
"""A member of one of the model's enums."""


class StreamOptions(Struct, frozen=True):
    """How one client wants its stream; each dialect derives its own. Equal options share one projection."""

    @property
    def reads_deltas(self) -> bool:
        """Whether a projector needs deltas; if it does not, a page of a list is read from the log without them."""
        return True

    def __deepcopy__(self, memo: object) -> Self:
        """Options never change, so copies of a projector share them."""
        return self


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
    """Records in, frames out; a pure function of its options and the records so far, with `record.at` as its clock.

    `copy.deepcopy` makes a projector that goes on by itself: no function that it keeps may be bound to the first one.
    """

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


class CueEncoder(Protocol):
    """Makes the frames of one cue."""

    def __call__(
        self, record: m.Record | None, event: object, extra: Mapping[str, object], cursor: FrameCursor = None, /,
    ) -> Frames:
        """From a record, its event and bindings beside them; every frame gets the cursor."""


class TableEncoder(Protocol):
    """The frames of a table in one framing."""

    def record(
        self, record: m.Record, extra: Mapping[str, object] | None = ..., cursor: FrameCursor = ...
    ) -> Frames:
        """The frames of the record's event; none where the table is silent."""
    def cue(
        self, name: str, record: m.Record | None, bindings: Mapping[str, object] | None = ...,
        cursor: FrameCursor = ...,
    ) -> Frames:
        """The frames of a cue by its name."""
    def cue_encoders(self, kind: type[m.Event]) -> Mapping[str, CueEncoder]:
        """The encoders of one kind of event by its variants, for callers with many such events."""


Binding = object
"""A value that a template of a table uses under a name: anything that can be written as JSON."""


class DialectTable(Protocol):
    """What a dialect calls things: frames, REST bodies, refusals and commands by their names."""

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
    @property
    def support(self) -> Mapping[str, str]:
        """How well the dialect carries each feature."""
    def encoder(self, framing: Framing) -> TableEncoder: ...
    def object(self, name: str, subject: Binding = None, /, **bindings: Binding) -> JsonObject:
        """A REST body, as plain JSON-able values: of the fields of a struct, of bindings, or of both."""
    def read_object(self, name: str, body: JsonValue, /) -> dict[str, Any]:
        """The bindings of a REST body."""
    def read_query(self, name: str, query: Mapping[str, str], /) -> JsonObject:
        """The bindings of a query, by the names of a row of REST bodies."""
    def error(self, code: m.FaultCode, /, **bindings: Binding) -> tuple[int, JsonValue]:
        """The status and body of a refusal."""
    def word(self, enum_map: str, value: StrEnum | str) -> str:
        """The dialect's word for a member of an enum."""
    def meanings(self, enum_map: str, kind: type[Member], *preferred: Member) -> dict[str, Member]:
        """The members that the words of an enum map stand for."""
    def command(self, message: str, /, **bindings: Binding) -> m.AnyCommand:
        """The command that a client message stands for."""
    def read_message(self, message: str, body: JsonValue, /) -> dict[str, Any]:
        """What a client message says, by the names of its row."""
    def read_command(self, message: str, body: JsonValue, /, **given: Binding) -> m.AnyCommand:
        """The command of a client message as it came, with what the session gives to it."""
    def find_message(self, body: JsonValue, *among: str) -> str | None:
        """The message that this body is, of these or of all."""


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A request of a client, for people: a command line, a frame of a WebSocket, or a packet of Socket.IO."""

    title: str
    kind: Literal["curl", "websocket", "socketio"]
    text: str


class ClientPlace(Struct, frozen=True, kw_only=True):
    """Where a client is in a session, as it knows it: the last frame that it has had, and the turn of that frame.

    `address` is the address of the dialect, `key` the words with which curl sends a key, or nothing.
    """

    address: str
    key: str
    session_id: str
    turn_id: str | None = None
    begun_at: int = 0
    """The record that began the turn, or resumed it; 0 before the first turn."""
    cursor: FrameCursor = None
    """The cursor of the last frame."""
    frames: int = 0
    """How many frames the client has had of what that record began."""


RecordedCommands = Callable[[ParsedFrame, m.SessionView, DialectTable], Sequence[m.AnyCommand]]
"""(a frame of a recording, a view of what is asked, the table) → the commands in the frame."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One client protocol: what its table must spell, what its clients may send, and where it is served."""

    name: str
    mount: str
    projector: Callable[[DialectTable, StreamOptions], Projector]
    """(its table, options of its own kind) → a fresh projector."""
    routes: "Callable[[Any], Iterable[web.RouteDef]]"
    """(the `gateway.http.Context` of its handlers, with settings of its own kind) → its routes."""
    cues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cues that its projector writes beside the canonical events, each with the names it binds."""
    former_cues: Mapping[str, str] = field(default_factory=dict)
    """Cues that it had in earlier releases, each with the one that has its place: overrides may still name them."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that its projector binds beside the fields of a canonical event, by event name."""
    messages: Mapping[str, tuple[str, ...]] | tuple[str, ...] = ()
    """Client messages that become commands; with the names its inbound binds where the table has no `wire` for it."""
    objects: Mapping[str, tuple[str, ...] | type[object]] = field(default_factory=dict)
    """REST bodies the table spells, each with the names its views bind, or with the struct whose fields they are."""
    name_types: Mapping[str, object] = field(default_factory=dict)
    """The types of names that code binds, for the API documents: by name, or by row and name: `row.name`."""
    resources: Mapping[SharedKind, ShownResource] = field(default_factory=dict)
    """Where it shows the resources that dialects share."""
    settings: type[BaseModel] | None = None
    """What config.yaml may say under the dialect's name, beside `mount`."""
    examples: Callable[[str, str, str], list[str]] | None = None
    """(address, agent, how to show a key) → command lines to try, printed when a server starts."""
    framings: tuple[Framing, ...] = ("json",)
    """How its frames are put on the wire, those of a default stream first; its table is checked for each."""
    replay_from: Literal["turn", "session"] = "session"
    """Where its projector must begin to be in the right state: at the start of the turn, or of the session."""
    decoder: Callable[[Mint], Decoder] | None = None
    """(a mint) → a fresh decoder: the dialect's stream read instead of written."""
    remote: Callable[[RemoteAddress], Remote] | None = None
    """(the address of a server) → the dialect spoken as a client."""
    past_sessions: Callable[[RemoteAddress, str], PastSessions] | None = None
    """(the address of a server, a user there or the empty text) → the sessions that the server has, to be imported."""
    past_resources: Callable[[RemoteAddress, str], PastResources] | None = None
    """(the address of a server, a user there or the empty text) → what the server shows beside sessions."""
    recorded_commands: RecordedCommands | None = None
    default_options: StreamOptions = NO_OPTIONS
    """The options of a stream for readers without wishes."""
    resume_requests: Callable[[ClientPlace], Sequence[ClientRequest]] | None = None
    """(where a client is) → what it sends after its connection was cut, in order to miss nothing."""
    command_requests: Callable[[ClientPlace, m.AnyCommand], Sequence[ClientRequest]] | None = None
    """(where a client is, a command) → what it sends so that the session gets the command; none if it cannot."""
    session_options: Callable[[BaseModel, m.SessionView], StreamOptions] | None = None
    """(its settings, a session) → the options of the stream that a usual client of the session gets; None: the
    default."""
