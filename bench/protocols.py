"""The protocols of the load client: requests as prepared bytes, and the check of responses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .measure import BenchFailure

PAUSE = 0.05
"""Seconds between the deltas of the demo agent's /slow."""
REPLY = ("You ", "said: ", "(nothing)")
"""What the demo agent says after its directives."""
SLOWLY = ", slowly"


@dataclass(frozen=True)
class Workload:
    """One message to the demo agent, and every delta that must come back."""

    message: str
    deltas: Sequence[str]
    paced: int = 0
    """How many of the deltas have a pause before them."""

    @property
    def text(self) -> str:
        return "".join(self.deltas)


def burst(count: int) -> Workload:
    return Workload(f"/burst {count}", ("word ",) * count + REPLY)


def slow(count: int) -> Workload:
    return Workload(f"/slow {count}", tuple(f"{number + 1} " for number in range(count)) + REPLY, paced=count)


def words(count: int, *, slowly: bool = False) -> Workload:
    """The reply of the bench's model service: all words differ, so that order and number can be checked."""
    deltas = tuple(f"word{number} " for number in range(1, count + 1))
    return Workload(f"{count} words{SLOWLY if slowly else ''}", deltas, paced=count if slowly else 0)


def workload_of(message: str) -> Workload:
    """The workload that such a message stands for."""
    return words(int(message.split()[0]), slowly=message.endswith(SLOWLY))


class LoadProtocol(Protocol):
    """A protocol as the client needs it; each one makes another column possible."""

    name: str
    event_mark: bytes
    """A mark that the bytes of every event have, and no comment has."""
    delta_mark: bytes
    """A mark that the bytes of every text delta have, and nothing else has."""

    def create(self) -> bytes:
        """The request that creates a session; empty if the protocol has none."""

    def session_of(self, body: bytes) -> str: ...
    def turn(self, session: str, message: str) -> bytes: ...
    def create_with(self, history: Sequence[Mapping[str, str]]) -> bytes:
        """The request that creates a session which begins with these messages; empty if the protocol has none."""

    def turn_after(self, session: str, message: str, history: Sequence[Mapping[str, str]]) -> bytes:
        """A turn in such a session, or with these messages."""

    def events(self, body: bytes) -> list[bytes]:
        """The body, divided into what a bare server would write one by one."""

    def check(self, body: bytes, talk: Workload) -> None:
        """Raise `BenchFailure` unless the response has the whole workload, in order, once."""


def post(path: str, body: object, *fields: str) -> bytes:
    content = json.dumps(body).encode()
    head = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            f"Content-Length: {len(content)}", *fields)
    return "\r\n".join(head).encode() + b"\r\n\r\n" + content


class AapProtocol:
    """AAP in stream mode `delta`."""

    name = "aap"
    event_mark = b"event: "
    delta_mark = b"event: text_delta\n"

    def __init__(self, agent: str = "demo") -> None:
        self._agent = agent

    def create(self) -> bytes:
        return post("/aap/sessions", {"agent": {"name": self._agent}})

    def session_of(self, body: bytes) -> str:
        return str(json.loads(body)["sessionId"])

    def turn(self, session: str, message: str) -> bytes:
        said = {"role": "user", "content": message}
        return post(f"/aap/sessions/{session}/turns", {"stream": "delta", "messages": [said]})

    def create_with(self, history: Sequence[Mapping[str, str]]) -> bytes:
        return post("/aap/sessions", {"agent": {"name": self._agent}, "messages": history})

    def turn_after(self, session: str, message: str, history: Sequence[Mapping[str, str]]) -> bytes:
        return self.turn(session, message)  # the session has its history

    def events(self, body: bytes) -> list[bytes]:
        return [event + b"\n\n" for event in body.split(b"\n\n") if event]

    def check(self, body: bytes, talk: Workload) -> None:
        heard = [_named(event) for event in self.events(body) if not event.startswith(b":")]
        deltas = [_field(content, "delta") for name, content in heard if name == b"text_delta"]
        if len(deltas) != len(talk.deltas):
            raise BenchFailure(f"{talk.message}: {len(deltas)} deltas came, not {len(talk.deltas)}")
        if "".join(deltas) != talk.text:
            raise BenchFailure(f"{talk.message}: the deltas do not add up to what the agent says")
        if [name for name, _ in heard if name != b"text_delta"] != [b"turn_start", b"turn_stop"]:
            raise BenchFailure(f"{talk.message}: the stream is not one turn_start, the deltas and one turn_stop")
        if heard[0][0] != b"turn_start" or _field(heard[-1][1], "stopReason") != "end_turn":
            raise BenchFailure(f"{talk.message}: the turn did not begin and end as it should")


class ChatProtocol:
    """Streamed chat completions, as the bench's model service and every proxy in front of it speak them."""

    name = "chat"
    event_mark = b"data: "
    delta_mark = b'"content":"word'

    def __init__(self, key: str = "") -> None:
        self._fields = (f"Authorization: Bearer {key}",) if key else ()

    def create(self) -> bytes:
        return b""

    def session_of(self, body: bytes) -> str:
        return ""

    def turn(self, session: str, message: str) -> bytes:
        return self.turn_after(session, message, ())

    def turn_after(self, session: str, message: str, history: Sequence[Mapping[str, str]]) -> bytes:
        return post("/v1/chat/completions", {
            "model": "bench", "stream": True, "stream_options": {"include_usage": True},
            "messages": [*history, {"role": "user", "content": message}],
        }, *self._fields)

    def create_with(self, history: Sequence[Mapping[str, str]]) -> bytes:
        return b""

    def events(self, body: bytes) -> list[bytes]:
        return [event + b"\n\n" for event in body.split(b"\n\n") if event]

    def check(self, body: bytes, talk: Workload) -> None:
        heard = [_named(event)[1] for event in self.events(body) if not event.startswith(b":")]
        if heard[-1:] != [b"[DONE]"]:
            raise BenchFailure(f"{talk.message}: the stream does not end with [DONE]")
        choices = [choice for content in heard[:-1] for choice in _choices(content)]
        deltas = [said for choice in choices if (said := (choice.get("delta") or {}).get("content"))]
        if len(deltas) != len(talk.deltas):
            raise BenchFailure(f"{talk.message}: {len(deltas)} deltas came, not {len(talk.deltas)}")
        if "".join(deltas) != talk.text:
            raise BenchFailure(f"{talk.message}: the deltas do not add up to what the model says")
        if [choice["finish_reason"] for choice in choices if choice.get("finish_reason")] != ["stop"]:
            raise BenchFailure(f"{talk.message}: the answer did not finish once, and as it should")


def _choices(content: bytes) -> list[dict[str, Any]]:
    try:
        return list(json.loads(content)["choices"])
    except (ValueError, KeyError, TypeError) as error:
        raise BenchFailure(f"an event that is no chunk of an answer: {content[:80]!r}") from error


def _named(event: bytes) -> tuple[bytes, bytes]:
    """The name and the content of one server-sent event."""
    fields = dict(line.split(b": ", 1) for line in event.splitlines() if b": " in line)
    return fields.get(b"event", b""), fields.get(b"data", b"")


def _field(content: bytes, name: str) -> str:
    try:
        return str(json.loads(content)[name])
    except (ValueError, KeyError, TypeError) as error:
        raise BenchFailure(f"an event without {name}: {content[:80]!r}") from error
