"""A chat followed over a line that breaks: every event once and in order, wherever it was cut."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import gateway.model as m
from gateway.ports.remote import NewRemoteSession
from tests.adapters.blade.client.test_remote import compare
from tests.support.dialects.blade.client import blade
from tests.support.dialects.blade.cutting_proxy import cutting_proxy
from tests.support.dialects.blade.remote_conversation import PATIENCE, kind, remote, talk
from tests.support.examples import is_search, whole_in_the_proof
from tests.support.gateway_server import Served

STUBBORN = replace(PATIENCE, attempts=50, total=50)


async def cut_talk(served: Served, message: str, cuts: Iterable[int]) -> tuple[int, int]:
    """One turn, its line cut so; how often the line was made, and how many bytes came over it."""
    async with cutting_proxy(served.port, iter(cuts)) as line, remote(line.address, patience=STUBBORN) as server:
        session_id = await server.open(NewRemoteSession())
        ear = await talk(server, session_id, message, kind)
        await compare(served, session_id, ear)
        records = await served.gateway.sessions.records("", session_id)
        sent = [record for record in records
                if isinstance(record.event, m.InputAccepted) and isinstance(record.event.command, m.SendMessage)]
        assert len(sent) == 1, "what was taken is not sent again"
        return line.sockets, line.told


async def many(served: Served, message: str, all_cuts: Iterable[Iterable[int]], together: int = 12) -> list[int]:
    room, sockets = asyncio.Semaphore(together), list[int]()

    async def one(cuts: Iterable[int]) -> None:
        async with room:
            sockets.append((await cut_talk(served, message, cuts))[0])

    await asyncio.gather(*(one(cuts) for cuts in all_cuts))
    return sockets


BARE = {"dialects": {"aap": {}, "blade": {"patch_snapshots": False}}}
EVERY = 13 if is_search() else 31
"""Bytes between two cuts; with 1 it takes a minute, and says the same."""


@whole_in_the_proof
async def test_a_short_chat_cut_anywhere(tmp_path: Path) -> None:
    async with blade(tmp_path, **BARE) as served:
        _, size = await cut_talk(served, "/fail-start", ())
        sockets = await many(served, "/fail-start", ([at] for at in range(1, size, EVERY)))
        assert set(sockets) <= {1, 2}
        assert sockets.count(2) > 0.8 * len(sockets), "only what follows the end of the chat may be lost unnoticed"


@pytest.mark.parametrize("message", ["/fork-ask there", "/parallel there", "/think /tool calc /slow 3 there", "/plan"])
async def test_a_chat_cut_again_and_again(tmp_path: Path, message: str) -> None:
    """Each connection lives for so many bytes more than the one before, from hardly a greeting to several events."""
    async with blade(tmp_path) as served:
        all_cuts = [range(at, at + 20_000, 150) for at in (400, 437, 1000)]
        sockets = await many(served, message, all_cuts)
        assert min(sockets) > 3
