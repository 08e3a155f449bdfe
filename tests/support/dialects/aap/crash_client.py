"""AAP, spoken while servers die: streams belong to requests, and what was cut off is asked for again."""

from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

import gateway.model as m
from tests.prove.crash.client_base import BROKEN, CrashRun, DialectClient, blocks
from tests.prove.crash.expected_streams import projected_frames, start_of, turn_of
from tests.prove.crash.history import Kind
from tests.support.dialect_tables import dialect

MINE = {"name": "mine", "description": "A tool of the client.", "parameters": {"type": "object"}}


class CrashClient(DialectClient):
    """Streams belong to requests; what was cut off is heard from `turns/current`."""

    dialect = "aap"
    asking = ("/permit", "/client-tool", "/parallel", "/ask")

    def __init__(self, world: CrashRun, number: int) -> None:
        super().__init__(world, number)
        self.cut: tuple[str, list[str]] | None = None

    async def create(self) -> str:
        tools = [{"name": "clock", "trust": True}, {"name": "calc"}]
        made = await self.post("/aap/sessions", {"agent": {"name": "demo", "tools": tools}, "tools": [MINE]})
        return str(made["sessionId"])

    async def say(self, words: str) -> None:
        self.said(words, False)
        await self._turn(f"aap {words.split()[-1]} 0", {"role": "user", "content": words}, words=words)

    async def answer(self, view: m.SessionView) -> None:
        asks = list(view.asks.values())
        for ask in asks:
            self.answered(ask, False)
        piece = await self._pauses(view.turn_id or "")
        await self._turn(f"aap {view.turn_id} {piece}", *map(self._settling, asks), asks=asks)

    @staticmethod
    def _settling(ask: m.OpenAsk) -> dict[str, Any]:
        if isinstance(ask.ask, m.PermissionAsk):
            return {"role": "tool_permission", "toolCallId": ask.call_id, "granted": True}
        return {"role": "tool", "toolCallId": ask.call_id, "content": "yes"}

    async def _pauses(self, turn_id: str) -> int:
        async with self.world.http.get(self.world.url(f"/replay/{self.session}")) as answer:
            await self.world.check(Kind.LOST, self.name, self.session, answer)
            records = [m.decode_record(line) for line in (await answer.read()).splitlines()]
        return sum(r.turn_id == turn_id and r.event.name == "turn.suspended" for r in records)

    async def _turn(self, stream: str, *messages: Any, words: str = "", asks: list[m.OpenAsk] | None = None) -> None:
        url, body = self.world.url(f"/aap/sessions/{self.session}/turns"), {"stream": "delta", "messages": messages}
        heard: list[str] = []
        try:
            async with self.world.http.post(url, data=orjson.dumps(body)) as answer:
                await self.world.check(Kind.STUCK, self.name, self.session, answer)
                if words:
                    self.said(words, True)
                for ask in asks or ():
                    self.answered(ask, True)
                self.cut = stream, heard
                await self._hear(answer, heard)
        finally:
            ended = bool(heard) and heard[-1].startswith("event: turn_stop")
            self.hears(stream, heard, ended=ended)
            if ended:
                self.cut = None

    async def _hear(self, answer: aiohttp.ClientResponse, heard: list[str]) -> None:
        async for block in blocks(answer.content):
            heard.append("\n".join(line for line in block.split("\n") if not line.startswith("id: ")))
            self.world.hear()
            if heard[-1].startswith("event: turn_stop"):
                return
        raise EOFError("the stream was torn")

    async def resume(self) -> None:
        if self.cut is None:
            return
        stream, had = self.cut
        rest: list[str] = []
        url = self.world.url(f"/aap/sessions/{self.session}/turns/current?after={len(had)}")
        try:
            async with self.world.http.get(url) as answer:
                await self.world.check(Kind.LOST, self.name, self.session, answer)
                if answer.status == 200:  # 204: nothing is missing
                    await self._hear(answer, rest)
            self.cut = None
            self.hears(stream, had + rest, ended=True)
        except BROKEN:
            had += rest
            raise


def expected_lines(records: Sequence[m.Record], view: m.SessionView, mark: str, piece: str) -> list[str]:
    """What one request streams: a piece is up to where the turn yields, or from there to where it yields again."""
    turn_id = turn_of(records, mark)
    begins = start_of(records, turn_id) if turn_id else None
    if begins is None:
        return []
    pieces: list[list[str]] = [[]]
    for record, frames in projected_frames("aap", dialect("aap").default_options, records, begins):
        pieces[-1] += [frame.body.decode().strip() for frame in frames]
        if isinstance(record.event, m.TurnSuspended):
            pieces.append([])
        elif isinstance(record.event, m.TurnEnded):
            break
    return pieces[int(piece)] if int(piece) < len(pieces) else []
