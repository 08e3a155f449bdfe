"""Quill, spoken while servers die: what was cut off is lost to the client, and the log has it."""

from collections.abc import Sequence

import gateway.model as m
from gateway.ports import NO_OPTIONS
from tests.prove.crash.client_base import CrashRun, DialectClient, blocks
from tests.prove.crash.expected_streams import projected_frames, start_of, turn_of
from tests.prove.crash.history import Kind


class CrashClient(DialectClient):
    """Streams belong to requests."""

    dialect = "quill"

    def __init__(self, world: CrashRun, number: int) -> None:
        super().__init__(world, number)

    async def create(self) -> str:
        async with self.world.http.post(self.world.url("/quill/talks")) as answer:
            await self.world.check(Kind.STUCK, self.name, "a new one", answer)
            return str((await answer.json())["talk"])

    async def say(self, words: str) -> None:
        self.said(words, False)
        heard: list[str] = []
        url = self.world.url(f"/quill/talks/{self.session}/lines")
        try:
            async with self.world.http.post(url, json={"text": words}) as answer:
                await self.world.check(Kind.STUCK, self.name, self.session, answer)
                self.said(words, True)
                async for block in blocks(answer.content):
                    heard.append(block)
                    self.world.hear()
        finally:
            ended = bool(heard) and heard[-1].startswith("event: closed")
            self.hears(f"quill {words.split()[-1]}", heard, ended=ended)
        if not ended:
            raise EOFError("the stream was torn")


def expected_lines(records: Sequence[m.Record], view: m.SessionView, mark: str) -> list[str]:
    """What the answer to a line tells."""
    turn_id = turn_of(records, mark)
    begins = start_of(records, turn_id) if turn_id else None
    if begins is None:
        return []
    told: list[str] = []
    for record, frames in projected_frames("quill", NO_OPTIONS, records, begins):
        told += [frame.body.decode().strip() for frame in frames]
        if isinstance(record.event, m.TurnEnded):
            break
    return told
