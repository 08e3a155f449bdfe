"""A turn gets the memories that fit its message and announces them once, if the session uses memories."""

from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

import gateway.model as m
from gateway.engine.session import Session
from gateway.engine.session_cache import find_session
from gateway.errors import Overloaded
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture, names
from tests.support.engine.single_turn import HELLO, ended

TEA = m.MemoryRef(number=7, content="Likes tea.", skill="kitchen")
ANNOTATION = [{"id": 7, "content": "Likes tea.", "skill_name": "kitchen"}]


class Recall:
    """Finds one memory, whatever is asked, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []

    async def recall(self, owner: str, message: str, user: str | None) -> Sequence[m.MemoryRef]:
        self.asked.append((owner, message, user))
        return [TEA]


class Failing:
    async def recall(self, owner: str, message: str, user: str | None) -> Sequence[m.MemoryRef]:
        raise Overloaded("the store is away")


GIVEN: list[Sequence[m.MemoryRef]] = []


async def two_messages(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    GIVEN.append(turn.memories)
    for message_id in ("m1", "m2"):
        for event in HELLO:
            yield replace(event, message_id=message_id)  # type: ignore[misc]


async def asking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    for event in HELLO:
        yield event  # type: ignore[misc]
    await turn.ask(m.ContinuationAsk(turn=1, message="Go on?"))
    GIVEN.append(turn.memories)
    for event in HELLO:
        yield replace(event, message_id="m2")  # type: ignore[misc]


async def begun(stage: EngineFixture, **settings: object) -> Session:
    GIVEN.clear()
    session = await stage.session("ann")
    if settings:
        session.submit([m.Configure(settings=m.Settings(**settings))])  # type: ignore[arg-type]
    session.submit([m.SendMessage(content=(m.TextPart(text="Some "), m.TextPart(text="tea?")))])
    await stage.until(session)
    return session


async def test_the_first_message_of_a_turn_announces_the_memories() -> None:
    stage = EngineFixture(two_messages)
    stage.runtime.memories = recall = Recall()
    session = await begun(stage, memory=True, memory_user="x")
    records = await stage.records(session)
    assert recall.asked == [("ann", "Some tea?", "x")]
    assert GIVEN == [[TEA]]
    told = [record.event for record in records if isinstance(record.event, m.MessageAnnotated)]
    assert told == [m.MessageAnnotated(message_id="m1", topic=m.AnnotationTopic.MEMORY_REFS, content=ANNOTATION)]
    at = names(records).index("message.annotated")
    assert names(records)[at - 1] == "message.started"


async def test_off_is_off() -> None:
    for settings in ({}, {"memory": False}):
        stage = EngineFixture(two_messages)
        stage.runtime.memories = recall = Recall()
        session = await begun(stage, **settings)
        assert (recall.asked, GIVEN) == ([], [()])
        assert "message.annotated" not in names(await stage.records(session))


async def test_settings_that_say_nothing_of_memories_leave_their_use_as_it_is() -> None:
    stage = EngineFixture(two_messages)
    session = await begun(stage, memory=True, memory_user="x")
    session.submit([m.Configure(settings=m.Settings(system="Be brief."))])
    assert session.view.settings == m.Settings(system="Be brief.", memory=True, memory_user="x")
    session.submit([m.Configure(settings=m.Settings(memory=False))])
    assert session.view.settings.memory is False


async def test_a_store_that_fails_does_not_stop_the_turn() -> None:
    stage = EngineFixture(two_messages)
    stage.runtime.memories = Failing()
    records = await stage.records(await begun(stage, memory=True))
    assert GIVEN == [()]
    assert ended(records).outcome is m.Outcome.COMPLETED


async def test_a_turn_that_waited_over_a_restart_keeps_its_memories_and_counts_them_once() -> None:
    stage = EngineFixture(asking)
    stage.runtime.memories = recall = Recall()
    session = await begun(stage, memory=True)
    again = EngineFixture(asking, log=stage.runtime.log)
    again.runtime.memories = recall
    await again.service.recover()
    session = await find_session(again.cache, "ann", session.view.session_id)
    [request_id] = session.view.asks
    session.submit([m.ContinueTurn(request_id=request_id)])
    await again.until(session, m.TurnEnded)
    assert len(recall.asked) == 1
    assert GIVEN == [(TEA,)]
    assert names(await again.records(session)).count("message.annotated") == 1
