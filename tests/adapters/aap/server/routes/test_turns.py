"""A turn of AAP's that is read in pieces: over a line that breaks, and a server that dies in the middle."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.aap.server.routes.sessions import CURSOR_FORMAT
from tests.support.connection_faults import BreakingProxy, KillableServerInLoop, blocks, breaking_proxy
from tests.support.dialects.aap.client import Client
from tests.support.dialects.aap.reader import read_stream
from tests.support.gateway_server import Served, serving

PLACES = "/aap/sessions"


class Reader:
    """An application that counts the events it has had, and asks for the rest."""

    def __init__(self, http: aiohttp.ClientSession, address: str, session: str) -> None:
        self.http = http
        self.turns = f"{address}{PLACES}/{session}/turns"
        self.heard: list[bytes] = []

    async def begin(self, words: str) -> None:
        body = {"stream": "delta", "messages": [{"role": "user", "content": words}]}
        await self._take(self.http.post(self.turns, json=body))

    async def rest(self, *, by_header: bool) -> None:
        """By the id of the last event, or by how many there were."""
        cursor = str(len(self.heard))
        if by_header and self.heard and self.heard[-1].startswith(b"id: "):
            last = self.heard[-1].split(b"\n")[0].removeprefix(b"id: ").decode()
            await self._take(self.http.get(f"{self.turns}/current", headers={"Last-Event-ID": last}))
        else:
            await self._take(self.http.get(f"{self.turns}/current", params={"after": cursor}))

    async def _take(self, asked: Any) -> None:
        body = b""
        try:
            async with asked as response:
                assert response.status == 200, await response.text()
                while piece := await response.content.readany():
                    body += piece
        except (aiohttp.ClientError, ConnectionError):
            pass
        self.heard += blocks(body)

    @property
    def is_over(self) -> bool:
        return bool(self.heard) and b"event: turn_stop" in self.heard[-1]


def without_ids(events: list[bytes]) -> list[bytes]:
    return [event.partition(b"\n")[2] if event.startswith(b"id: ") else event for event in events]


async def session_at(http: aiohttp.ClientSession, address: str) -> str:
    async with http.post(f"{address}{PLACES}", json={"agent": {"name": "demo"}}) as response:
        return str((await response.json())["sessionId"])


async def whole_turn(http: aiohttp.ClientSession, address: str, session: str) -> list[bytes]:
    async with http.get(f"{address}{PLACES}/{session}/turns/current") as response:
        return blocks(await response.read())


async def read_to_the_end(reader: Reader) -> None:
    async with asyncio.timeout(30):
        while not reader.is_over:
            await reader.rest(by_header=len(reader.heard) % 2 == 1)


@pytest.mark.parametrize("seed", range(3))
async def test_over_a_line_that_breaks(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path, log="sqlite") as served, breaking_proxy(served.port, seed) as line:
        session = await session_at(served.http, served.address)
        reader = Reader(served.http, line.address, session)
        await reader.begin("/think /slow 20 /burst 200 /tool clock and so on")
        await read_to_the_end(reader)
        assert line.breaks
        whole = await whole_turn(served.http, served.address, session)
        assert without_ids(reader.heard) == without_ids(whole), "no gap, no repetition"
        assert len(whole) > 220


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    timeout = aiohttp.ClientTimeout(total=60)
    async with breaking_proxy(restartable_server.port, 7) as line, aiohttp.ClientSession(timeout=timeout) as http:
        session = await session_at(http, restartable_server.address)
        reader = Reader(http, line.address, session)
        reading = asyncio.create_task(reader.begin("/slow 400"))
        await _until_some(line, reader, reading)
        await restartable_server.die_and_come_back()
        await read_to_the_end(reader)
        whole = await whole_turn(http, restartable_server.address, session)
        assert without_ids(reader.heard) == without_ids(whole)
        assert whole[-1].endswith(b'data: {"stopReason":"error"}\n'), "it was closed when the server came back"
        assert 5 < len(whole) < 400


async def _until_some(line: BreakingProxy, reader: Reader, reading: "asyncio.Task[None]") -> None:
    """Some of the turn has been read, in more than one piece."""
    await reading
    while line.breaks < 3:
        await reader.rest(by_header=False)
    assert not reader.is_over


# -- the cursor -------------------------------------------------------------------------------------------------------

@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, log="sqlite") as served:
        yield served


async def current(served: Served, session: str, query: str = "", **headers: str) -> tuple[int, bytes]:
    url = served.url(f"{PLACES}/{session}/turns/current{query}")
    async with served.http.get(url, headers=headers) as response:
        return response.status, await response.read()


async def turn(served: Served, session: str, *messages: dict[str, Any]) -> None:
    body = {"messages": list(messages)}
    async with served.http.post(served.url(f"{PLACES}/{session}/turns"), json=body) as response:
        assert response.status == 200, await response.text()


async def test_where_nothing_is_left_there_is_no_content_and_a_browser_stops_asking(served: Served) -> None:
    session = await session_at(served.http, served.address)
    assert (await current(served, session))[0] == 404, "no turn yet"
    await turn(served, session, {"role": "user", "content": "hello"})
    status, body = await current(served, session)
    events = blocks(body)
    assert (status, len(events)) == (200, 5)
    last = events[-1].split(b"\n")[0].removeprefix(b"id: ").decode()
    assert last.endswith(".5")
    assert await current(served, session, "?after=5") == (204, b"")
    assert await current(served, session, **{"Last-Event-ID": last}) == (204, b"")


async def test_what_cannot_be_is_refused_and_never_passed_over_in_silence(served: Served) -> None:
    session = await session_at(served.http, served.address)
    await turn(served, session, {"role": "user", "content": "hello"})
    for query, status in (("?after=6", 400), ("?after=1.1", 400), ("?after=999.1", 400), ("?after=0.1", 400),
                          ("?after=x", 400), ("?after=-1", 400), ("?stream=none", 422), ("?stream=x", 422)):
        had, body = await current(served, session, query)
        assert (had, b'{"error":' in body) == (status, True), query
    assert (await current(served, session, "?after=1", **{"Last-Event-ID": "2"}))[0] == 400
    assert (await current(served, "sess_none"))[0] == 404
    assert CURSOR_FORMAT.fullmatch("3.4") and not CURSOR_FORMAT.fullmatch("٣")


async def test_a_cursor_of_an_earlier_turn_gives_the_rest_of_that_one(served: Served) -> None:
    session = await session_at(served.http, served.address)
    await turn(served, session, {"role": "user", "content": "first"})
    first = blocks((await current(served, session))[1])
    await turn(served, session, {"role": "user", "content": "second"})
    id_of_the_first = first[0].split(b"\n")[0].removeprefix(b"id: ").decode()
    assert blocks((await current(served, session, **{"Last-Event-ID": id_of_the_first}))[1]) == first[1:]
    assert b"second" in b"".join(blocks((await current(served, session))[1]))


async def test_a_turn_that_waits_is_one_turn_and_its_continuation_another(served: Served) -> None:
    tools = [{"name": "weather", "description": "Here.", "parameters": {"type": "object"}}]
    body = {"agent": {"name": "demo"}, "tools": tools}
    async with served.http.post(served.url(PLACES), json=body) as response:
        session = (await response.json())["sessionId"]
    await turn(served, session, {"role": "user", "content": "/client-tool"})
    asked = blocks((await current(served, session))[1])
    assert asked[-1].endswith(b'{"stopReason":"tool_use"}\n')
    call = asked[-2].partition(b'"toolCallId":"')[2].partition(b'"')[0].decode()
    await turn(served, session, {"role": "tool", "toolCallId": call, "content": "sunny"})
    after = blocks((await current(served, session))[1])
    assert after[0].split(b".")[0] != asked[0].split(b".")[0], "another turn"
    assert read_stream(b"".join(event + b"\n" for event in without_ids(after)))[0].text == "weather returned sunny"


async def test_whole_parts_can_be_resumed_too(served: Served) -> None:
    session = await session_at(served.http, served.address)
    await turn(served, session, {"role": "user", "content": "/think hello"})
    whole = blocks((await current(served, session, "?stream=message"))[1])
    assert [b"event: thinking\n" in event for event in whole] == [False, True, False, False]
    assert blocks((await current(served, session, "?stream=message&after=2"))[1]) == whole[2:]


@pytest.mark.parametrize("mode", ["delta", "message"])
async def test_a_turn_that_a_returned_answer_continued_is_told_alike_again(tmp_path: Path, mode: str) -> None:
    """What the client itself returned is not told to it, however its stream begins."""
    async with serving(tmp_path, log="sqlite") as served:
        aap = Client(served)
        session = await aap.session()
        [(call_id, _, _)] = (await aap.turn(session, "/ask", stream=mode)).calls
        answer = {"role": "tool", "toolCallId": call_id, "content": "Red"}
        heard = await aap.turn(session, answer, stream=mode)
        path = f"/aap/sessions/{session}/turns/current?stream={mode}"
        async with served.http.get(served.url(path)) as response:
            told = (await response.read()).decode()
        assert (heard.results, "tool_result" in told) == ([], False)
        events = told.count("event: ")
        async with served.http.get(served.url(f"{path}&after={events}")) as response:
            assert response.status == 204
