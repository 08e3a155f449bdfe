"""A full disk under a running server: turns end with a fault, commands are refused, reads go on, nothing is lost."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import aiohttp

import gateway.model as m
from gateway.storage.log.verification import verify_log
from tests.prove.crash.client_base import PATIENCE, blocks
from tests.prove.crash.history import times_there
from tests.support.dialect_parts import dialects_with, part

WORDS = "nothing can be stored just now"
Spoil = Callable[[], Callable[[], None]]
"""Fills the disk; gives back how to free it again."""


class StoredServer(Protocol):
    """A server whose file can be looked at."""

    @property
    def address(self) -> str: ...
    @property
    def database(self) -> Path: ...
    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        """What is stored of these sessions."""


class DialectConversation:
    """One session of one dialect: how something is said in it, how a refusal looks, and what can be read."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self.http = http
        self.address = address
        self.session = ""

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.http.request(method, f"{self.address}{path}", json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    # -- each dialect's own ---------------------------------------------------------------------------------------

    reads = ""
    """Where the session can be read."""

    async def create(self) -> None:
        raise NotImplementedError

    async def say(self, words: str) -> tuple[int, Any]:
        """The status of the answer, as HTTP has it, and the answer."""
        raise NotImplementedError

    def is_refusal(self, told: Any) -> bool:
        raise NotImplementedError


def talker(dialect: str, http: aiohttp.ClientSession, address: str) -> DialectConversation:
    """A client of this dialect; `disk_client.py` in its folder has it."""
    client: DialectConversation = part(dialect, "disk_client").DiskClient(http, address)
    return client


async def _refused(talk: DialectConversation) -> list[str]:
    """In a while, and in the dialect's own words; until trouble is noticed something may still be taken.

    What was said and answered with 503.
    """
    refused: list[str] = []
    async with asyncio.timeout(PATIENCE):
        for number in count():
            status, told = await talk.say(f"hello r{number}")
            refused += [f"r{number}"] if status == 503 else []
            if status == 503 and talk.is_refusal(told):
                return refused
            await asyncio.sleep(0.05)
    raise AssertionError("the timeout is raised before")


async def _works(talk: DialectConversation) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            status, _ = await talk.say("hello")
            if status in (200, 202):
                return
            await asyncio.sleep(0.1)


async def survives(server: StoredServer, spoil: Spoil) -> None:
    """The disk is filled while clients of all dialects talk, and freed again: nothing is harmed."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:
        talks = [talker(name, http, server.address) for name in dialects_with("disk_client")]
        for talk in talks:
            await talk.create()
            await _works(talk)
        before = server.logs([talk.session for talk in talks])
        watcher = talker("aap", http, server.address)
        await watcher.create()
        body = {"stream": "delta", "messages": [{"role": "user", "content": "/slow 100000"}]}
        async with http.post(f"{server.address}/aap/sessions/{watcher.session}/turns", json=body) as stream:
            told = blocks(stream.content)
            for _ in range(5):
                await anext(told)
            relieve = spoil()
            refused: dict[str, list[str]] = {}
            for talk in talks:
                refused[talk.session] = await _refused(talk)
                status, shown = await talk.call("GET", talk.reads.format(talk.session))
                assert status == 200, shown
            status, _ = await watcher.call("GET", f"/aap/sessions/{watcher.session}")
            assert status == 200, "even where the end of a turn waits to be stored"
            relieve()
            rest = [block async for block in told]
        assert rest[-1] == 'event: turn_stop\ndata: {"stopReason":"error"}', "whoever listened is told the end"
        for talk in talks:
            await _works(talk)
        status, _ = await watcher.say("hello")
        assert status == 200
    logs = server.logs([*before, watcher.session])
    for session, records in before.items():
        assert list(logs[session][:len(records)]) == list(records), "nothing stored was harmed"
        assert [times_there(words, logs[session]) for words in refused[session]] == [0] * len(refused[session])
    ends = [record.event for record in logs[watcher.session] if isinstance(record.event, m.TurnEnded)]
    assert [end.fault.code if end.fault else None for end in ends] == [m.FaultCode.OVERLOADED, None]
    assert verify_log(server.database).problems == []
