"""What a handler reads and answers, declared where the handler is: the API documents are made of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from functools import wraps
from types import UnionType
from typing import Any, TypeAlias, TypeVar

from aiohttp import web
from pydantic import BaseModel

from gateway.ports import Framing

H = TypeVar("H")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_ATTRIBUTE = "operation_answers"
JSON, SSE, OCTETS, FORM = "application/json", "text/event-stream", "application/octet-stream", "multipart/form-data"


class Row:
    """A row of the table's objects; `bound` has what the code binds to some of its names, None if nothing."""

    def __init__(self, name: str, /, **bound: "Shape") -> None:
        self.name, self.bound = name, bound


class AnyFrame:
    """A frame of the table, within a body: any frame of a framing, or one of these names."""

    def __init__(self, framing: Framing, *names: str) -> None:
        self.framing, self.names = framing, names


class TableMessage:
    """What a client sends, as a row of the table's inputs spells it."""

    def __init__(self, name: str) -> None:
        self.name = name


Shape: TypeAlias = (
    str | Row | AnyFrame | TableMessage | type[Any] | UnionType | list[Any] | tuple[Any, ...] | Set[str]
    | Mapping[str, Any] | None
)
"""What a value is: the name of a row, a frame or a message of the table, a list of one shape, one of several shapes
in a tuple, one of the words in a set, members by their names, or a Python type. Among members, `...` has the members of
another shape, and a name that ends in `?` may be absent."""


@dataclass(frozen=True)
class Answers:
    """A decorator of handlers: the body of the answer, and all else that a client must know about the operation."""

    answer: Shape = None
    _: KW_ONLY
    status: int = 200
    reads: Shape = None
    reads_type: str = JSON
    may_be_empty: bool = False
    """The body of the request may be left out."""
    query: type[BaseModel] | str | Mapping[str, Shape] = field(default_factory=dict)
    media_type: str = JSON
    bytes_type: str = ""
    """The media type of bytes that some clients get instead."""
    others: Mapping[int, Shape] = field(default_factory=dict)
    """Answers of other statuses; errors need not be listed."""
    events: Mapping[str, Any] = field(default_factory=dict)
    """The data of server-sent events by their names, where these are no frames of a table."""
    frames: Framing | None = None
    """The answer is a stream of the table's frames."""
    stream_rows: Sequence[str] = ()
    """Rows of the table's objects that the stream has beside its frames."""
    messages: Mapping[str, Shape] = field(default_factory=dict)
    """What a client sends over the socket, by its name."""
    replies: Mapping[str, Shape] = field(default_factory=dict)
    """What a client is answered over the socket, by the name of the message."""
    is_absent: bool = False
    """The route only says that it is not implemented."""
    summary: str = ""
    """What the operation does; without it, the first sentence of the handler's docstring."""

    def __call__(self, handler: H) -> H:
        setattr(handler, _ATTRIBUTE, self)
        return handler


def described(handler: Handler, answers: Answers) -> Handler:
    """The handler with a declaration of its own, for one that several routes share."""
    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    return answers(handle)


def answers_of(handler: object) -> Answers | None:
    """What the handler declares; `functools.wraps` carries it over to a wrapper."""
    found: Answers | None = getattr(handler, _ATTRIBUTE, None)
    return found
