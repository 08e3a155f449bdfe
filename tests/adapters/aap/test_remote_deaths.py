"""A turn at a real server whose line breaks again and again, and that dies in the middle and comes back."""

import asyncio
from pathlib import Path

import pytest

from gateway.model import SendMessage
from gateway.upstream import Ended, Heard, Opening, Patience
from tests.support.adapters.aap_conversations import House, facts
from tests.support.adapters.aap_remotes import SETTINGS, Conversation, conversing, spoken_to
from tests.support.broken_connections import MortalInLoop, breaking
from tests.support.gateway_server import serving

PATIENT = Patience(connect=10, first_byte=20, idle=20, total=50, attempts=12)


@pytest.mark.parametrize("seed", range(3))
async def test_over_a_line_that_breaks_again_and_again(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path) as served, breaking(served.port, seed) as line:
        line.holds = True
        async with conversing(f"{line.address}/aap", patience=PATIENT) as talk:
            line.holds = False
            end = await talk.say("/think /burst 200 /tool clock and so on")
            assert (end, line.breaks > 3) == (Ended(), True)
            log = await served.gateway.sessions.records("", talk.session_id)
            assert facts(talk.house.records) == facts(log), "no gap, no repetition"


async def test_over_the_death_of_the_server(mortal_server: MortalInLoop) -> None:
    async with spoken_to(f"{mortal_server.address}/aap", patience=PATIENT) as remote:
        talk, heard = Conversation(remote, await remote.open(Opening(settings=SETTINGS))), list[Heard]()
        async with asyncio.timeout(60):
            async for one in remote.say(talk.session_id, SendMessage(content="/slow 400")):
                heard.append(one)
                if len(heard) == 20:
                    await mortal_server.die_and_come_back()
    house = House()
    house.start()
    house.take(heard)
    words, end = facts(house.records)
    numbers = words[1].split()
    assert numbers == [str(number + 1) for number in range(len(numbers))], "no gap, no repetition"
    assert end == ("ended", "error"), "it was closed when the server came back"
