"""CAS, spoken while servers die: a stream that is taken up after the last event, and messages beside it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

import gateway.model as m
from adapters.cas.server.stream_options import session_stream_options
from tests.prove.crash.client_base import PATIENCE, CrashRun, DialectClient, blocks
from tests.prove.crash.expected_streams import projected_frames
from tests.prove.crash.history import ConnectionHistory, Kind


class CrashListener:
    """A stream of a session that is taken up after the last event that was heard."""

    hears_many = False

    def __init__(self, world: CrashRun, name: str) -> None:
        self.world = world
        self.name = name
        self.last: str | None = None
        self.events: dict[str, dict[str, Any]] = {}
        self.news = asyncio.Event()

    async def listen(self, session: str) -> None:
        heard, after = list[str](), self.last
        headers = {"Last-Event-ID": self._id(after)} if after else {}
        url = self.world.url(f"/api/v1/cloud/sessions/{session}/events/stream?stream_start=replay")
        try:
            async with self.world.http.get(url, headers=headers) as answer:
                await self.world.check(Kind.LOST, self.name, session, answer)
                async for block in blocks(answer.content):
                    heard.append(block)
                    self._take(block)
        finally:
            self.world.history.hearings.append(ConnectionHistory(self.name, session, "cas", tuple(heard), after))
        raise EOFError("the stream was torn")

    def _take(self, block: str) -> None:
        self.last = block
        self.world.hear()
        event = orjson.loads(block.split("\ndata: ", 1)[1])
        self.events[event["id"]] = event
        self.news.set()

    @staticmethod
    def _id(block: str) -> str:
        return block.split("\n", 1)[0].removeprefix("id: ")

    async def wanted(self) -> list[dict[str, Any]]:
        """The events that wait for an answer, once they have been heard of."""
        async with asyncio.timeout(PATIENCE):
            while True:
                ids = self._required()
                if all(event_id in self.events for event_id in ids) and ids:
                    return [self.events[event_id] for event_id in ids]
                self.news.clear()
                await self.news.wait()

    def _required(self) -> list[str]:
        idle = [event for event in self.events.values() if event["type"] == "session.status_idle"]
        reason = idle[-1].get("stop_reason") or {} if idle else {}
        return list(reason.get("event_ids", ())) if reason.get("type") == "requires_action" else []


class CrashClient(DialectClient):
    """Says and hears apart; asked things go by the ids of events."""

    dialect = "cas"
    asking = ("/permit", "/ask")

    def __init__(self, world: CrashRun, number: int) -> None:
        super().__init__(world, number)
        self.ear = CrashListener(world, self.name)

    async def create(self) -> str:
        made = await self.post("/api/v1/cloud/sessions", {
            "agent": "agent_demo", "environment": {"config": {"type": "cloud"}}})
        return str(made["id"])

    async def listen(self) -> None:
        await self.ear.listen(self.session)

    async def say(self, words: str) -> None:
        self.said(words, False)
        await self._send({"type": "user.message", "content": words})
        self.said(words, True)

    async def answer(self, view: m.SessionView) -> None:
        try:
            wanted = await self.ear.wanted()
        except TimeoutError:
            self.stuck("it was never told what it is asked")
        if {event["id"] for event in wanted} == set() or len(wanted) != len(view.asks):
            await asyncio.sleep(0.02)
            return
        for ask in view.asks.values():
            self.answered(ask, False)
        await self._send(*map(_settling, wanted))
        for ask in view.asks.values():
            self.answered(ask, True)

    async def _send(self, *events: dict[str, Any]) -> None:
        await self.post(f"/api/v1/cloud/sessions/{self.session}/events", {"events": events})


def _settling(event: dict[str, Any]) -> dict[str, Any]:
    if event["type"] == "agent.custom_tool_use":
        return {"type": "user.custom_tool_result", "custom_tool_use_id": event["id"], "content": "yes"}
    return {"type": "user.tool_confirmation", "tool_use_id": event["id"], "result": "allow"}


def expected_lines(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    """What the stream of a session tells."""
    options = session_stream_options(view, None, as_list=False)
    frames = projected_frames("cas", options, records)
    return [frame.body.decode().strip() for _, some in frames for frame in some]
