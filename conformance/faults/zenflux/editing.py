"""Servers that tell something else than what happened: the common base of faults in the events."""

from collections.abc import Iterable
from typing import Any

from conformance.faults.zenflux.memory import Body, Session
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer


class Editing(ZenfluxServer):
    """Passes every event of a run through `edited`, which may change, drop or add."""

    def edited(self, told: Told) -> Iterable[Told]:
        return (told,)

    async def play(self, session: Session) -> Telling:
        async for told in super().play(session):
            for changed in self.edited(told):
                yield changed


def changed(told: Told, **fields: Any) -> Told:
    """The event with these members of data set."""
    return Told(told.type, {**told.data, **fields}, told.message)


def without(told: Told, *names: str) -> Told:
    """The event without these members of data."""
    return Told(told.type, {name: value for name, value in told.data.items() if name not in names}, told.message)


class Dropping(Editing):
    """Leaves out the events of one type."""

    dropped = ""

    def edited(self, told: Told) -> Iterable[Told]:
        return () if told.type == self.dropped else (told,)


class Renoting(ZenfluxServer):
    """Changes the content of one sub-type of message_delta."""

    topic = ""

    def content(self, content: Any) -> Any:
        raise NotImplementedError

    def note(self, topic: str, content: Any) -> Told:
        told = super().note(topic, content)
        if topic != self.topic:
            return told
        other = self.content(content)
        return Told(told.type, {"type": topic, "content": other, "delta": {"type": topic, "content": other}})


class Enveloping(ZenfluxServer):
    """Changes the envelope of every event."""

    def changed(self, envelope: Body) -> Body:
        raise NotImplementedError

    def envelope(self, session: Session, told: Told) -> Body:
        return self.changed(super().envelope(session, told))
