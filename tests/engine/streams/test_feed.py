"""The records of late are at hand for those who read along; who is further behind is told so."""

import asyncio

import pytest

import gateway.model as m
from gateway.engine.streams import feed as feed_module
from gateway.engine.streams.feed import Feed


def notices(first: int, last: int) -> list[m.Record]:
    return [m.Record(seq=seq, at=0.0, session_id="s", event=m.NoticePosted(topic="t", title="x"))
            for seq in range(first, last + 1)]


def numbers(feed: Feed, after: int) -> list[int] | None:
    found = feed.since(after)
    return None if found is None else [record.seq for record in found]


def test_what_came_of_late_is_at_hand_and_the_rest_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "WINDOW", 3)
    feed = Feed("s", 10)
    assert numbers(feed, 10) == []
    for seq in range(11, 18):
        feed.publish(notices(seq, seq))
    assert (feed.records[0].seq, feed.head) == (15, 17)
    assert numbers(feed, 14) == [15, 16, 17]
    assert numbers(feed, 16) == [17]
    assert numbers(feed, 13) is None


def test_what_comes_at_once_is_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "WINDOW", 3)
    feed = Feed("s", 0)
    feed.publish(notices(1, 100))
    assert numbers(feed, 0) == list(range(1, 101))


def test_the_end_of_a_session_is_remembered() -> None:
    feed = Feed("s", 4)
    feed.publish(notices(5, 5))
    assert (feed.over, feed.end) == (False, None)
    end = m.Record(seq=6, at=0.0, session_id="s", event=m.SessionClosed(reason=m.CloseReason.DELETED))
    feed.publish([end])
    assert (feed.over, feed.end) == (True, end)


async def test_news_wake_everybody_who_waits_once() -> None:
    loop, feed = asyncio.get_running_loop(), Feed("s", 0)
    waiters = [loop.create_future() for _ in range(3)]
    feed.waiters.update(dict.fromkeys(waiters))
    waiters[0].cancel()
    feed.publish(notices(1, 1))
    assert [waiter.done() for waiter in waiters] == [True] * 3
    assert feed.waiters == {}
    feed.wake()
