"""One word of the settings says where everything is kept."""

from pathlib import Path

import pytest

from gateway.config import Config, LimitSettings
from gateway.quotas import Quotas
from gateway.storage.log import MemoryLog, SqliteLog
from gateway.storage.log.redis import RedisLog
from gateway.storage.resources.memory import MemoryResources
from gateway.storage.resources.redis import RedisResources
from gateway.storage.resources.redis_responses import RedisResponses
from gateway.storage.resources.responses import MemoryResponses, SqliteResponses
from gateway.storage.resources.sqlite import SqliteResources
from gateway.storage_factory import make_storage
from tests.support.redis_server import redis_of_this_run


def databases(folder: Path) -> list[str]:
    return [found.name for found in folder.glob("*.db")]


def test_in_memory_nothing_touches_the_disk(tmp_path: Path) -> None:
    kept = make_storage(
        Config(data=tmp_path / "data", log="memory"), lambda: 0.0, lambda: LimitSettings(max_resources=9), Quotas()
    )
    assert (type(kept.log), type(kept.resources), type(kept.answers)) == (MemoryLog, MemoryResources, MemoryResponses)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("log", "file"), [("sqlite", "dragoman.db"), ("sqlite:other.db", "other.db")])
async def test_log_resources_and_answers_share_one_file(tmp_path: Path, log: str, file: str) -> None:
    kept = make_storage(Config(data=tmp_path, log=log), lambda: 0.0, lambda: LimitSettings(max_resources=9), Quotas())
    assert (type(kept.log), type(kept.resources), type(kept.answers)) == (SqliteLog, SqliteResources, SqliteResponses)
    await kept.log.open()
    try:
        made = await kept.resources.create("agent", "ann", {"n": 1})
        assert await kept.resources.get("agent", "ann", made.resource_id) == made
        assert await kept.answers.find(("ann", "POST", "/a", "k")) is None
    finally:
        await kept.log.close()
    assert databases(tmp_path) == [file]


async def test_log_resources_and_answers_share_one_server(tmp_path: Path) -> None:
    log = f"{redis_of_this_run().url}?prefix={tmp_path.name}"
    kept = make_storage(
        Config(data=tmp_path / "data", log=log), lambda: 0.0, lambda: LimitSettings(max_resources=9), Quotas()
    )
    assert (type(kept.log), type(kept.resources), type(kept.answers)) == (RedisLog, RedisResources, RedisResponses)
    await kept.log.open()
    try:
        made = await kept.resources.create("agent", "ann", {"n": 1})
        assert await kept.resources.get("agent", "ann", made.resource_id) == made
        assert await kept.answers.find(("ann", "POST", "/a", "k")) is None
    finally:
        await kept.log.close()
    assert not (tmp_path / "data").exists()
