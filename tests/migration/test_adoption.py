"""A conversation of the old server comes over when a client first asks for its id, in whatever dialect, and once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.composition import component_problems
from gateway.config import load_config
from gateway.errors import BackendFailed, Conflict, GatewayError, NotFound, TimedOut
from gateway.migration.adoption import ADOPTION_SECONDS, MISSING_SECONDS
from tests.support.cluster.fleet_in_loop import fleet_in_loop
from tests.support.dialect_parts import each, part
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.dialects.zenflux.old_server import OldConversation, OldServer, serve_old
from tests.support.gateway_server import Served, until, write_settings
from tests.support.migration.old_server import TOOLS, converse, differences, gateway, read, say


def before(dialect: str, url: str, **more: Any) -> dict[str, Any]:
    """The settings of a gateway that brings the conversations of this server over."""
    settings = {"dialect": dialect, "url": url, "adopt": True, "attempts": 1, **more}
    return {"agents": {"old": {"backend": "remote", "settings": settings, "tools": TOOLS}}}


@asynccontextmanager
async def beside(folder: Path, old: OldServer, **more: Any) -> AsyncIterator[Served]:
    async with gateway(folder, **before("zenflux", old.url), **more) as new:
        yield new


def said(view: m.SessionView) -> list[str]:
    return [m.text_of(m.parts_of(entry.content)) for entry in view.entries]


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_a_conversation_is_read_and_continued_though_nobody_imported_it(tmp_path: Path, dialect: str) -> None:
    spoken, reading = dialect_of(dialect), part(dialect, "read_back")
    async with gateway(tmp_path / "old") as old:
        session_id = await converse(old, "hello", "/think /tool clock {}", title="Rome")
        paths = [path.format(session_id) for path in reading.PATHS]
        there = reading.comparable([*await read(old, paths)])
        async with gateway(tmp_path / "new", **before(dialect, old.url(spoken.mount))) as new:
            await read(new, [path for path in paths if session_id in path])
            here = reading.comparable([*await read(new, paths)])
            await new.gateway.contexts[dialect].sessions.submit("", session_id, [m.SendMessage(content="and now?")])
            await until(lambda: new.gateway.table.turn_count == 0)
        theirs = await old.gateway.sessions.get("", session_id)
    assert said(theirs)[-2:] == ["and now?", "You said: and now?"]
    names = {".agent", ".metadata", ".model"}
    assert [line for line in differences(there, here) if not any(name in line for name in names)] == []


@pytest.mark.parametrize("dialect", each("read_back"))
async def test_a_message_may_be_the_first_that_names_a_conversation(tmp_path: Path, dialect: str) -> None:
    spoken = dialect_of(dialect)
    async with gateway(tmp_path / "old") as old:
        session_id = await converse(old, "hello")
        async with gateway(tmp_path / "new", **before(dialect, old.url(spoken.mount))) as new:
            await say(new, session_id, "and now?", sessions=new.gateway.contexts[dialect].sessions)
            view = await new.gateway.sessions.get("", session_id)
    assert said(view) == ["hello", "You said: hello", "and now?", "You said: and now?"]


async def test_many_who_ask_at_once_bring_it_over_once(tmp_path: Path) -> None:
    async with serve_old(OldConversation("conv_1")) as old, beside(tmp_path, old) as new:
        old.seconds = 5.0
        sessions = new.gateway.contexts["zenflux"].sessions
        views = await asyncio.gather(*(sessions.get("", "conv_1") for _ in range(20)))
        assert {view.head for view in views} == {views[0].head}
        assert old.reads["conv_1"] == 1


async def test_what_is_not_there_is_not_found_and_not_asked_for_again_and_again(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with serve_old() as old, beside(tmp_path, old) as new:
        for _ in range(5):
            async with new.http.get(new.url("/aap/sessions/sess_nowhere")) as response:
                assert response.status == 404
        assert old.asked["sess_nowhere"] == 1
        old.listed.append(OldConversation("sess_nowhere"))
        began = loop.time()
        await asyncio.sleep(MISSING_SECONDS)
        assert loop.time() > began
        async with new.http.get(new.url("/aap/sessions/sess_nowhere")) as response:
            assert response.status == 200
        async with new.http.get(new.url("/aap/sessions/a%20b")) as response:
            assert response.status == 404
        assert old.asked["a b"] == 0, "no dialect could show it"


async def test_a_server_that_fails_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    async with serve_old(OldConversation("conv_1")) as old, beside(tmp_path, old) as new:
        old.broken = {"conv_1"}
        for path, status in (("/aap/sessions/conv_1", 503), ("/api/v1/cloud/sessions/conv_1", 503)):
            async with new.http.get(new.url(path)) as response:
                assert response.status == status
                assert "500" in await response.text()
        assert new.gateway.runtime.log.session_count == 0
        old.broken = set()
        async with new.http.get(new.url("/aap/sessions/conv_1")) as response:
            assert response.status == 200


async def test_a_server_that_is_slow_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async with serve_old(OldConversation("conv_1")) as old, gateway(
        tmp_path, **before("zenflux", old.url, first_byte_seconds=10 * ADOPTION_SECONDS),
    ) as new:
        old.seconds = ADOPTION_SECONDS * 2
        with pytest.raises(GatewayError) as caught:
            await new.gateway.contexts["zenflux"].sessions.get("", "conv_1")
        assert isinstance(caught.value, TimedOut)
        assert new.gateway.runtime.log.session_count == 0


async def test_a_turn_that_runs_there_is_not_cut_in_two(tmp_path: Path) -> None:
    async with gateway(tmp_path / "old") as old:
        session_id = await converse(old, "hello")
        await old.gateway.sessions.submit("", session_id, [m.SendMessage(content="/ask")])
        await until(lambda: old.gateway.table.get(session_id).view.asks)  # type: ignore[union-attr]
        async with gateway(tmp_path / "new", **before("cas", old.url("/api/v1/cloud"))) as new:
            with pytest.raises(Conflict, match="runs or waits at the server"):
                await new.gateway.contexts["cas"].sessions.get("", session_id)
            await old.gateway.sessions.submit("", session_id, [m.Interrupt()])
            await until(lambda: old.gateway.table.turn_count == 0)
            view = await new.gateway.contexts["cas"].sessions.get("", session_id)
    assert "/ask" in said(view)


async def test_what_was_deleted_here_does_not_come_back(tmp_path: Path) -> None:
    async with serve_old(OldConversation("conv_1")) as old, beside(tmp_path, old) as new:
        sessions = new.gateway.contexts["zenflux"].sessions
        await sessions.delete("", "conv_1")
        with pytest.raises(NotFound):
            await sessions.get("", "conv_1")
        assert new.gateway.runtime.log.session_count == 0


async def test_only_the_user_who_is_named_gets_them(tmp_path: Path) -> None:
    settings = before("zenflux", "http://127.0.0.1:1", adopt_for="ann")
    async with serve_old(OldConversation("conv_1")) as old:
        settings["agents"]["old"]["settings"]["url"] = old.url
        async with gateway(tmp_path, auth="keys", **settings) as new:
            sessions = new.gateway.contexts["zenflux"].sessions
            with pytest.raises(NotFound):
                await sessions.get("bob", "conv_1")
            assert old.asked["conv_1"] == 0
            assert (await sessions.get("ann", "conv_1")).owner == "ann"
            with pytest.raises(NotFound):
                await sessions.get("bob", "conv_1")


def test_with_keys_somebody_must_be_named(tmp_path: Path) -> None:
    write_settings(tmp_path, auth="keys", dialects={"aap": {}}, **before("aap", "http://127.0.0.1:1"))
    [problem] = component_problems(load_config(tmp_path / "config.yaml"))
    assert "`adopt` needs `adopt_for`" in str(problem)


async def test_two_servers_that_share_a_log_bring_it_over_once(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(serve_old(OldConversation("conv_1")))
        settings = before("zenflux", old.url)
        servers = await stack.enter_async_context(fleet_in_loop(tmp_path, 2, settings=settings))
        first, second = (one.served.gateway.contexts["zenflux"].sessions for one in servers.servers)
        old.seconds = 2.0
        views = await asyncio.gather(*(one.get("", "conv_1") for one in (first, second)))
        assert {tuple(said(view)) for view in views} == {("question 0", "an answer")}
        assert old.reads["conv_1"] <= 2
        for title, one in (("one", first), ("two", second)):
            await one.update("", "conv_1", title=title)
        assert {(await one.get("", "conv_1")).title for one in (first, second)} == {"two"}


async def test_an_error_of_the_old_server_names_it(tmp_path: Path) -> None:
    async with serve_old() as old:
        url = old.url
    async with gateway(tmp_path, **before("zenflux", url)) as new:
        with pytest.raises(BackendFailed, match="cannot be reached"):
            await new.gateway.contexts["zenflux"].sessions.get("", "conv_1")
