"""A CAS script: it says one thing, and answers whatever the session waits for."""

from typing import Any

from tests.support.dialects.cas.client import Client, confirm, result, toolset
from tests.support.dialects.cas.pair_reader import PairReader
from tests.support.gateway_server import Served
from tests.support.pairs.answer_texts import FILE, PAINT, PAINTED, PICTURE, TRUSTED, UNTRUSTED, in_words

CUSTOM = {
    "type": "custom", "name": PAINT["name"], "description": PAINT["description"], "input_schema": PAINT["parameters"],
}
BROUGHT = {
    "images_in": {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PICTURE.partition(",")[2]}},
    "files": {"type": "document", "title": FILE["name"], "source": {"type": "url", "url": FILE["url"]}},
}
DELTAS = "event_deltas[]=agent.message&event_deltas[]=agent.thinking"


class PairClient:
    """Sessions at one server, all of one agent."""

    can_bring = ("images_in", "files")

    def __init__(self, served: Served) -> None:
        self.client = Client(served)
        self._agent: dict[str, Any] | None = None

    async def converse(
        self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "",
    ) -> PairReader:
        reading = PairReader((PAINT["name"],))
        session = str((await self.client.new(agent=await self._made()))["id"])
        async with self.client.listening(session, DELTAS) as stream:
            said = [{"type": "text", "text": text}, BROUGHT[brings]] if brings else text
            await self.client.sent(session, {"type": "user.message", "content": said})
            while not reading.over:
                reading.hear((await stream.next()).body)
                if reading.deltas == stop_at > 0:
                    stop_at = 0
                    await self.client.sent(session, {"type": "user.interrupt"})
                if reading.waiting:
                    answers = [_answer(event_id, call, kindly) for event_id, call in reading.waiting]
                    reading.waiting = []
                    await self.client.sent(session, *answers)
        for thread in reading.children:
            told = await self.client.ok("GET", f"/sessions/{session}/threads/{thread}/events?limit=100")
            reading.overhear(told["data"])
        return reading

    async def _made(self) -> str:
        """The agent with the tools of these tests; made once."""
        if self._agent is None:
            [model, *_] = (await self.client.ok("GET", "/models"))["data"]
            tools = toolset(**dict.fromkeys(TRUSTED, "allow"), **dict.fromkeys(UNTRUSTED, "ask"))
            body = {"name": "painter", "model": model["id"], "tools": [tools, CUSTOM]}
            self._agent = await self.client.ok("POST", "/agents", body)
        return str(self._agent["id"])


def _answer(event_id: str, call: dict[str, Any], kindly: bool) -> dict[str, Any]:
    if call["type"] != "agent.custom_tool_use":
        return confirm(event_id, "allow" if kindly else "deny")
    return result(event_id, PAINTED if call["name"] == PAINT["name"] else in_words(call["input"], kindly))
