"""A line that is cut anywhere: every event is heard once and in order, or the failure is clear."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import aiohttp
import pytest

import gateway.model as m
from gateway.backends.demo.interactive_directives import QUESTIONS
from gateway.errors import BackendFailed, ConnectionLost, GatewayError
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAsk, RemoteTurnEnd
from tests.support.connection_faults import KillableServerInLoop, breaking_proxy
from tests.support.dialects.zenflux.cutting_proxy import ScriptedConnection, cutting_proxy, remote, scripted_server
from tests.support.dialects.zenflux.facts import as_heard, facts, told
from tests.support.gateway_server import Served, serving

WORDS = "/title Trip\n/think hello"
STEP, WINDOW = 311, 16
"""So far apart are the cuts that are tried, and so many follow one another where one frame ends and the next begins."""


async def hear(address: str, words: str) -> tuple[str, list[DecodedItem]]:
    """What a remote hears of a turn, and in which session; permissions are granted."""
    async with remote(address) as there:
        session_id = await there.open(NewRemoteSession())
        heard: list[DecodedItem] = []
        stream = there.start_turn(session_id, m.SendMessage(content=words))
        while not (heard and isinstance(heard[-1], RemoteTurnEnd)):
            async with aclosing(stream):
                new = [one async for one in stream]
            heard += new
            asked = [one for one in new if isinstance(one, RemoteAsk)]
            stream = there.answer(session_id, [(one, answer(one)) for one in asked])
        return session_id, heard


def answer(asked: RemoteAsk) -> m.AnswerQuestion | m.DecidePermission:
    if isinstance(asked.ask, m.QuestionAsk):
        return m.AnswerQuestion(request_id="", selections=dict.fromkeys(map(str, range(len(QUESTIONS))), (0,)))
    return m.DecidePermission(request_id="", granted=True)


async def same_as_the_log(served: Served, session_id: str, heard: list[DecodedItem]) -> None:
    records = list(await served.gateway.sessions.records("", session_id))
    assert [as_heard(turn) for turn in facts(heard)] == [as_heard(turn) for turn in told(records)]


async def length_of(served: Served, words: str) -> int:
    """How many bytes the server says on the socket of a turn."""
    async with cutting_proxy(served.port) as line:
        await hear(line.address, words)
        return line.longest


async def cut_once(served: Served, place: int, words: str) -> None:
    async with cutting_proxy(served.port, [place]) as line:
        session_id, heard = await hear(line.address, words)
        assert line.made == 1, f"nothing was cut at {place}"
        await same_as_the_log(served, session_id, heard)


@pytest.mark.parametrize("words", [WORDS, "/tool clock hello"])
async def test_cut_at_many_places_each_event_is_heard_once(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path, dialects={"zenflux": {"throttle_ms": 0}}) as served:
        length = await length_of(served, words)
        assert length > 3000
        places = [*range(0, length - 1, STEP), *range(length // 2, length // 2 + WINDOW)]
        limit = asyncio.Semaphore(8)

        async def try_at(place: int) -> None:
            async with limit:
                await cut_once(served, place, words)

        await asyncio.gather(*map(try_at, places))


async def test_cut_again_and_again(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"zenflux": {}}) as served, cutting_proxy(served.port) as line:
        line.cuts = [700, 1200, 900, 2500, 3000]
        session_id, heard = await hear(line.address, "/think /ask /permit /slow 4 hello")
        assert line.made == 5
        await same_as_the_log(served, session_id, heard)


async def test_over_a_line_that_breaks_at_random(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"zenflux": {}}) as served, breaking_proxy(served.port, 1) as line:
        async with remote(served.address) as there:
            session_id = await there.open(NewRemoteSession())
        async with remote(line.address) as there:
            heard = []
            async with aclosing(
                there.start_turn(session_id, m.SendMessage(content="/think /slow 20 /tool clock on"))
            ) as stream:
                heard = [one async for one in stream]
        assert line.breaks
        await same_as_the_log(served, session_id, heard)


async def test_a_line_that_lets_nothing_through_is_given_up(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"zenflux": {}}) as served, cutting_proxy(served.port, [600] * 50) as line:
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await hear(line.address, "/slow 1000")


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    async with remote(restartable_server.address) as there:
        session_id = await there.open(NewRemoteSession())
        heard: list[DecodedItem] = []
        async with aclosing(there.start_turn(session_id, m.SendMessage(content="/slow 2000"))) as stream:
            async for one in stream:
                heard.append(one)
                if len(heard) == 4:
                    await restartable_server.die_and_come_back()
        [turn] = facts(heard)
        assert turn.ended is not None
        assert turn.ended.fault is not None, "a server that died tells that it was interrupted"
        async with aiohttp.ClientSession() as http:
            url = f"{restartable_server.address}/api/v1/conversations/{session_id}/messages"
            async with http.get(url) as response:
                stored = (await response.json())["data"]["messages"][-1]["content"]
        assert turn.words() == "".join(block["text"] for block in stored)


# -- servers that cannot resume ---------------------------------------------------------------------------------------

async def test_a_server_that_cannot_resume_is_heard_up_to_the_cut() -> None:
    async def script(talking: ScriptedConnection) -> None:
        if talking.server.connections > 1:
            await talking.refuse("METHOD_NOT_FOUND", "unknown method")
            return
        await talking.accept()
        await talking.say("session_start")
        await talking.say("message_start")
        await talking.text("half of it")

    heard: list[DecodedItem] = []
    async with scripted_server(script) as server, remote(server.address) as there:
        with pytest.raises(BackendFailed, match=r"closed .*cannot be taken up again \(METHOD_NOT_FOUND: unknown"):
            async with aclosing(there.start_turn("conversation", m.SendMessage(content="hi"))) as stream:
                async for one in stream:
                    heard += [one]
    assert facts(heard)[0].words() == "half of it"


async def test_what_a_server_repeats_is_heard_once() -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.accept(session_id="run")
        await talking.say("message_start")
        await talking.say("content_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
        await talking.say("content_delta", {"index": 0, "delta": "once"})
        if talking.server.connections == 1:
            return
        await talking.say("content_stop", {"index": 0})
        await talking.say("session_end", {"status": "completed"})
        await talking.until_gone()

    async with scripted_server(script) as server, remote(server.address) as there:
        stream = there.start_turn("conversation", m.SendMessage(content="hi"))
        assert facts([one async for one in stream])[0].words() == "once"


async def test_whether_a_message_was_taken_may_stay_unknown() -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.hear()

    async with scripted_server(script) as server, remote(server.address) as there:
        server.replies["GET", "/sessions"] = 200, {"total": 0, "sessions": []}
        with pytest.raises(GatewayError, match="whether it took the message is not known"):
            async with aclosing(there.start_turn("conversation", m.SendMessage(content="hi"))) as stream:
                assert [one async for one in stream] == []
