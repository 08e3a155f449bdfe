"""Tests that read like the talk they test: `>>` feeds an event, `<<` expects what is said to it."""

from typing import Any, Self

import orjson

import gateway.model as m
from gateway.ports import Frame, Framing, Projector


class Silence:
    """Nothing is said."""


silence = Silence()
KID = "kid"


class Playbook:
    """One projector, fed by hand; every frame that was said must be expected, in order."""

    def __init__(self, projector: Projector, framing: Framing = "sse", session_id: str = "sess_1") -> None:
        self._projector = projector
        self._framing = framing
        self._session_id = session_id
        self._seq = 0
        self._said: list[Any] = []

    def __rshift__(self, event: m.AnyEvent | tuple[str, m.AnyEvent]) -> Self:
        assert self._said == [], f"said and not expected: {self._said}"
        scope_id, event = event if isinstance(event, tuple) else (m.ROOT, event)
        self._seq += 1
        record = m.Record(
            seq=self._seq, at=1_700_000_000 + self._seq / 8, session_id=self._session_id, turn_id="turn_1",
            scope_id=scope_id, event=event,
        )
        self._said = [_read(frame, self._framing) for frame in self._projector.feed(record)]
        return self

    def __lshift__(self, expected: Any) -> Self:
        if expected is silence:
            assert self._said == [], f"expected silence, heard {self._said}"
            return self
        assert self._said, f"expected {expected}, heard nothing"
        heard = self._said.pop(0)
        assert heard == expected
        return self


def _read(frame: Frame, framing: Framing) -> Any:
    if framing == "json":
        return orjson.loads(frame.body)
    if framing == "socketio":
        return {"event": frame.name, "data": orjson.loads(frame.body)}
    lines = frame.body.decode().split("\n")
    assert lines[-2:] == ["", ""], "a server-sent event ends with a blank line"
    fields = dict(line.split(": ", 1) for line in lines[:-2])
    fields["data"] = orjson.loads(fields["data"])
    return fields
