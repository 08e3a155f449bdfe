"""What passes through the proxy, and the interceptor that may change it: by default everything passes as it came."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from multidict import CIMultiDict

SSE, SOCKET, LINK = "sse", "ws", "io"


@dataclass(frozen=True)
class Answer:
    """The answer to one request; `json` is `...` where the body is not JSON, or is a stream still to come."""

    route: str
    status: int
    headers: CIMultiDict[str]
    raw: bytes = b""
    json: Any = ...
    is_stream: bool = False

    @property
    def place(self) -> str:
        """What it answers to and how: `GET /meta 200`, `POST /turns 200 stream`."""
        return f"{self.route} {self.status}" + (" stream" if self.is_stream else "")

    def saying(self, json: Any) -> "Answer":
        """The same answer with another body."""
        return replace(self, json=json, raw=orjson.dumps(json))


@dataclass(frozen=True)
class PassedMessage:
    """One message of a stream or a socket: its name, its JSON value, and the bytes it came in unless it was changed."""

    channel: str
    name: str
    json: Any
    raw: bytes | None = field(default=None, compare=False)
    label: str = ""
    """What the transport itself calls it: the event field, or the head of the packet."""
    id: str = ""

    @property
    def place(self) -> str:
        return f"{self.channel} {self.name}"

    def saying(self, json: Any) -> "PassedMessage":
        return replace(self, json=json, raw=None)


class Cut(Exception):
    """The connection breaks here."""


class StreamInterceptor:
    """Sees one stream or socket from its first message to its last, and says what is passed on instead."""

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        """What is passed on for this message; Cut breaks the connection."""
        return (message,)

    def ended(self) -> Sequence[PassedMessage]:
        """What is still passed on when the server has ended."""
        return ()

    def framed(self, block: bytes) -> Sequence[bytes]:
        """The pieces in which a block of an event stream leaves, each written by itself; comments are blocks too."""
        return (block,)


class Interceptor:
    """Sees all that passes through the proxy."""

    def asked(self, json: Any) -> None:
        """The client has sent this."""

    def answered(self, answer: Answer) -> Answer:
        """What is passed on for this answer; of a stream only the head."""
        return answer

    def stream(self, channel: str) -> StreamInterceptor:
        """The interceptor of the stream or socket that was opened now."""
        return StreamInterceptor()

    async def pause(self) -> None:
        """Awaited before every answer and every message is passed on."""


def event_name(label: str, json: Any) -> str:
    """What an event is called: by its transport, else by what it says of itself."""
    if label and label != "message":
        return label
    message = json if isinstance(json, dict) else {}
    return str(message.get("event") or message.get("type") or label or "message")


def parsed(raw: bytes | str) -> Any:
    """The JSON value, or `...`."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return ...
