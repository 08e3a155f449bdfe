"""A message that is refused has not been taken: the log has nothing of it, and no session was made for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialect_parts import dialects_with, part
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until
from tests.support.refused_messages import FULL, OK, UNCERTAIN, all_ways

WAYS = all_ways()
AT_ONCE = [way for name in dialects_with("message_ways") for way in part(name, "message_ways").AT_ONCE]


@asynccontextmanager
async def served_all(folder: Path, **limits: Any) -> AsyncIterator[tuple[Served, str]]:
    """A server of all dialects, and a session."""
    dialects = {name: {} for name in DIALECTS}
    async with (
        serving(folder, dialects=dialects, log="memory", limits=limits) as served,
        served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as answer,
    ):
        yield served, (await answer.json())["sessionId"]


async def everything(served: Served, session: str) -> tuple[int, bytes]:
    async with served.http.get(served.url(f"/replay/{session}")) as answer:
        return served.gateway.runtime.log.session_count, await answer.read()


@pytest.mark.parametrize("way", WAYS)
async def test_a_message_that_finds_no_place_for_its_stream_is_not_taken(tmp_path: Path, way: str) -> None:
    async with served_all(tmp_path, max_subscribers=1) as (served, session):
        before = await everything(served, session)
        async with served.http.get(served.url(f"/api/v1/cloud/sessions/{session}/events/stream")) as stream:
            await stream.content.readuntil(b"\n\n")
            assert await WAYS[way](served, session, "hello") == FULL
        assert await everything(served, session) == before
        assert await WAYS[way](served, session, "hello") == OK, "there is room again: the refusal keeps none"
        await until(lambda: served.gateway.hub.places == 0)


@pytest.mark.parametrize("way", AT_ONCE)
async def test_whoever_is_cut_off_from_a_turn_that_was_begun_is_not_told_that_the_session_is_gone(
    tmp_path: Path, way: str,
) -> None:
    """While Redis is away, streams are torn: the turn was taken, and goes on or not."""
    async with served_all(tmp_path) as (served, session):
        saying = asyncio.create_task(WAYS[way](served, session, "/slow 100"))
        await until(lambda: served.gateway.hub.subscribers)
        served.gateway.hub.cut_all()
        assert await saying == UNCERTAIN
        async with served.http.get(served.url(f"/aap/sessions/{session}")) as answer:
            assert answer.status == 200
