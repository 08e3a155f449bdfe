"""What handlers may use: a turn is followed until it yields, and a client that goes is said to have left."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import NotFound, Overloaded
from gateway.http import OWNER, Authenticator, Context
from gateway.ports import NO_OPTIONS, Chunk, Frame, Receipt
from tests.support.engine.engine_fixture import CARD

RECEIPT = Receipt(turn_id="turn_1", records=(), after=7, begun=True)


class Sessions:
    """Remembers what was asked of it."""

    def __init__(self, *chunks: Chunk) -> None:
        self.given = list(chunks)
        self.watched: list[tuple] = []
        self.left: list[str] = []
        self.closed = 0

    cut_at, is_draining = None, False

    async def subscribe(self, owner, session_id, dialect, options="", *, after=0, place=None):
        self.watched.append((owner, session_id, dialect, options, after))
        return self

    async def client_left(self, owner, session_id, turn_id):
        self.left.append(turn_id)

    async def chunks(self):
        return [self.given.pop(0)] if self.given else ()

    def close(self):
        self.closed += 1


def context(sessions: Sessions) -> Context:
    return Context(
        dialect="d", mount="/d", sessions=sessions, resources=None, files=None, workspaces=None, answers=None,
        agents={"agent": CARD}, agent_service=None, mcp_tools=None,
        table=None, settings=None,
        guard=Authenticator(None), addresses=None, heartbeat=1, send_timeout=1,
    )


async def test_a_turn_is_followed_from_where_its_stream_begins() -> None:
    sessions = Sessions()
    async with context(sessions).follow_turn("ann", "s", RECEIPT, "delta"):
        pass
    assert sessions.watched == [("ann", "s", "d", "delta", 7)]
    assert (sessions.closed, sessions.left) == (1, [])


async def test_a_client_that_goes_is_said_to_have_left() -> None:
    sessions = Sessions()
    with pytest.raises(ConnectionResetError):
        async with context(sessions).follow_turn("ann", "s", RECEIPT, "delta"):
            raise ConnectionResetError
    assert (sessions.closed, sessions.left) == (1, ["turn_1"])


async def test_a_client_that_goes_before_it_is_told_anything_has_left() -> None:
    class Closed(Sessions):
        async def subscribe(self, owner, session_id, dialect, options="", *, after=0, place=None):
            raise asyncio.CancelledError

    sessions = Closed()
    with pytest.raises(asyncio.CancelledError):
        async with context(sessions).follow_turn("ann", "s", RECEIPT, "delta"):
            pass
    assert sessions.left == ["turn_1"]


@pytest.mark.parametrize(("stored", "left"), [
    (RECEIPT, ["turn_1"]), (replace(RECEIPT, begun=False), []), (Overloaded("the disk is full"), []),
])
async def test_a_client_that_goes_while_its_message_is_stored_has_left(stored: Any, left: list[str]) -> None:
    sessions, storing, is_stored = Sessions(), asyncio.Event(), asyncio.Event()

    async def submit() -> Receipt:
        storing.set()
        await is_stored.wait()
        if isinstance(stored, Exception):
            raise stored
        return stored

    handler = asyncio.create_task(context(sessions).begin_turn("ann", "s", submit()))
    await storing.wait()
    handler.cancel()
    await asyncio.sleep(1)
    assert not handler.done()
    is_stored.set()
    await asyncio.wait([handler])
    assert handler.cancelled()
    assert sessions.left == left


async def test_a_turn_is_awaited_up_to_where_it_yields() -> None:
    sessions = Sessions(
        Chunk(1, (Frame(b"a"),), False), Chunk(2, (Frame(b"b"), Frame(b"c")), True), Chunk(3, (Frame(b"d"),), False))
    assert await context(sessions).await_turn({OWNER: "ann"}, "s", RECEIPT, NO_OPTIONS, None) == b"abc"


async def test_a_session_that_goes_under_a_waiting_client_is_not_found() -> None:
    with pytest.raises(NotFound):
        await context(Sessions()).await_turn({OWNER: "ann"}, "s", RECEIPT, NO_OPTIONS, None)


def test_an_agent_is_found_by_name() -> None:
    assert context(Sessions()).agent("agent") is CARD
    with pytest.raises(NotFound, match="there are 'agent'"):
        context(Sessions()).agent("other")
