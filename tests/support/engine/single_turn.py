"""One turn of a backend made of a function, and what is in the log of it."""

from gateway.model import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    MessageEnded,
    MessageStarted,
    Record,
    SendMessage,
    TurnEnded,
    TurnPhase,
    Usage,
)
from tests.support.engine.engine_fixture import EngineFixture, lawful, names

HELLO = [
    MessageStarted(message_id="m1"),
    BlockStarted(block_id="b1", message_id="m1", kind=BlockKind.TEXT),
    BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TEXT, delta="hel"),
    BlockDelta(block_id="b1", message_id="m1", kind=BlockKind.TEXT, delta="lo"),
    BlockEnded(block_id="b1", message_id="m1", kind=BlockKind.TEXT, text="hello"),
    MessageEnded(message_id="m1", usage=Usage(output_tokens=2)),
]
"""A message of two words."""


async def played(play: object, **limits: float) -> list[Record]:
    """The records of one turn of a backend."""
    stage = EngineFixture(play, **limits)  # type: ignore[arg-type]
    session = await stage.session()
    session.submit([SendMessage(content="go")])
    await stage.until(session, TurnEnded)
    records = await stage.records(session)
    assert lawful(records).turn is TurnPhase.IDLE
    assert names(records).count("turn.ended") == 1
    assert stage.watchman.ended == [records[-1].event.outcome]
    return records


def ended(records: list[Record]) -> TurnEnded:
    event = records[-1].event
    assert isinstance(event, TurnEnded)
    return event


def deep(levels: int) -> dict[str, object]:
    """JSON within JSON."""
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"a": value}
    return value
