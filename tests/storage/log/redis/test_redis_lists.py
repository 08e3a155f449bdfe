"""Lists in Redis: sessions of an older Dragoman, and sessions that another server has written before."""

import gateway.model as m
from gateway.storage.log.redis import RedisLog
from gateway.storage.redis import RedisAddress, RedisClient
from tests.support.redis_server import redis_of_this_run
from tests.support.storage.event_logs import created, put


def opened_on(prefix: str) -> RedisLog:
    return RedisLog(RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={prefix}")))


async def test_sessions_of_an_older_dragoman_are_put_into_the_lists() -> None:
    old = opened_on("older")
    await old.open()
    await put(old, created("s1"), created("s2"))
    for session_id in ("s1", "s2"):
        await old.redis.read_all([("HDEL", old.redis.key("s", session_id), "summary", "labels")])
    keys = [old.redis.key(f"{order}list", "3", "ann", label) for order in ("created", "updated")
            for label in ("", "open", "agent=a")]
    await old.redis.read_all([("DEL", old.redis.key("lists"), old.redis.key("times", "ann"), *keys)])
    assert await old.count_listed("ann", "") == 0
    await old.close()
    new = opened_on("older")
    await new.open()
    assert [row.session_id for row in await new.listed("ann", "open", "created")] == ["s2", "s1"]
    assert await new.count_listed("ann", "agent=a") == 2
    assert len(await new.created_between("ann", 0.0, 9.0, 5) or ()) == 2
    await new.close()


async def created_by_an_older(log: RedisLog, *session_ids: str) -> None:
    """Create sessions, and take back what an older Dragoman does not store."""
    await put(log, *map(created, session_ids))
    await log.redis.read_all([("ZREM", log.redis.key("times", "ann"), *session_ids),
                              ("DECRBY", log.redis.key("timed"), len(session_ids))])


async def removed_by_an_older(log: RedisLog, session_id: str) -> None:
    """Remove a session, and leave what an older Dragoman does not remove."""
    await log.delete_session(session_id)
    await log.redis.read_all([("ZADD", log.redis.key("times", "ann"), 1.0, session_id)])


async def all_times(log: RedisLog) -> list[str]:
    rows = await log.created_between("ann", 0.0, 9.0, 9)
    assert rows is not None, "whoever asks must look at all sessions"
    return [row.session_id for row in rows]


async def test_sessions_that_an_older_dragoman_creates_or_removes_are_noticed() -> None:
    log = opened_on("beside-older")
    await log.open()
    await created_by_an_older(log, "s1", "s2")
    assert await all_times(log) == ["s1", "s2"], "all sessions of an older one"
    await put(log, created("s3"))
    await removed_by_an_older(log, "s1")
    assert await all_times(log) == ["s2", "s3"]
    await removed_by_an_older(log, "s2")
    await created_by_an_older(log, "s4")
    await put(log, created("s5"))
    assert await all_times(log) == ["s3", "s4", "s5"], "there are as many times as sessions, but not of the same ones"
    await log.close()


async def test_a_session_without_a_summary_has_no_time() -> None:
    log = opened_on("without-summary")
    await log.open()
    await created_by_an_older(log, "s1")
    await log.redis.read_all([("HDEL", log.redis.key("s", "s1"), "summary")])
    assert await log.created_between("ann", 0.0, 9.0, 5) is None, "whoever asks must look at all sessions"
    await log.close()


async def test_a_server_goes_on_with_the_summary_that_another_server_has_stored() -> None:
    first, second = opened_on("shared"), opened_on("shared")
    await first.open()
    await second.open()
    await put(first, created("s"), m.Record(seq=2, at=2.0, session_id="s", event=m.SessionUpdated(title="Tea")))
    second.hold("s", first.let_go("s") or "", 2)
    closed = m.SessionClosed(reason=m.CloseReason.ARCHIVED)
    await put(second, m.Record(seq=3, at=3.0, session_id="s", event=closed))
    [row] = await first.listed("ann", "", "updated")
    assert (row.summary.title, row.summary.closed, row.summary.updated_at) == ("Tea", m.CloseReason.ARCHIVED, 3.0)
    assert await first.count_listed("ann", "open") == 0
    await first.close()
    await second.close()
