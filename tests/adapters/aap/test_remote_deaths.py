"""A turn at a real server whose line breaks again and again, and that dies in the middle and comes back."""

import asyncio
from pathlib import Path

import pytest

from gateway.model import SendMessage
from gateway.upstream import Ended, Heard, Opening, Patience
from tests.adapters.aap.remotes import SETTINGS, Conversation, conversing, spoken_to
from tests.adapters.aap.talks import House, facts
from tests.breaking import breaking, mortal
from tests.served import serving

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


async def test_over_the_death_of_the_server(tmp_path: Path) -> None:
    with mortal(tmp_path) as server:
        async with spoken_to(f"{server.server.address}/aap", patience=PATIENT) as remote:
            talk, heard = Conversation(remote, await remote.open(Opening(settings=SETTINGS))), list[Heard]()
            async with asyncio.timeout(50):
                async for one in remote.say(talk.session_id, SendMessage(content="/slow 400")):
                    heard.append(one)
                    if len(heard) == 20:
                        await server.die_and_come_back()
    house = House()
    house.start()
    house.take(heard)
    words, end = facts(house.records)
    numbers = words[1].split()
    assert numbers == [str(number + 1) for number in range(len(numbers))], "no gap, no repetition"
    assert end == ("ended", "error"), "it was closed when the server came back"
