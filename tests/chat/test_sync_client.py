"""A remote spoken to from ordinary code."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

import gateway.model as m
from gateway.chat.sync_client import SyncClient
from gateway.chat.terminal_input import InterruptWatcher
from gateway.errors import BackendFailed, TimedOut
from gateway.ports.remote import DecodedItem, RemoteTurnEnd
from tests.support.chat.scripted_server import ScriptedRemote

HELLO = m.SendMessage(content="hello")
NOTICE = m.NoticePosted(topic="t", title="n")


def test_what_is_heard_comes_one_by_one() -> None:
    remote = ScriptedRemote([NOTICE, RemoteTurnEnd()])
    with InterruptWatcher() as bell, SyncClient(remote, bell) as line:
        assert line.about().name == "scripted"
        assert line.open(m.Settings()) == "sess_1"
        stream = line.start_turn("sess_1", HELLO, m.Settings())
        assert [stream.next(), stream.next(), stream.next()] == [NOTICE, RemoteTurnEnd(), None]
        stream.close()
    assert remote.closed


def test_whoever_breaks_off_waiting_misses_nothing() -> None:
    remote = ScriptedRemote([NOTICE, None])
    with InterruptWatcher() as bell, SyncClient(remote, bell) as line:
        stream = line.start_turn("sess_1", HELLO, m.Settings())
        assert stream.next() == NOTICE
        with pytest.raises(TimedOut):
            stream.next(0.05)
        line.wait(line.interrupt("sess_1"), 60)
        ended = stream.next(30)
        assert isinstance(ended, RemoteTurnEnd)
        assert stream.next(30) is None


def test_a_failure_is_raised_where_it_was_waited_for() -> None:
    remote = ScriptedRemote([BackendFailed("broken")])
    with InterruptWatcher() as bell, SyncClient(remote, bell) as line, pytest.raises(BackendFailed, match="broken"):
        line.answer("sess_1", []).next()


def test_a_stream_nobody_listens_to_is_closed() -> None:
    with InterruptWatcher() as bell, SyncClient(ScriptedRemote([None]), bell) as line:
        stream = line.start_turn("sess_1", HELLO, m.Settings())
        with pytest.raises(TimedOut):
            stream.next(0.05)
        stream.close()


def test_a_stream_that_is_still_heard_is_closed_by_whoever_leaves() -> None:
    """All of it, from the outside in: generators that are left to the end of the loop are closed in any order."""
    closed: list[str] = []

    class Layered(ScriptedRemote):
        async def start_turn(
            self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
        ) -> AsyncGenerator[DecodedItem, None]:
            async with aclosing(self._inner()) as inner:
                try:
                    async for heard in inner:
                        yield heard
                finally:
                    closed.append("outer")

        async def _inner(self) -> AsyncGenerator[DecodedItem, None]:
            try:
                yield NOTICE
                await asyncio.Event().wait()
            finally:
                closed.append("inner")

        async def close(self) -> None:
            closed.append("remote")

    with InterruptWatcher() as bell, SyncClient(Layered(), bell) as line:
        assert line.start_turn("sess_1", HELLO, m.Settings()).next(60) == NOTICE
    assert closed == ["outer", "inner", "remote"]
    closed.clear()
    with InterruptWatcher() as bell, SyncClient(Layered(), bell) as line:
        stream = line.start_turn("sess_1", HELLO, m.Settings())
        assert stream.next(60) == NOTICE
        with pytest.raises(TimedOut):
            stream.next(0.05)  # and still waits for more
    assert closed == ["inner", "outer", "remote"]


def test_whoever_does_not_let_us_go_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.chat.sync_client.CLOSE_SECONDS", 0.05)

    class Clinging(ScriptedRemote):
        async def close(self) -> None:
            await asyncio.Event().wait()

    with InterruptWatcher() as bell, SyncClient(Clinging(), bell) as line:
        assert line.about().name == "scripted"
    assert not line._thread.is_alive()


def test_whoever_presses_ctrl_c_does_not_wait_for_the_goodbye() -> None:
    class Clinging(ScriptedRemote):
        async def close(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    with InterruptWatcher() as bell, SyncClient(Clinging(), bell) as line:
        assert line.about().name == "scripted"
    assert line._thread.is_alive(), "it still waits for the server, and nobody waits for it"
