"""One turn of a backend made of a function, and what is in the log of it."""

import gateway.model as m
from tests.support.engine.engine_fixture import EngineFixture, lawful, names

HELLO = [
    m.MessageStarted(message_id="m1"),
    m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT),
    m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta="hel"),
    m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta="lo"),
    m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, text="hello"),
    m.MessageEnded(message_id="m1", usage=m.Usage(output_tokens=2)),
]
"""A message of two words."""


async def played(play: object, **limits: float) -> list[m.Record]:
    """The records of one turn of a backend."""
    stage = EngineFixture(play, **limits)  # type: ignore[arg-type]
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    records = await stage.records(session)
    assert lawful(records).turn is m.TurnPhase.IDLE
    assert names(records).count("turn.ended") == 1
    assert stage.watchman.ended == [records[-1].event.outcome]
    return records


def ended(records: list[m.Record]) -> m.TurnEnded:
    event = records[-1].event
    assert isinstance(event, m.TurnEnded)
    return event


def deep(levels: int) -> dict[str, object]:
    """JSON within JSON."""
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"a": value}
    return value
