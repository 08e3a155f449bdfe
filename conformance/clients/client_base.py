"""The base of the small clients: they follow an instruction, retry, and make the one mistake they are told to make."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import BaseModel, ConfigDict, Field

from conformance.clients.situation import ECHO, Cue
from conformance.kit.documents import read_document

TRIES = 3
BACKOFF = 0.5
STORM = 40


class Gone(Exception):
    """The turn cannot go on: it was refused, or its connection broke."""


class Refused(Gone):
    """The server has answered, and does not want it."""


class Wrong(BaseModel):
    """One way in which a client can be wrong, and the requirement that it then fails."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z_0-9]+$")
    requirement: str
    sentence: str = Field(min_length=10)


class Wrongs(BaseModel):
    """The wrong clients of a dialect."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wrongs: tuple[Wrong, ...]


def read_wrongs(folder: Path) -> tuple[Wrong, ...]:
    """The rows of wrongs.yaml in a dialect's folder."""
    return read_document(folder / "wrongs.yaml", Wrongs).wrongs


class ClientBase:
    """Follows a cue: sends its messages one after the other, and tries again what may pass."""

    def __init__(self, cue: Cue, wrong: str | None = None) -> None:
        self.cue, self.instruction, self._wrong = cue, cue.instruction, wrong
        self.answer = ""
        """The text of the turn that is read, or was read last."""

    def is_wrong(self, *names: str) -> bool:
        return self._wrong in names

    async def send_all(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Send the messages of the instruction; a turn that fails does not end the conversation."""
        for message in self.instruction.messages:
            text, self.answer = self.answer if message == ECHO else message, ""
            try:
                await send(text)
            except Gone:
                continue

    async def attempt(self, request: Callable[[], Awaitable[aiohttp.ClientResponse]]) -> aiohttp.ClientResponse:
        """The answer to a request that is tried again while the server is busy or fails; Gone if it is refused."""
        tries = STORM if self.is_wrong("storms") else TRIES
        for number in range(1, tries + 1):
            try:
                response = await request()
            except aiohttp.ClientError:
                if self.is_wrong("storms_after_cuts") and number < tries:
                    continue
                raise Gone("the connection broke") from None
            if response.status < 400:
                return response
            response.close()
            if not self._may_pass(response.status) or number == tries:
                break
            await asyncio.sleep(self._wait(response, number))
        raise Refused(f"refused with {response.status}")

    def _may_pass(self, status: int) -> bool:
        return status == 429 or status >= 500 or (status == 400 and self.is_wrong("repeats_refused"))

    def _wait(self, response: aiohttp.ClientResponse, number: int) -> float:
        if self.is_wrong("storms"):
            return 0.05
        told = response.headers.get("Retry-After", "")
        if told.isdigit() and not self.is_wrong("ignores_retry_after"):
            return float(told)
        return BACKOFF * number


def run_client(client: Callable[[Cue, str | None], Awaitable[Any]]) -> None:
    """A client as a driver command: the cue is in the environment, and the first argument may name a wrong."""
    wrong = sys.argv[1] if len(sys.argv) > 1 else None
    asyncio.run(_run(client, Cue.from_environment(os.environ), wrong))


async def _run(client: Callable[[Cue, str | None], Awaitable[Any]], cue: Cue, wrong: str | None) -> None:
    await client(cue, wrong)


