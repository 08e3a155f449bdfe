"""Settings are read again when they change; a reload that fails leaves everything as it was."""

import asyncio
import gc
import os
import signal
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.config import AgentSettings, Config
from gateway.errors import Conflict, RateLimited
from gateway.reload import ReloadRequests, WatchedFiles, log_setting_warnings, reload_on_change, try_reload
from gateway.yaml_positions import Position, Problem, Problems

PATIENCE = 300.0


class Reloads:
    """Counts reloads, and lets a test wait for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._news = asyncio.Condition()

    async def __call__(self) -> None:
        async with self._news:
            self.count += 1
            self._news.notify_all()

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: self.count >= count)


@asynccontextmanager
async def watching(reload: Reloads, files: WatchedFiles | None = None) -> AsyncIterator[None]:
    task = asyncio.create_task(reload_on_change(reload, files, quiet=0))
    await asyncio.sleep(0)  # one step is enough for it to look at the files and listen for the signal
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled()


async def test_a_hangup_reloads() -> None:
    reloads = Reloads()
    async with watching(reloads):
        os.kill(os.getpid(), signal.SIGHUP)
        await reloads.reach(1)
        os.kill(os.getpid(), signal.SIGHUP)
        await reloads.reach(2)


async def test_a_request_reloads_and_is_told_how_it_went() -> None:
    reloads, requests = Reloads(), ReloadRequests()
    task = asyncio.create_task(reload_on_change(reloads, requests=requests))
    assert await requests.reload() is None
    assert reloads.count == 1
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)


async def test_requests_reload_at_most_once_a_second() -> None:
    reloads, requests = Reloads(), ReloadRequests()
    task = asyncio.create_task(requests.serve(reloads))
    done = await asyncio.gather(*(requests.reload() for _ in range(5)), return_exceptions=True)
    assert [type(one) for one in done] == [type(None), *[RateLimited] * 4]
    await asyncio.sleep(0.9)
    with pytest.raises(RateLimited):
        await requests.reload()
    await asyncio.sleep(0.2)
    await requests.reload()
    assert reloads.count == 2
    task.cancel()


async def test_a_request_is_answered_if_the_server_stops() -> None:
    begun, requests = asyncio.Event(), ReloadRequests()

    async def reload() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(requests.serve(reload))
    asked = asyncio.create_task(requests.reload())
    await begun.wait()
    task.cancel()
    assert "shutting down" in str(await asked)


def overwrite(file: Path) -> None:
    file.write_text("port: 2")


def exchange(file: Path) -> None:
    beside = file.with_name("new")
    beside.write_text("port: 2")
    beside.replace(file)


def delete(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("change", [overwrite, exchange, delete])
async def test_a_changed_file_reloads(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file, reloads = tmp_path / "config.yaml", Reloads()
    file.write_text("port: 1 ")
    async with watching(reloads, lambda: [file]):
        change(file)
        await reloads.reach(1)


async def test_a_file_that_comes_later_is_watched_too(tmp_path: Path) -> None:
    config, table, reloads = tmp_path / "config.yaml", tmp_path / "tables" / "one.yaml", Reloads()
    config.write_text("port: 1 ")
    files = [config]
    async with watching(reloads, lambda: files):
        table.parent.mkdir()
        table.touch()
        files.append(table)
        config.write_text("port: 22")
        await reloads.reach(1)
        seen = reloads.count
        table.write_text("frames: {}")
        await reloads.reach(seen + 1)


async def test_a_failed_reload_is_told_with_all_its_problems() -> None:
    async def reload() -> None:
        raise Problems(
            [Problem(Position("config.yaml", 2, 7), "one"), Problem(Position("config.yaml", 3, 1), "two", "so")]
        )

    with capture_logs() as told:
        assert await try_reload(reload) == ["config.yaml:2:7: one", "config.yaml:3:1: two; so"]
    assert told == [{
        "event": "reload_failed", "log_level": "error",
        "problems": ["config.yaml:2:7: one", "config.yaml:3:1: two; so"],
    }]


async def test_a_refused_reload_is_told() -> None:
    async def reload() -> None:
        raise Conflict("the port cannot change while the server runs")

    with capture_logs() as told:
        assert len(await try_reload(reload)) == 1
    assert told[0]["problems"] == ["the port cannot change while the server runs"]


class Knot:
    """Refers to itself, as a table does."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("fails", [True, False])
async def test_what_a_reload_leaves_behind_is_freed(fails: bool) -> None:
    left = list[weakref.ref[Knot]]()

    async def reload() -> None:
        left.append(weakref.ref(Knot()))
        if fails:
            raise Conflict("another server has the name")

    gc.disable()
    try:
        await try_reload(reload)
        assert [one() for one in left] == [None]
    finally:
        gc.enable()


async def test_a_good_reload_is_told() -> None:
    with capture_logs() as told:
        assert await try_reload(Reloads()) == []
    assert told == [{"event": "reloaded", "log_level": "info"}]


@pytest.mark.parametrize(("files", "warned"), [("s3://agents", ["coder"]), ("", []), ("elsewhere", [])])
def test_an_agent_that_works_in_a_folder_says_so_where_files_are_in_a_bucket(files: str, warned: list[str]) -> None:
    agents = {"demo": AgentSettings(backend="demo"), "coder": AgentSettings(backend="acp")}
    with capture_logs() as told:
        log_setting_warnings(Config(files=files, agents=agents))
    assert [line["agent"] for line in told if line["event"] == "agent_needs_folder"] == warned
