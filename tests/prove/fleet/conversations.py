"""One client of three servers, which says one thing after the other over AAP, and reads the log of its session."""

import asyncio
from contextlib import suppress

import aiohttp

import gateway.model as m

from .gateways import PATIENCE


async def created(http: aiohttp.ClientSession, address: str) -> str:
    async with http.post(f"{address}/aap/sessions", json={"agent": {"name": "demo"}}) as answer:
        assert answer.status < 300, await answer.text()
        session: str = (await answer.json())["sessionId"]
        return session


async def say(
    http: aiohttp.ClientSession, session: str, address: str, words: str, *, until_taken: bool = False,
) -> None:
    """Until the turn has ended, or its stream was cut; if `until_taken`, again after each 503."""
    body = {"stream": "delta", "messages": [{"role": "user", "content": words}]}
    async with asyncio.timeout(PATIENCE):
        while True:
            async with http.post(f"{address}/aap/sessions/{session}/turns", json=body) as answer:
                if answer.status == 503 and until_taken:
                    await asyncio.sleep(0.05)
                    continue
                assert answer.status < 300, await answer.text()
                with suppress(aiohttp.ClientPayloadError):
                    await answer.read()
                return


async def until_stored(http: aiohttp.ClientSession, session: str, address: str, words: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while words not in str(await records(http, session, address)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def records(http: aiohttp.ClientSession, session: str, address: str) -> list[m.Record]:
    async with asyncio.timeout(PATIENCE), http.get(f"{address}/replay/{session}") as answer:
        assert answer.status == 200, await answer.text()
        return [m.decode_record(line) for line in (await answer.read()).splitlines()]
