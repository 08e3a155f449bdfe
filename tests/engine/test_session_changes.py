"""What the session service does beside turns: rewind, tell, let somebody else perform, and put away."""

from collections.abc import AsyncGenerator

import pytest

import gateway.model as m
from gateway.errors import Busy, Conflict, NotFound, OutcomeUnknown, Overloaded
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture, FunctionBackend, RecordedCleanup, lawful, names


async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="the agent")


async def other(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="somebody else")


@pytest.fixture
def stage() -> EngineFixture:
    return EngineFixture(play)


async def test_a_session_is_rewound_to_a_checkpoint_and_nowhere_else(stage: EngineFixture) -> None:
    session = await stage.session("ann")
    session.submit([m.SendMessage(content="one")])
    with pytest.raises(Busy):
        await stage.service.rewind("ann", session.view.session_id, 1)
    await stage.until(session, m.TurnEnded)
    with pytest.raises(NotFound, match="cannot be rewound to record 2"):
        await stage.service.rewind("ann", session.view.session_id, 2)
    with pytest.raises(NotFound):
        await stage.service.rewind("bob", session.view.session_id, 1)
    view = await stage.service.rewind("ann", session.view.session_id, 1, "wrong way")
    assert view.entries == []
    records = await stage.records(session)
    assert names(records)[-1] == "session.rewound"
    lawful(records)


async def test_those_who_watch_are_told_of_what_is_beside_the_conversation(stage: EngineFixture) -> None:
    session = await stage.session("ann")
    await stage.service.post_event("ann", session.view.session_id, m.CustomEvent(topic="x", payload={"a": 1}))
    assert names(await stage.records(session)) == ["session.created", "custom"]
    await stage.service.close("ann", session.view.session_id, m.CloseReason.ARCHIVED)
    with pytest.raises(Conflict):
        await stage.service.post_event("ann", session.view.session_id, m.CustomEvent(topic="x"))


async def test_somebody_else_performs_until_the_agent_has_its_part_back(stage: EngineFixture) -> None:
    session = await stage.session("ann")
    for performer in (FunctionBackend(other), None):
        await stage.service.replace_backend("ann", session.view.session_id, performer)
        session.submit([m.SendMessage(content="go")])
        await stage.until(session, m.TurnEnded)
    titles = [one.event.title for one in await stage.records(session) if isinstance(one.event, m.NoticePosted)]
    assert titles == ["somebody else", "the agent"]
    with pytest.raises(NotFound):
        await stage.service.replace_backend("bob", session.view.session_id, None)


async def test_what_belongs_to_a_session_is_put_away_with_it(stage: EngineFixture) -> None:
    cleanup = stage.runtime.cleanup = RecordedCleanup()
    session = await stage.session("ann")
    await stage.service.replace_backend("ann", session.view.session_id, FunctionBackend(other))
    await stage.service.delete("ann", session.view.session_id)
    assert cleanup.deleted == [session.view.session_id]
    assert stage.runtime.replacement_backends == {}


async def test_a_deletion_whose_cleanup_fails_is_no_refusal() -> None:
    """Redis stopped between the two: the session is gone, and a refusal would say that nothing has happened."""
    class Unreachable:
        async def session_deleted(self, session_id: str) -> None:
            raise Overloaded("nothing can be stored just now")

    stage = EngineFixture(play, cleanup=Unreachable())
    session_id = (await stage.session()).view.session_id
    with pytest.raises(OutcomeUnknown, match="the session is deleted"):
        await stage.service.delete("", session_id)
    with pytest.raises(NotFound):
        await stage.service.get("", session_id)
