"""What clients can observe of a day, without what differs from day to day: ids, words, numbers and times.

| observation | from |
|---|---|
| `answer: POST /sessions/*/events 202` | every answer to a request, and every refusal on a socket |
| `heard: cas session.status_idle end_turn` | every event of a stream: its name, and the types in it |
| `stream: aap ended`, `stream: aap torn` | every stream that belongs to a turn |
| `turn: completed`, `turn: failed interrupted` | how turns ended, by the logs that clients read |
| `log: block.delta` | the events of these logs |
"""

import re
from collections.abc import Iterator
from typing import Any

import orjson

import gateway.model as m
from tests.prove.crash.history import History


def observations(history: History) -> frozenset[str]:
    """What can be observed, once or often; the order of it, and whether it is complete, is for the judge."""
    return frozenset((*(f"answer: {one}" for one in history.answers), *_heard(history), *_logged(history)))


def _heard(history: History) -> Iterator[str]:
    for hearing in history.hearings:
        dialect, *turn = hearing.stream.split()
        for thing in hearing.heard:
            yield f"heard: {dialect} {event_name(thing)}"
        if turn:
            yield f"stream: {dialect} {'ended' if hearing.ended else 'torn'}"


def _logged(history: History) -> Iterator[str]:
    for records in history.logs.values():
        for record in records:
            yield f"log: {record.event.name}"
            if isinstance(record.event, m.TurnEnded):
                yield f"turn: {record.event.outcome} {record.event.fault.code if record.event.fault else ''}".rstrip()


def event_name(thing: str) -> str:
    """What an event is called, before its JSON or in it, and the types of what stands in its places."""
    head, _, rest = thing.partition("{")
    told = orjson.loads("{" + rest)
    line = re.search(r"^event: (\S+)", head, re.MULTILINE)
    inner = _inside(told, "stop_reason"), _inside(_inside(told, "payload"), "data")
    words = line[1] if line else head.strip(), told.get("event"), *(one.get("type") for one in inner)
    return " ".join(filter(None, words))


def _inside(told: Any, name: str) -> Any:
    found = told.get(name)
    return found if isinstance(found, dict) else {}
