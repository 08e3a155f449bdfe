"""Each way of reading a session is one of its own, and nothing is kept for sessions that nobody watches."""

import asyncio

from tests.support.engine.engine_fixture import EngineFixture, PlainProjector
from tests.support.engine.silent_agent import read, silent


async def test_a_different_option_is_another_reading() -> None:
    made: list[tuple[str, str]] = []

    def projector(dialect: str, options: str) -> PlainProjector:
        made.append((dialect, options))
        return PlainProjector()

    stage = EngineFixture(silent, projector=projector)
    session = await stage.session()
    for options in ("delta", "message"):
        cursor = await stage.service.subscribe("", session.view.session_id, "plain", options)
        assert await read(cursor) == [1]
    assert made == [("plain", "delta"), ("plain", "message")]


async def test_the_last_one_to_leave_leaves_nothing_behind() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursors = [await stage.service.subscribe("", session.view.session_id, "plain") for _ in range(3)]
    for cursor in cursors:
        await read(cursor)
        cursor.close()
        cursor.close()
    assert stage.hub.feeds == {}
    assert stage.watchman.watching == 0


async def test_watchers_of_a_session_at_rest_are_let_go_when_the_server_stops() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(cursor) == [1]
    waiting = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await stage.service.drain(1, asyncio.Event())
    assert await waiting == []
    assert cursor.is_draining
    assert stage.hub.subscribers == 0
