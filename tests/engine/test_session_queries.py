"""A turn or an ask is found by its id alone, by its owner."""

from collections.abc import AsyncGenerator

import pytest

import gateway.model as m
from gateway.errors import Busy, NotFound
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture, names
from tests.support.gateway_server import until


async def asking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    await turn.ask(m.ContinuationAsk(turn=1, message="go on?"))
    return
    yield


async def test_a_turn_and_its_ask_are_found_while_it_goes_on_and_afterwards() -> None:
    stage = EngineFixture(asking)
    session = await stage.session("ann")
    receipt = await stage.service.submit("ann", session.view.session_id, [m.SendMessage(content="hi")])
    await stage.until(session, m.TurnSuspended)
    assert receipt.turn_id is not None
    [request_id] = session.view.asks
    for word in (receipt.turn_id, request_id):
        assert await stage.service.find_by_id("ann", word) is session.view
        with pytest.raises(NotFound):
            await stage.service.find_by_id("bob", word)
    assert await stage.service.active("ann") == [session.view]
    assert await stage.service.active("bob") == []
    await stage.service.submit("ann", session.view.session_id, [m.ContinueTurn(request_id=request_id)])
    await stage.until(session, m.TurnEnded)
    assert await stage.service.find_by_id("ann", receipt.turn_id) is session.view
    assert await stage.service.active("ann") == []
    await stage.service.delete("ann", session.view.session_id)
    with pytest.raises(NotFound):
        await stage.service.find_by_id("ann", receipt.turn_id)


async def test_an_ask_that_expired_is_remembered() -> None:
    stage = EngineFixture(asking, ask_seconds=0.01)
    session = await stage.session()
    receipt = await stage.service.submit("", session.view.session_id, [m.SendMessage(content="hi")])
    await until(lambda: session.run is None)  # a timer of the house has to fire
    assert list(session.view.expired.values()) == [receipt.turn_id]


async def test_an_agent_changes_between_turns_only() -> None:
    stage = EngineFixture(asking)
    session = await stage.session()
    with pytest.raises(NotFound):
        await stage.service.update("", session.view.session_id, agent="nobody")
    view = await stage.service.update("", session.view.session_id, agent="agent")
    assert view.agent == "agent"
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="hi")])
    with pytest.raises(Busy):
        await stage.service.update("", session.view.session_id, agent="agent")


async def test_which_agent_a_session_has_is_not_a_backends_to_say() -> None:
    async def usurping(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        yield m.SessionUpdated(agent="another")

    stage = EngineFixture(usurping)
    session = await stage.session()
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="hi")])
    await stage.until(session, m.TurnEnded)
    assert session.view.agent == "agent"
    assert "fault.raised" in names(await stage.records(session))
