"""A turn at a real server whose line breaks again and again, and that dies in the middle and comes back."""

import asyncio
from pathlib import Path

import pytest

import gateway.model as m
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteTurnEnd, Timeouts
from tests.support.connection_faults import KillableServerInLoop, breaking_proxy
from tests.support.dialects.aap.conversations import CheckingEngine, facts
from tests.support.dialects.aap.remote_conversation import SETTINGS, RemoteConversation, conversing, spoken_to
from tests.support.gateway_server import serving

PATIENT = Timeouts(connect=10, first_byte=20, idle=20, total=50, attempts=12)


@pytest.mark.parametrize("seed", range(3))
async def test_over_a_line_that_breaks_again_and_again(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path, log="sqlite") as served, breaking_proxy(served.port, seed) as line:
        line.holds = True
        async with conversing(f"{line.address}/aap", patience=PATIENT) as talk:
            line.holds = False
            end = await talk.say("/think /burst 200 /tool clock and so on")
            assert (end, line.breaks > 3) == (RemoteTurnEnd(), True)
            log = await served.gateway.sessions.records("", talk.session_id)
            assert facts(talk.house.records) == facts(log), "no gap, no repetition"


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    async with spoken_to(f"{restartable_server.address}/aap", patience=PATIENT) as remote:
        talk, heard = (
            RemoteConversation(remote, await remote.open(NewRemoteSession(settings=SETTINGS))),
            list[DecodedItem](),
        )
        async with asyncio.timeout(60):
            async for one in remote.start_turn(talk.session_id, m.SendMessage(content="/slow 400")):
                heard.append(one)
                if len(heard) == 20:
                    await restartable_server.die_and_come_back()
    house = CheckingEngine()
    house.start()
    house.take(heard)
    words, end = facts(house.records)
    numbers = words[1].split()
    assert numbers == [str(number + 1) for number in range(len(numbers))], "no gap, no repetition"
    assert end == ("ended", "error"), "it was closed when the server came back"
