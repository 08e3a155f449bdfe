"""Sessions whose agent is not served any more: every dialect lists and reads them, and only a new turn is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialect_parts import dialects_with, each, part
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving

ON_DISK: dict[str, Any] = {"log": "sqlite", "dialects": {name: {} for name in DIALECTS}}
REFUSING = [name for name in dialects_with("rest_requests") if part(name, "rest_requests").UNKNOWN_AGENT is not None]
"""Where a session has no agent of its own, there is nothing to refuse."""

async def call(served: Served, method: str, path: str, body: Any = None) -> tuple[int, str]:
    async with served.http.request(method, served.url(path), json=body) as response:
        return response.status, await response.text()


@pytest.fixture
async def orphan(tmp_path: Path) -> AsyncIterator[tuple[Served, str]]:
    """A server whose agent has another name than when the session was made, and the session."""
    async with serving(tmp_path, **ON_DISK, agents={"old": {"backend": "demo"}}) as served:
        async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "old"}}) as response:
            session = (await response.json())["sessionId"]
        turn = {"stream": "none", "messages": [{"role": "user", "content": "first"}]}
        assert (await call(served, "POST", f"/aap/sessions/{session}/turns", turn))[0] == 200
    async with serving(tmp_path, **ON_DISK, agents={"new": {"backend": "demo"}}) as served:
        yield served, session


@pytest.mark.parametrize("dialect", each("rest_requests"))
async def test_it_is_listed_and_read(orphan: tuple[Served, str], dialect: str) -> None:
    served, session = orphan
    for path in part(dialect, "rest_requests").READS:
        status, told = await call(served, "GET", path.format(id=session))
        assert status == 200, (path, told)
        assert session in told or "You said: first" in told, path
    assert "You said: first" in told


@pytest.mark.parametrize("dialect", REFUSING)
async def test_a_new_turn_is_refused_by_the_name_of_the_agent(orphan: tuple[Served, str], dialect: str) -> None:
    served, session = orphan
    requests = part(dialect, "rest_requests")
    status, told = await call(served, "POST", *requests.message(session, "again"))
    assert (status, "'old'" in told) == (requests.UNKNOWN_AGENT, True), told
    status, told = await call(served, "GET", f"/aap/sessions/{session}/history?type=full")
    assert "again" not in told, "a refusal means that nothing happened"


async def test_it_can_be_deleted(orphan: tuple[Served, str]) -> None:
    served, session = orphan
    assert (await call(served, "DELETE", f"/aap/sessions/{session}"))[0] == 204
    assert (await call(served, "GET", f"/aap/sessions/{session}"))[0] == 404
