"""A remote spoken to from ordinary code."""

import asyncio

import pytest

from gateway.chat.line import Line
from gateway.errors import BackendFailed, TimedOut
from gateway.model import NoticePosted, SendMessage, Settings
from gateway.upstream import Ended, Opening
from tests.chat.scripted import ScriptedRemote

HELLO = SendMessage(content="hello")
NOTICE = NoticePosted(topic="t", title="n")


def test_what_is_heard_comes_one_by_one() -> None:
    remote = ScriptedRemote([NOTICE, Ended()])
    with Line(remote) as line:
        assert line.about().name == "scripted"
        assert line.open(Opening()) == "sess_1"
        stream = line.say("sess_1", HELLO, Settings())
        assert [stream.next(), stream.next(), stream.next()] == [NOTICE, Ended(), None]
        stream.close()
    assert remote.closed


def test_whoever_breaks_off_waiting_misses_nothing() -> None:
    remote = ScriptedRemote([NOTICE, None])
    with Line(remote) as line:
        stream = line.say("sess_1", HELLO, Settings())
        assert stream.next() == NOTICE
        with pytest.raises(TimedOut):
            stream.next(0.05)
        line.wait(line.interrupt("sess_1"), 30)
        ended = stream.next(30)
        assert isinstance(ended, Ended)
        assert stream.next(30) is None


def test_a_failure_is_raised_where_it_was_waited_for() -> None:
    with Line(ScriptedRemote([BackendFailed("broken")])) as line, pytest.raises(BackendFailed, match="broken"):
        line.answer("sess_1", []).next()


def test_a_stream_nobody_listens_to_is_closed() -> None:
    with Line(ScriptedRemote([None])) as line:
        stream = line.say("sess_1", HELLO, Settings())
        with pytest.raises(TimedOut):
            stream.next(0.05)
        stream.close()


def test_whoever_does_not_let_us_go_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.chat.line.FAREWELL_SECONDS", 0.05)

    class Clinging(ScriptedRemote):
        async def close(self) -> None:
            await asyncio.sleep(60)

    with Line(Clinging()) as line:
        assert line.about().name == "scripted"
    assert not line._thread.is_alive()
