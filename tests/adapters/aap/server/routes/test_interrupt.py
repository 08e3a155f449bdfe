"""Our own way to end a turn of AAP's: whose it is, when there is one, and what everybody is told."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.aap.client.remote import Remote
from gateway.errors import Overloaded
from gateway.ports.remote import RemoteAddress, RemoteTurnEnd
from tests.support.client.byte_server import ReceivedRequest, chunk, hangs, head, says
from tests.support.client.byte_server import serving as scripted
from tests.support.dialects.aap.reader import read, read_stream
from tests.support.dialects.aap.remote_conversation import conversing
from tests.support.gateway_server import Served, serving, until
from tests.support.key_stores import key_store

META = says(b'{"version": 3, "agents": [{"name": "a", "version": "1.0.0", "capabilities": {"stream": {"delta": {}}}}]}')
MADE = says(b'{"sessionId": "s1"}', 201)
BEGUN = (head(), chunk(b"event: turn_start\ndata: {}\n\n"), chunk(b'event: text_delta\ndata: {"delta": "hi"}\n\n'))


async def opened(served: Served, **headers: str) -> str:
    agent = {"name": "demo", "tools": [{"name": name} for name in ("clock", "calc", "search")]}
    async with served.http.post(served.url("/aap/sessions"), json={"agent": agent}, headers=headers) as made:
        return served.url(f"/aap/sessions/{(await made.json())['sessionId']}/turns")


def says_to(words: str, stream: str = "none") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words}], "stream": stream}


async def ended(served: Served, at: str, **headers: str) -> tuple[int, Any]:
    async with served.http.delete(f"{at}/current", headers=headers) as response:
        return response.status, await response.json() if await response.read() else None


async def status(served: Served, at: str) -> m.SessionStatus:
    return (await served.gateway.sessions.get("", at.split("/")[-2])).status


@pytest.mark.parametrize("stream", ["delta", "message", "none"])
async def test_a_turn_that_runs_ends_at_once(tmp_path: Path, stream: str) -> None:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        at = await opened(served)

        async def listen() -> bytes:
            async with served.http.post(at, json=says_to("/slow 2000", stream)) as response:
                return await response.read()

        heard = asyncio.ensure_future(listen())
        view = await served.gateway.sessions.get("", at.split("/")[-2])
        await until(lambda: view.status is m.SessionStatus.RUNNING)
        assert await ended(served, at) == (204, None)
        assert await status(served, at) is m.SessionStatus.IDLE
        told = await asyncio.wait_for(heard, 30)
        turn = read_stream(told)[-1] if stream != "none" else read(orjson.loads(told))
        assert turn.stop == "error"
        assert await ended(served, at) == (409, {"error": f"no turn runs or waits in session '{at.split('/')[-2]}'"})
        async with served.http.post(at, json=says_to("hello")) as response:
            assert read(await response.json()).text == "You said: hello"


@pytest.mark.parametrize("words", ["/ask", "/continue", "/permit"])
async def test_a_turn_that_waits_ends_and_waits_for_nothing_any_more(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        at = await opened(served)
        async with served.http.post(at, json=says_to(words)) as response:
            waits = read(await response.json())
        assert waits.stop == "tool_use"
        assert await ended(served, at) == (204, None)
        answer = {"role": "tool", "toolCallId": waits.calls[-1][0], "content": "yes"}
        async with served.http.post(at, json={"messages": [answer]}) as response:
            assert response.status == 409


async def test_who_has_no_turn_or_no_session_is_told_so(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        at = await opened(served)
        code, body = await ended(served, at)
        assert (code, [*body]) == (409, ["error"])
        code, body = await ended(served, served.url("/aap/sessions/nobody/turns"))
        assert (code, body) == (404, {"error": "there is no session 'nobody'"})


async def test_other_peoples_turns_are_not_found(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    mine, yours = keys.add("ann"), keys.add("bob")
    async with serving(tmp_path, auth="keys") as served:
        mine, yours = f"Bearer {mine}", f"Bearer {yours}"
        at = await opened(served, Authorization=mine)
        async with served.http.post(at, json=says_to("/continue"), headers={"Authorization": mine}) as response:
            assert (await response.json())["stopReason"] == "tool_use"
        assert (await ended(served, at))[0] == 401
        assert (await ended(served, at, Authorization=yours))[0] == 404
        assert (await ended(served, at, Authorization=mine))[0] == 204


async def test_what_was_interrupted_is_so_in_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        at = await opened(served)
        async with served.http.post(at, json=says_to("/continue")) as response:
            await response.read()
        await ended(served, at)
        log = await served.gateway.sessions.records("", at.split("/")[-2])
        assert [r.event.command for r in log if isinstance(r.event, m.InputAccepted)][-1] == m.Interrupt()
        assert [r.event.outcome for r in log if isinstance(r.event, m.TurnEnded)] == [m.Outcome.INTERRUPTED]


async def test_agents_tell_that_their_turns_can_be_interrupted(tmp_path: Path) -> None:
    async with (serving(tmp_path, dialects={"aap": {}}, log="memory") as served,
                served.http.get(served.url("/aap/meta")) as response):
        told = [agent["capabilities"]["turn"] for agent in (await response.json())["agents"]]
        assert told == [{"resume": {}, "interrupt": {}}]


# -- a server that is not of this house -------------------------------------------------------------------------------

@pytest.mark.parametrize("code", [404, 405, 501])
async def test_a_server_that_has_no_such_way_is_hung_up_on(code: int) -> None:
    async def hang(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        await hangs(server, *BEGUN)(writer, asked)

    async with scripted(META, MADE, hang, says(b'{"error": "what?"}', code)) as server, conversing(server.url) as talk:
        heard: list[Any] = []
        async for one in talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi")):
            heard.append(one)
            if isinstance(one, m.BlockDelta):
                await talk.remote.interrupt(talk.session_id)
        assert isinstance(heard[-1], RemoteTurnEnd)
        assert heard[-1].outcome is m.Outcome.INTERRUPTED
        await until(server.gone.is_set)
        assert (server.asked[-1].method, server.asked[-1].path) == ("DELETE", "/sessions/s1/turns/current")


async def test_a_server_that_fails_to_end_its_turn_is_complained_of() -> None:
    async with scripted(says(b'{"error": "broken"}', 500)) as server:
        remote = Remote(RemoteAddress(url=server.url))
        with pytest.raises(Overloaded, match="broken"):
            await remote.interrupt("s1")
        await remote.close()
