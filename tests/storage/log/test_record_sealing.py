"""Every place of a record where a secret may stand is sealed in the log, and open to the house."""

from pathlib import Path
from uuid import uuid4

import pytest

import gateway.model as m
from gateway.ports import StoredResponse
from gateway.storage import UNSEALED, Database, FernetSeal
from gateway.storage.log import SqliteLog
from gateway.storage.log.redis import RedisLog
from gateway.storage.log.segments import reseal_records, seal_records, unseal_records
from gateway.storage.redis import RedisAddress, RedisClient
from gateway.storage.resources.redis import RedisResources
from gateway.storage.resources.redis_responses import RedisResponses
from tests.support.redis_server import redis_of_this_run

SEAL = FernetSeal(lambda: ["k" * 32])
GIVEN = {"key": "s3cret"}
METADATA = {
    "a": "b",
    m.PRIVATE: {"one": {"x": 1, m.SECRETS: GIVEN}, "two": "no object", "three": {m.SECRETS: "no object"}},
}
DISCREET: list[m.AnyEvent] = [
    m.SessionCreated(agent="a", settings=m.Settings(secrets=GIVEN, options={"o": "v"})),
    m.SessionCreated(agent="a", metadata=METADATA),
    m.SessionUpdated(settings=m.Settings(secrets=GIVEN), metadata=METADATA),
    m.InputAccepted(command_id="c", command=m.Configure(settings=m.Settings(secrets=GIVEN))),
    m.InputAccepted(
        command_id="c", command=m.SendMessage(content="hi", variables={**GIVEN, "n": {"deep": ["s3cret"]}})
    ),
]


def record(event: m.AnyEvent) -> m.Record:
    return m.Record(seq=1, at=1.0, session_id="s", event=event)


@pytest.mark.parametrize("event", DISCREET)
def test_a_secret_is_sealed_wherever_it_stands(event: m.AnyEvent) -> None:
    said = [record(event)]
    closed = seal_records(said, SEAL)
    assert b"s3cret" in m.encode_record(said[0])
    assert b"s3cret" not in m.encode_record(closed[0])
    assert unseal_records([*closed], SEAL) == said


def test_the_rest_is_left_as_it_is() -> None:
    plain = [record(m.NoticePosted(topic="t", title="s3cret")), record(m.SessionUpdated(title="t")),
             record(m.SessionCreated(agent="a", metadata={m.PRIVATE: "forged"}))]
    assert seal_records(plain, SEAL) == unseal_records(plain, SEAL) == reseal_records(plain, SEAL) == plain
    assert seal_records(plain, UNSEALED) is plain
    assert unseal_records(plain, UNSEALED) is plain


def test_what_was_sealed_elsewhere_stays_as_it_is() -> None:
    elsewhere = FernetSeal(lambda: ["of another place"])
    foreign = seal_records([record(DISCREET[0])], elsewhere)
    assert reseal_records([*foreign], SEAL) == foreign
    assert unseal_records(reseal_records([record(DISCREET[4])], SEAL), SEAL) == [record(DISCREET[4])]


async def test_a_log_shows_the_house_what_the_file_does_not_show(tmp_path: Path) -> None:
    log = SqliteLog(Database(tmp_path / "a.db"), SEAL)
    await log.open()
    said = [m.Record(seq=seq, at=1.0, session_id="s", event=event) for seq, event in enumerate(DISCREET, 1)]
    try:
        for one in said:
            log.append(one)
        await log.wait_stored("s", len(said))
        assert await log.read("s") == await log.read_without_deltas("s") == said
    finally:
        await log.close()
    assert b"s3cret" not in (tmp_path / "a.db").read_bytes()
    bare = SqliteLog(Database(tmp_path / "a.db"))
    await bare.open()
    assert all(b"sealed:" in m.encode_record(one) for one in await bare.read("s"))
    await bare.close()


async def test_a_log_of_many_servers_neither() -> None:
    address = RedisAddress.read(f"{redis_of_this_run().url}?prefix={uuid4().hex}")
    log, bare = RedisLog(RedisClient(address), seal=SEAL), RedisLog(RedisClient(address))
    said = [m.Record(seq=seq, at=1.0, session_id="s", event=event) for seq, event in enumerate(DISCREET, 1)]
    place, answer = ("ann", "POST", "/a", "k"), StoredResponse(digest="d", status=200, content_type="t", body=b"s3cret")
    await log.open()
    await bare.open()
    try:
        for one in said:
            log.append(one)
        await log.wait_stored("s", len(said))
        assert await log.read("s") == await log.read_without_deltas("s") == said
        assert all(
            b"sealed:" in m.encode_record(one) for one in [*await bare.read("s"), *await bare.read_without_deltas("s")]
        )
        kept = RedisResources(log.redis, lambda: 1.0, seal=SEAL)
        made = await kept.create("vault", "ann", {}, secrets=GIVEN)
        await kept.update("vault", "ann", made.resource_id, {"n": 1})
        assert (await kept.archive("vault", "ann", made.resource_id)).secrets == GIVEN
        assert [one.secrets for one in await kept.versions("vault", "ann", made.resource_id)] == [GIVEN, GIVEN]
        raw = RedisResources(log.redis, lambda: 1.0)
        assert "s3cret" not in str([one.secrets for one in await raw.versions("vault", "ann", made.resource_id)])
        await RedisResponses(log.redis, lambda: 1.0, seal=SEAL).store(place, answer)
        assert await RedisResponses(log.redis, lambda: 1.0, seal=SEAL).find(place) == answer
        assert await RedisResponses(log.redis, lambda: 1.0, seal=FernetSeal(lambda: ["lost"])).find(place) is None
        assert b"s3cret" not in (await RedisResponses(log.redis, lambda: 1.0).find(place)).body
    finally:
        await bare.close()
        await log.close()
