"""An AAP application: it says one thing, and answers whatever its agent stops for."""

from typing import Any

from aiohttp import ClientResponse

from tests.support.dialects.aap.pair_reader import PairReader
from tests.support.dialects.aap.reader import events
from tests.support.gateway_server import Served
from tests.support.pairs.answer_texts import BEFORE, PAINT, PAINTED, PICTURE, STAND_INS, TRUSTED, UNTRUSTED, in_words

AT = "/aap"


class PairClient:
    """Sessions at one server."""

    can_bring = ("images_in", "history_seed")

    def __init__(self, served: Served) -> None:
        self.served = served

    async def converse(
        self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "",
    ) -> PairReader:
        reading = PairReader((PAINT["name"],), UNTRUSTED)
        turns = f"{AT}/sessions/{await self._session(brings == 'history_seed')}/turns"
        picture = [{"type": "text", "text": text}, {"type": "image", "url": PICTURE}]
        messages: list[dict[str, Any]] = [{"role": "user", "content": picture if brings == "images_in" else text}]
        while messages:
            async with self.served.http.post(
                self.served.url(turns), json={"messages": messages, "stream": "delta"},
            ) as response:
                assert response.status == 200, await response.text()
                assert response.content_type == "text/event-stream"
                await self._listen(response, reading, stop_at, turns)
            messages = [] if reading.stop != "tool_use" else self._answers(reading, kindly)
        return reading

    async def _session(self, is_seeded: bool) -> str:
        tools = [{"name": name, "trust": name in TRUSTED} for name in (*TRUSTED, *UNTRUSTED)]
        before = [{"role": role, "content": text} for role, text in BEFORE] if is_seeded else []
        body = {"agent": {"name": "demo", "tools": tools}, "tools": [PAINT], "messages": before}
        async with self.served.http.post(self.served.url(f"{AT}/sessions"), json=body) as response:
            assert response.status == 201, await response.text()
            return str((await response.json())["sessionId"])

    async def _listen(self, response: ClientResponse, reading: PairReader, stop_at: int, turns: str) -> None:
        """To the end, which comes after so many deltas if the application wants it to."""
        lines: list[bytes] = []
        async for line in response.content:
            lines.append(line)
            if line != b"\n":
                continue
            for event, data in events(b"".join(lines)):
                reading.hear(event, data)
                stop_at -= event == "text_delta"
                if event == "text_delta" and stop_at == 0:
                    async with self.served.http.delete(self.served.url(f"{turns}/current")) as ended:
                        assert ended.status == 204, await ended.text()
                    reading.ending = True
            lines.clear()
        assert not reading.started, "the stream was cut"

    def _answers(self, reading: PairReader, kindly: bool) -> list[dict[str, Any]]:
        answers = []
        for call_id, (name, given) in [*reading.pending.items()]:
            if name in reading.untrusted:
                answers.append({"role": "tool_permission", "toolCallId": call_id, "granted": kindly})
            elif name in (*reading.own, *STAND_INS):
                content = PAINTED if name in reading.own else in_words(given, kindly)
                answers.append({"role": "tool", "toolCallId": call_id, "content": content})
                reading.answered(call_id)
        return answers
