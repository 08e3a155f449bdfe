"""What grows with data is done a slice at a time: while one client waits for it, the loop serves everybody else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.model as m
from gateway.time_slices import SLICE_ITEMS
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until

LONG = 8 * SLICE_ITEMS
SLICES = 5
"""Less than the slices of a long session, and more than it takes anybody to answer for a short one."""
ROUTES = [
    "/aap/sessions/{id}/history?type=full",
    "/api/sessions/{id}/messages",
    "/api/sessions/{id}/history",
    "/api/v1/conversations/search?q=nowhere",
]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={name: {} for name in DIALECTS}, log="memory") as served:
        yield served


async def session(served: Served, messages: int) -> str:
    body = {"agent": {"name": "demo"}, "messages": [{"role": "user", "content": "x" * 800}] * messages}
    async with served.http.post(served.url("/aap/sessions"), json=body) as response:
        assert response.status == 201
        session_id: str = (await response.json())["sessionId"]
        return session_id


async def steps_until_answered(served: Served, path: str) -> int:
    """How many steps the loop makes for others while this request is answered."""
    steps, loop = 0, asyncio.get_running_loop()
    asked = asyncio.create_task(_get(served, path))

    def step() -> None:
        nonlocal steps
        steps += 1
        if not asked.done():
            loop.call_soon(step)

    loop.call_soon(step)
    await asked
    return steps


async def _get(served: Served, path: str) -> None:
    async with served.http.get(served.url(path)) as response:
        assert response.status == 200, await response.text()
        await response.read()


@pytest.mark.parametrize("path", ROUTES)
async def test_a_long_session_is_read_in_slices(served: Served, path: str) -> None:
    short = path.format(id=await session(served, 1))
    await _get(served, short)  # connected, and everything is loaded
    few = await steps_until_answered(served, short)
    many = await steps_until_answered(served, path.format(id=await session(served, LONG)))
    assert many > few + SLICES


ANSWERS = [
    "/aap/sessions/{id}/history?type=full",
    "/api/sessions/{id}/messages",
    "/api/sessions/{id}/history",
    "/api/v1/conversations/{id}/messages",
    "/api/v1/cloud/sessions/{id}/events?limit=100",
    "/replay/{id}",
]


@pytest.mark.parametrize("path", ANSWERS)
async def test_a_long_answer_is_sent_in_turns_and_is_the_same(
    served: Served, path: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    session_id = await session(served, 100)
    await served.gateway.sessions.submit("", session_id, [m.SendMessage(content="x" * 40_000)])
    view = await served.gateway.sessions.get("", session_id)
    await until(lambda: view.status is m.SessionStatus.IDLE)
    url = path.format(id=session_id)
    whole = await _answered(served, url)
    steps = await steps_until_answered(served, url)
    monkeypatch.setattr("gateway.http.json_io.WHOLE_BODY_BYTES", 1000, raising=False)
    monkeypatch.setattr("gateway.http.json_io.BLOCK_BYTES", 500, raising=False)
    assert await _answered(served, url) == whole
    blocks = int(whole[1]["Content-Length"]) // 1000
    assert blocks > 30
    assert await steps_until_answered(served, url) > steps + blocks


async def _answered(served: Served, path: str) -> tuple[int, dict[str, str], bytes]:
    async with served.http.get(served.url(path)) as response:
        kept = ("Content-Type", "Content-Length")
        return response.status, {name: response.headers[name] for name in kept}, await response.read()


async def test_a_calendar_is_bounded_and_made_in_slices(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.schedules.MAX_OCCURRENCES_IN_ALL", 300, raising=False)
    at, span = "/api/scheduled-tasks", "from=2026-01-01T00:00:00Z&to=2026-12-31T00:00:00Z"
    for number in range(3):
        task = {"title": f"task {number}", "prompt": "p", "cron": "* * * * *"}
        async with served.http.post(served.url(at), json=task) as response:
            assert response.status == 201
    async with served.http.get(served.url(f"{at}/calendar?{span}")) as response:
        times = [len(task["occurrences"]) for task in await response.json()]
    assert times == [100, 100, 100], "each task has its share"
    assert await steps_until_answered(served, f"{at}/calendar?{span}") > 300 // 16


async def test_long_histories_of_one_user_are_read_one_at_a_time(served: Served) -> None:
    """Eight clients that want the same long history do not have it in memory eight times."""
    from adapters.blade.server import history

    at_once, most, found = 0, 0, history.record_pages
    path = f"/api/sessions/{await session(served, LONG)}/messages"

    async def counted(*given: object) -> AsyncIterator[object]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        async for page in found(*given):  # type: ignore[arg-type]
            yield page
        at_once -= 1

    history.record_pages = counted  # type: ignore[assignment]
    try:
        await asyncio.gather(*(_get(served, path) for _ in range(8)))
    finally:
        history.record_pages = found
    assert (at_once, most) == (0, 1)
