"""A session that is deleted is closed at the agent too, where the agent says that it can."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from acp.meta import AGENT_METHODS
from acp.schema import AgentCapabilities, CloseSessionRequest

import gateway.model as m
from gateway.backends.acp.wire import InitializeResult
from tests.backends.acp.test_served import steps
from tests.backends.acp.test_session_deletion import PLAIN
from tests.support.backends.acp_turns import AGENT, backend, played, text
from tests.support.dialects.aap.client import Client as Aap
from tests.support.gateway_server import serving


def heard(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text().splitlines()]


def closed(record: Path) -> list[str]:
    return [line["params"]["sessionId"] for line in heard(record) if line.get("method") == "session/close"]


async def test_an_agent_that_can_close_sessions_is_told(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    async with backend(tmp_path, "--closes", f"--record={record}") as made:
        turn = await played(made, text("Hello."))
        theirs = turn.metadata[m.PRIVATE]["acp"]
        await made.forget("sess_1")
        [closing] = [line for line in heard(record) if line.get("method") == AGENT_METHODS["session_close"]]
        assert CloseSessionRequest.model_validate(closing["params"]).session_id == theirs
        await made.forget("sess_1")
        assert closed(record) == [theirs], "once"


async def test_an_agent_that_cannot_is_not(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    async with backend(tmp_path, f"--record={record}") as made:
        await played(made, text("Hello."))
        await made.forget("sess_1")
    assert closed(record) == []


async def test_no_process_is_started_to_close_a_session(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    async with backend(tmp_path, "--closes", f"--record={record}") as made:
        await made.forget("sess_1")
        assert not record.exists()


async def test_an_agent_that_does_not_want_to_is_told_of_and_the_folder_goes(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    arguments = ["-I", "-S", str(AGENT), "--closes", "--clings", f"--record={record}"]
    agents = {"demo": {"backend": "acp", "settings": PLAIN | {"args": arguments}}}
    async with serving(tmp_path, agents=agents) as served:
        aap, place = Aap(served), tmp_path / "data" / "acp"
        session = await aap.session()
        await aap.turn(session, steps(text("Done.")))
        with structlog.testing.capture_logs() as told:
            async with served.http.delete(served.url(f"/aap/sessions/{session}")) as response:
                assert response.status < 300
        assert len(closed(record)) == 1 and list(place.iterdir()) == []
        assert [line["reason"] for line in told if "close" in line["event"]] == [
            "the agent refused session/close: it is mine"]


async def test_a_turn_that_still_runs_is_waited_for(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    async with backend(tmp_path, "--closes", f"--record={record}") as made:
        await played(made, text("Hello."))
        async with made._turn("sess_1"):
            await made.forget("sess_1")
            assert closed(record) == []
        await asyncio.gather(*made._removing)
        assert len(closed(record)) == 1


@pytest.mark.parametrize(("said", "can"), [({"close": {}}, True), ({"close": None}, False), ({}, False), (None, False)])
def test_what_says_that_an_agent_can_close(said: Any, can: bool) -> None:
    told = AgentCapabilities.model_validate({"sessionCapabilities": said} if said is not None else {})
    raw = {"agentCapabilities": {"sessionCapabilities": said}}
    assert msgspec.convert(raw, InitializeResult).can_close is can
    sessions = told.session_capabilities
    assert (sessions is not None and sessions.close is not None) is can
