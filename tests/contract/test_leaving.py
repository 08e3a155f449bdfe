"""A client that leaves while its message is being stored has left its turn, in every dialect that tells it the turn."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.http import ANONYMOUS
from tests.support.dialect_parts import dialects_with, part
from tests.support.dialect_tables import ALL_DIALECTS, dialect
from tests.support.gateway_server import Served, serving, until

SLOW = "/slow 10000"
TURNS = {f"{name}, {how}": (name, *said) for name in dialects_with("leaving_requests")
         for how, said in part(name, "leaving_requests").requests(SLOW).items()}


def named(said: Any, session_id: str) -> Any:
    if isinstance(said, dict):
        return {key: named(one, session_id) for key, one in said.items()}
    return session_id if said == "{}" else said


async def ended(served: Served, session_id: str) -> list[m.Outcome]:
    view = await served.gateway.sessions.get(ANONYMOUS, session_id)
    await served.gateway.runtime.log.wait_stored(session_id, view.head)
    records = await served.gateway.sessions.records(ANONYMOUS, session_id)
    return [record.event.outcome for record in records if isinstance(record.event, m.TurnEnded)]


@pytest.mark.parametrize("turn", TURNS)
async def test_a_client_that_leaves_while_its_message_is_stored_stops_the_turn(tmp_path: Path, turn: str) -> None:
    name, path, body = TURNS[turn]
    disk_is_free = threading.Event()
    async with serving(tmp_path, log="sqlite", on_disconnect="cancel", dialects=ALL_DIALECTS) as served:
        assert served.runner is not None
        assert served.runner.server is not None
        sessions, server = served.gateway.sessions, served.runner.server
        view = await sessions.create(ANONYMOUS, "demo")
        busy = asyncio.create_task(served.gateway.runtime.log._database.write(lambda file: disk_is_free.wait(300)))
        url = served.url(dialect(name).mount + path.format(view.session_id))
        request = asyncio.create_task(served.http.post(url, json=named(body, view.session_id)))
        try:
            await until(lambda: served.gateway.table.turn_count)
            request.cancel()
            await until(lambda: all(one.transport is None for one in server.connections))
        finally:
            disk_is_free.set()
        await busy
        await until(lambda: not served.gateway.table.turn_count)
        assert await ended(served, view.session_id) == [m.Outcome.INTERRUPTED]
