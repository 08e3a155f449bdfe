"""A call that people are asked about says so from its end on, and no other call waits for long."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

import gateway.model as m
from gateway.backends.remote.permissions import HeldCalls
from gateway.errors import BackendFailed
from gateway.ports import ScopedEvent
from gateway.ports.remote import DecodedItem, RemoteAsk
from tests.backends.remote.test_backend import OWNER, far, near, say, where
from tests.support.backends.remote_turns import filtered
from tests.support.dialect_tables import dialects_with_feature

LONG = 3600.0
"""Nobody waits so long: what is held for it is told because of something else."""
ONE, TWO = m.ToolCall(call_id="one", name="saw"), m.ToolCall(call_id="two", name="axe")
OWN = m.ToolCall(call_id="own", name="lamp", origin=m.ToolOrigin.CLIENT)
WORD = m.BlockDelta(block_id="w", message_id="m", kind=m.BlockKind.TEXT, delta="hi")
END = m.MessageEnded(message_id="m", stop_reason=m.StopReason.TOOL_USE)


def made(call: m.ToolCall) -> m.BlockEnded:
    return m.BlockEnded(block_id=call.call_id, message_id="m", kind=m.BlockKind.TOOL_USE, call=call)


def asked(call: m.ToolCall) -> RemoteAsk:
    return RemoteAsk(ask=m.PermissionAsk(call=call), ref=call.call_id)


def permissions(heard: list[DecodedItem]) -> list[m.Permission]:
    events = [one.event if isinstance(one, ScopedEvent) else one for one in heard]
    return [event.call.permission for event in events if isinstance(event, m.BlockEnded) and event.call is not None]


class Server:
    """Says one thing after the other, and then is silent, until it is hung up on."""

    def __init__(self, *heard: DecodedItem | Exception, silent: bool = False) -> None:
        self.heard, self.silent, self.closed = heard, silent, False

    async def stream(self) -> AsyncGenerator[DecodedItem, None]:
        try:
            for one in self.heard:
                if isinstance(one, Exception):
                    raise one
                yield one
            if self.silent:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def all_of(*heard: DecodedItem) -> list[DecodedItem]:
    return [one async for one in filtered(Server(*heard).stream(), HeldCalls(), seconds=LONG)]


async def test_the_calls_that_are_asked_about_say_so() -> None:
    waits = m.ToolStatusChanged(call_id="two", status=m.ToolStatus.AWAITING_INPUT)
    heard = await all_of(made(ONE), made(TWO), END, waits, asked(TWO))
    assert permissions(heard) == [m.Permission.ALLOW, m.Permission.ASK]
    assert heard[2:] == [END, waits, asked(TWO)]


async def test_those_of_sub_agents_do_too() -> None:
    heard = await all_of(ScopedEvent("kid", made(ONE)), ScopedEvent("kid", END), asked(ONE))
    assert permissions(heard) == [m.Permission.ASK]
    assert all(isinstance(one, ScopedEvent) for one in heard[:2])


@pytest.mark.parametrize("shown", [
    WORD, m.ToolReturned(call_id="one"), m.ToolStatusChanged(call_id="one", status=m.ToolStatus.RUNNING),
])
async def test_whatever_shows_a_call_at_work_tells_it_at_once(shown: DecodedItem) -> None:
    server = Server(made(ONE), END, shown, silent=True)
    async with asyncio.timeout(30), aclosing(filtered(server.stream(), HeldCalls(), seconds=LONG)) as stream:
        assert [await anext(stream) for _ in range(3)] == [made(ONE), END, shown]
    assert server.closed


async def test_a_server_that_is_silent_is_not_waited_for() -> None:
    server = Server(made(ONE), silent=True)
    async with asyncio.timeout(30), aclosing(filtered(server.stream(), HeldCalls(), seconds=0.0)) as stream:
        assert await anext(stream) == made(ONE)
    assert server.closed


async def test_a_call_of_the_client_and_one_that_is_known_to_ask_are_not_held() -> None:
    careful = m.ToolCall(call_id="c", name="saw", permission=m.Permission.ASK)
    server = Server(made(OWN), made(careful), silent=True)
    async with asyncio.timeout(30), aclosing(filtered(server.stream(), HeldCalls(), seconds=LONG)) as stream:
        assert [await anext(stream) for _ in range(2)] == [made(OWN), made(careful)]


async def test_what_was_held_is_told_before_a_failure() -> None:
    told = list[DecodedItem]()
    with pytest.raises(BackendFailed):
        async for one in filtered(Server(made(ONE), BackendFailed("cut")).stream(), HeldCalls(), seconds=LONG):
            told.append(one)
    assert told == [made(ONE)]


@pytest.mark.parametrize("dialect", dialects_with_feature("permissions"))
async def test_a_call_that_waits_for_a_permission_is_told_so_in_every_dialect(tmp_path: Path, dialect: str) -> None:
    async with far(tmp_path) as there, near(tmp_path, dialect, where(there, dialect)) as here:
        view = await here.gateway.sessions.create(OWNER, "demo")
        await say(here, view, "/permit")
        assert [pending.ask.kind for pending in view.asks.values()] == ["permission"]
        await here.gateway.runtime.log.wait_stored(view.session_id, view.head)
        records = await here.gateway.sessions.records(OWNER, view.session_id)
        assert permissions([record.event for record in records]) == [m.Permission.ASK]
